package loopback

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/proclock"
)

// inOwn starts a child in namespaces of its own.
func inOwn(t *testing.T, flags uintptr, role, dir string, peer []byte, cred *syscall.Credential) *child {
	t.Helper()
	childFlags = flags
	defer func() { childFlags = 0 }()
	return start(t, role, dir, peer, cred)
}

// needRoot skips without the right to make namespaces.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
}

// files lists a directory.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}

// TestStaleOfNamespaces kills three processes: one of this pid namespace, one of another
// user's, and one of a pid namespace of its own. The next process removes what they left, and
// nothing while they live.
func TestStaleOfNamespaces(t *testing.T) {
	needRoot(t)
	dir := shmDir(t)
	if err := os.Chmod(dir, 0o1777); err != nil {
		t.Fatal(err)
	}
	victims := []*child{
		start(t, "hold", dir, nil, nil),
		start(t, "hold", dir, nil, &syscall.Credential{Uid: 65534, Gid: 65534}),
		inOwn(t, unix.CLONE_NEWPID, "hold", dir, nil, nil),
		inOwn(t, unix.CLONE_NEWPID, "hold", dir, nil, &syscall.Credential{Uid: 65534, Gid: 65534}),
	}
	for _, c := range victims {
		c.line(t)
	}
	h, err := thisHost(dir)
	if err != nil {
		t.Fatal(err)
	}
	sweepNow(&h)
	states := func(want SegmentState) {
		t.Helper()
		list, err := Survey(dir)
		if err != nil || len(list) != len(victims) {
			t.Fatalf("%+v, %v", list, err)
		}
		for _, s := range list {
			if s.State != want {
				t.Errorf("%+v, want %v", s, want)
			}
		}
	}
	states(SegmentLive)
	if n := len(proclock.Stale(dir)); n != 0 {
		t.Errorf("%d locks count as dead", n)
	}
	for _, c := range victims {
		c.kill()
	}
	states(SegmentDead)
	if n := len(proclock.Stale(dir)); n != len(victims) {
		t.Errorf("%d locks count as dead of %d", n, len(victims))
	}
	sweepNow(&h)
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestOtherPIDNamespace exchanges messages with a process of another pid namespace, reads its
// memory, whose process has another id here, and hears of its death.
func TestOtherPIDNamespace(t *testing.T) {
	needRoot(t)
	for name, flags := range map[string]uintptr{"pid": unix.CLONE_NEWPID,
		"pid and net": unix.CLONE_NEWPID | unix.CLONE_NEWNET} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(acrossVariable, "yes")
			dir := shmDir(t)
			i := open(t, Config{Dir: dir, Across: true})
			echo := inOwn(t, flags, "echo", dir, i.Address(), nil)
			echo.line(t)
			got, gone := 0, 0
			i.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
			i.OnPeerEvent(func(hw.PeerEvent) { gone++ })
			ep, err := i.Connect(echo.addr)
			if err != nil {
				t.Fatal(err)
			}
			for range 100 {
				for ep.AMShort(1, 0, nil, []byte("x")) != nil {
					i.Progress(8)
				}
			}
			until(t, i, func() bool { return got == 100 })
			i.CheckPeers()
			if gone != 0 || ep.Check() != nil {
				t.Fatalf("%d events of a live peer, %v", gone, ep.Check())
			}
			memory := inOwn(t, flags, "memory", dir, nil, nil)
			read(t, i, memory)
			echo.kill()
			memory.kill()
			until(t, i, func() bool { return gone >= 3 }) // two endpoints and a source
			if _, err := i.Connect(echo.addr); !errors.Is(err, hw.ErrUnreachable) {
				t.Errorf("connect to the dead: %v", err)
			}
			sweepNow(&i.host)
			if n := segments(t, dir); n != 2 { // two names of ours
				t.Errorf("left behind: %v", files(t, dir))
			}
		})
	}
}

// read reads the memory of a child with memoryRole.
func read(t *testing.T, i *Iface, memory *child) {
	t.Helper()
	line := memory.line(t)
	at := uint64(0)
	for _, c := range strings.TrimPrefix(line, "ready ") {
		at = at*10 + uint64(c-'0')
	}
	ep, err := i.Connect(memory.addr)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 8)
	local := []hw.Segment{{Addr: unsafe.Pointer(&b[0]), Len: 8}}
	n, err := ep.(hw.PeerMemory).ReadPeer(local, []hw.RemoteSegment{{Addr: at + 5<<12, Len: 8}})
	if n != 8 || err != nil || b[0] != 35 {
		t.Errorf("read %d bytes, %v: %v", n, err, b)
	}
}

// TestAcrossNetworks: interfaces of other network namespaces are found only if both say so, and
// no two have one address.
func TestAcrossNetworks(t *testing.T) {
	needRoot(t)
	dir := shmDir(t)
	const all = unix.CLONE_NEWPID | unix.CLONE_NEWNET
	alone := inOwn(t, all, "hold", dir, nil, nil)
	alone.line(t)
	t.Setenv(acrossVariable, "yes")
	across := inOwn(t, all, "hold", dir, nil, nil)
	across.line(t)
	i, j := open(t, Config{Dir: dir, Across: true}), open(t, Config{Dir: dir})
	for _, c := range []struct {
		from  *Iface
		to    *child
		reach bool
	}{{i, across, true}, {i, alone, false}, {j, across, false}, {j, alone, false}} {
		if _, err := c.from.Connect(c.to.addr); (err == nil) != c.reach || err != nil &&
			!errors.Is(err, hw.ErrUnreachable) {
			t.Errorf("across %v, alone %v: %v", c.from == i, c.to == alone, err)
		}
	}
	if _, err := Open(across.addr, Config{Dir: dir, Across: true}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("an address that another network namespace has: %v", err)
	}
	if !Taken(dir, across.addr) || !Taken(dir, i.Address()) || Taken(dir, j.Address()) || Taken(dir, testAddress()) {
		t.Error("what has which address")
	}
	across.kill()
	if Taken(dir, across.addr) {
		t.Error("the dead have an address")
	}
	again, err := Open(across.addr, Config{Dir: dir, Across: true})
	if err != nil {
		t.Fatalf("the address of the dead: %v", err)
	}
	again.Close()
	alone.kill()
	for end := time.Now().Add(hang); segments(t, dir) != 3 && time.Now().Before(end); {
		sweepNow(&i.host)
	}
	if n := segments(t, dir); n != 3 { // one of the two has two names
		t.Errorf("left behind: %v", files(t, dir))
	}
}
