package loopback

import (
	"os"
	"strings"
	"testing"
)

// shmDir is a directory of the test's own in the memory file system.
func shmDir(t testing.TB) string {
	t.Helper()
	base := "/dev/shm"
	if st, err := os.Stat(base); err != nil || !st.IsDir() {
		base = ""
	}
	dir, err := os.MkdirTemp(base, "weft-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		left, _ := os.ReadDir(dir)
		for _, f := range left {
			t.Errorf("%s is left behind", f.Name())
		}
		os.RemoveAll(dir)
	})
	return dir
}

// mapped tells whether this process maps the file at path, deleted or not.
func mapped(t testing.TB, path string) bool {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(maps), path)
}
