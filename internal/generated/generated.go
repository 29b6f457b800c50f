// Package generated writes the files that programs of this repository generate and that are committed.
package generated

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// File is one of them.
type File struct {
	Path string // from the repository's root
	Text []byte
}

// Stale returns the paths of the files that are missing or have another text in the repository at root.
func Stale(root string, files []File) (paths []string) {
	for _, f := range files {
		old, err := os.ReadFile(filepath.Join(root, f.Path))
		if err != nil || !bytes.Equal(old, f.Text) {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

// Write writes the files that are stale, and leaves the others as they are, so that what is built from them stays
// built.
func Write(root string, files []File) error {
	stale := map[string]bool{}
	for _, path := range Stale(root, files) {
		stale[path] = true
	}
	for _, f := range files {
		if !stale[f.Path] {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, f.Path), f.Text, 0o644); err != nil {
			return fmt.Errorf("generated file: %w", err)
		}
	}
	return nil
}

// Main is the main function of such a program, whose only argument is the root.
func Main(program string, generate func(root string) ([]File, error)) {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "usage: %s ROOT\n", program)
		os.Exit(2)
	}
	files, err := generate(os.Args[1])
	if err == nil {
		err = Write(os.Args[1], files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
