package loopback

import (
	"os"
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
