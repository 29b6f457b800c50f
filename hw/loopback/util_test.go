package loopback

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/cpuset"
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

// mapped reports whether this process maps the file at path, deleted or not.
func mapped(t testing.TB, path string) bool {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(maps), path)
}

// hang is how long something may take that happens at once on a machine with time
// for it: what has not come then hangs.
const hang = time.Minute

// until progresses and checks peers until done.
func until(t testing.TB, i *Iface, done func() bool) {
	t.Helper()
	for end := time.Now().Add(hang); !done(); {
		if time.Now().After(end) {
			t.Fatal("not within a minute")
		}
		i.Progress(64)
		i.CheckPeers()
	}
}

// pin keeps the calling goroutine on the n-th processor that the process may
// use, if it may use more than one. The returned function ends it.
func pin(n int) (unpin func()) {
	runtime.LockOSThread()
	all, err := cpuset.OfThread()
	if err != nil || all.Count() < 2 {
		return runtime.UnlockOSThread
	}
	one := all.Nth(n)
	_ = one.Bind()
	return func() {
		_ = all.Bind()
		runtime.UnlockOSThread()
	}
}
