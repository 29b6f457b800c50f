package loopback

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
)

// usage is what a process may leak.
type usage struct{ files, maps, heap int }

func measure(t *testing.T) usage {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{len(fds), strings.Count(string(maps), "\n"), int(m.HeapAlloc)}
}

// TestCycles opens, uses and closes interfaces many times: nothing may grow.
func TestCycles(t *testing.T) {
	dir := shmDir(t)
	cycle := func() {
		a, b := open2(t, dir), open2(t, dir)
		ab, err1 := a.Connect(b.Address())
		ba, err2 := b.Connect(a.Address())
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if err := a.EnableWait(); err != nil {
			t.Fatal(err)
		}
		a.Arm()
		for _, ep := range []hw.Endpoint{ab, ba} {
			if err := ep.AMShort(1, 0, nil, nil); err != nil {
				t.Fatal(err)
			}
			if err := ep.AMBcopy(1, 0, nil, 1, func([]byte) {}, 0); err != nil {
				t.Fatal(err)
			}
		}
		if a.Progress(8) != 2 || b.Progress(8) != 2 {
			t.Fatal("messages are missing")
		}
		a.Close()
		b.CheckPeers()
		b.Close()
	}
	cycles := 1000
	if testing.Short() {
		cycles = 200
	}
	for range 50 {
		cycle()
	}
	before := measure(t)
	for range cycles {
		cycle()
	}
	after := measure(t)
	t.Logf("%d cycles of two interfaces: before %+v, after %+v", cycles, before, after)
	if after.files > before.files || after.maps > before.maps+8 || after.heap > before.heap+1<<20 {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func open2(t *testing.T, dir string) *Iface {
	t.Helper()
	i, err := Open(testAddress(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	i.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {})
	return i
}

// TestLongDirectory uses a directory whose doorbells do not fit into a socket
// address.
func TestLongDirectory(t *testing.T) {
	dir := filepath.Join(shmDir(t), strings.Repeat("d", 200))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a, b := open2(t, dir), open2(t, dir)
	defer os.Remove(dir)
	defer a.Close()
	defer b.Close()
	if err := b.EnableWait(); err != nil {
		t.Fatal(err)
	}
	ep, err := a.Connect(b.Address())
	if err != nil {
		t.Fatal(err)
	}
	b.Arm()
	if err := ep.AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	var one [1]byte
	if n, err := unix.Read(b.DoorbellFD(), one[:]); n != 1 || err != nil { // it has been rung: AMShort does
		t.Errorf("the bell does not ring: %d, %v", n, err)
	}
}

// TestIdleMemory measures what an idle interface costs, and bounds it.
func TestIdleMemory(t *testing.T) {
	dir := shmDir(t)
	const count = 16
	for _, step := range []string{"open", "connected in a ring"} {
		t.Run(step, func(t *testing.T) {
			var ifaces []*Iface
			before := rss(t)
			for range count {
				ifaces = append(ifaces, open2(t, dir))
			}
			if step != "open" {
				for n, i := range ifaces {
					if _, err := i.Connect(ifaces[(n+1)%count].Address()); err != nil {
						t.Fatal(err)
					}
				}
			}
			each := (rss(t) - before) / count
			t.Logf("segment %d KiB, resident %d KiB", ifaces[0].seg.geo.bytes>>10, each>>10)
			for _, i := range ifaces {
				i.Close()
			}
			if each > 256<<10 {
				t.Errorf("an idle interface has %d bytes resident", each)
			}
		})
	}
}

func rss(t *testing.T) int {
	t.Helper()
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
