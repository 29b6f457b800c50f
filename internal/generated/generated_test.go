package generated

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestWrite: what is missing or differs is written, what is right keeps its time.
func TestWrite(t *testing.T) {
	root := t.TempDir()
	files := []File{{"same", []byte("1")}, {"other", []byte("2")}, {"missing", []byte("3")}}
	old := time.Now().Add(-time.Hour)
	for name, text := range map[string]string{"same": "1", "other": "1"} {
		path := filepath.Join(root, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := Stale(root, files), []string{"other", "missing"}; !slices.Equal(got, want) {
		t.Errorf("stale are %v, want %v", got, want)
	}
	if err := Write(root, files); err != nil {
		t.Fatal(err)
	}
	if got := Stale(root, files); len(got) != 0 {
		t.Errorf("stale after Write: %v", got)
	}
	if st, err := os.Stat(filepath.Join(root, "same")); err != nil || time.Since(st.ModTime()) < time.Minute {
		t.Errorf("a file that was right has been written (%v)", err)
	}
	if err := Write(filepath.Join(root, "none"), files); err == nil {
		t.Error("no error for a folder that is not there")
	}
}
