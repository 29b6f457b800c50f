package tool

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReplaceFile: a regular file is replaced, also behind a link; a pipe is written to, and stays one.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		if err := ReplaceFile(path, []byte(path)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != path {
			t.Errorf("the file has %q, %v, want %q", got, err, path)
		}
	}
	if about, err := os.Lstat(link); err != nil || about.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", about.Mode(), err)
	}
	read := make(chan string)
	go func() {
		f, err := os.Open(pipe)
		if err != nil {
			t.Error(err)
			close(read)
			return
		}
		defer f.Close()
		got, _ := io.ReadAll(f)
		read <- string(got)
	}()
	if err := ReplaceFile(pipe, []byte("piped")); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "piped" {
		t.Errorf("the pipe had %q", got)
	}
	if about, err := os.Lstat(pipe); err != nil || about.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is %v now, %v", about.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
