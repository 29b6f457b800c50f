package tool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceFile writes a file whole or not at all: where there is no room for the
// new content, the old one stays. What is there and is no regular file, as a terminal, a pipe or /dev/null, is written
// to and stays what it is. A symbolic link stays, and what it leads to is written.
func ReplaceFile(path string, content []byte) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	switch about, err := os.Stat(path); {
	case err == nil && !about.Mode().IsRegular():
		return os.WriteFile(path, content, 0o644)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // err says what matters
		}
	}()
	if _, err = f.Write(content); err != nil {
		f.Close()
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Chmod(f.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
