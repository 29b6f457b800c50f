package loopback

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
)

func localTo(b []byte) []hw.Segment {
	return []hw.Segment{{Addr: unsafe.Pointer(unsafe.SliceData(b)), Len: len(b)}}
}

// TestPeerMemory reads the memory of another process.
func TestPeerMemory(t *testing.T) {
	dir := shmDir(t)
	i := open(t, Config{Dir: dir})
	c := start(t, "memory", dir, nil, nil)
	var addr uint64
	if _, err := fmt.Sscanf(c.line(t), "ready %d", &addr); err != nil {
		t.Fatal(err)
	}
	p, err := i.Connect(c.addr)
	if err != nil {
		t.Fatal(err)
	}
	ep := p.(*Endpoint)
	const size = 3 << 20
	for _, pieces := range [][2]int{{1, 1}, {8, 1}, {1, 8}, {8, 8}, {3, 7}} {
		for _, n := range []int{1, 4095, rawChunk, rawChunk + 1, 1 << 20, size} {
			dst := make([]byte, n)
			var local []hw.Segment
			var remote []hw.RemoteSegment
			for k := range pieces[0] {
				part := dst[n*k/pieces[0] : n*(k+1)/pieces[0]]
				local = append(local, localTo(part)...)
			}
			for k := range pieces[1] {
				at := n * k / pieces[1]
				remote = append(remote, hw.RemoteSegment{Addr: addr + uint64(at), Len: uint64(n*(k+1)/pieces[1] - at)})
			}
			got, err := ep.ReadPeer(local, remote)
			if err != nil || got != n {
				if errors.Is(err, hw.ErrPermission) {
					t.Skip("the kernel refuses cross-memory attach here")
				}
				t.Fatalf("%d bytes, %v pieces: %d, %v", n, pieces, got, err)
			}
			for k, b := range dst {
				if b != byte(k>>12*7) {
					t.Fatalf("%d bytes, %v pieces: byte %d is %d", n, pieces, k, b)
				}
			}
		}
	}
	dst := make([]byte, 2<<20)
	got, err := ep.ReadPeer(localTo(dst), []hw.RemoteSegment{{Addr: addr + size - 1<<20, Len: 2 << 20}})
	if got > 1<<20 || !errors.Is(err, hw.ErrInvalid) || ep.Err() != nil {
		t.Errorf("over the end: %d, %v", got, err)
	}
	for _, bad := range []uint64{0, 8, 1 << 47, addr + size} {
		got, err := ep.ReadPeer(localTo(dst[:64]), []hw.RemoteSegment{{Addr: bad, Len: 64}})
		if got != 0 || !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("address %#x: %d, %v", bad, got, err)
		}
	}
	c.kill()
	if got, err := ep.ReadPeer(localTo(dst[:64]), []hw.RemoteSegment{{Addr: addr, Len: 64}}); got != 0 ||
		!errors.Is(err, hw.ErrPeerDead) {
		t.Errorf("killed: %d, %v", got, err)
	}
	i.CheckPeers()
}

// TestPeerMemorySwitchedOff configures no cross-memory attach.
func TestPeerMemorySwitchedOff(t *testing.T) {
	dir := shmDir(t)
	i := open(t, Config{Dir: dir, UseCMA: CMANo})
	if i.Attr().Caps&hw.CapPeerMemory != 0 {
		t.Error("the capability is offered")
	}
	c := start(t, "memory", dir, nil, nil)
	c.line(t)
	ep, err := i.Connect(c.addr)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 8)
	if n, err := ep.(hw.PeerMemory).ReadPeer(localTo(b), []hw.RemoteSegment{{Addr: 1 << 20, Len: 8}}); n != 0 ||
		!errors.Is(err, hw.ErrPermission) {
		t.Errorf("other process: %d, %v", n, err)
	}
	c.kill()
	i.CheckPeers()
}

// TestPeerMemoryRefused has the kernel refuse: the peer is not dumpable, and the
// reader has no privileges. As root both run as another user.
func TestPeerMemoryRefused(t *testing.T) {
	dir := shmDir(t)
	var cred *syscall.Credential
	if os.Getuid() == 0 {
		cred = &syscall.Credential{Uid: 65534, Gid: 65534}
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	hidden := start(t, "hidden", dir, nil, cred)
	if s := hidden.line(t); !strings.HasPrefix(s, "ready") {
		t.Fatal(s)
	}
	reader := start(t, "get", dir, hidden.addr, cred)
	for k, want := range []string{"true true <nil> hw: permission denied", "true true <nil> hw: permission denied"} {
		if s := reader.line(t); s != want {
			t.Errorf("attempt %d: %q, want %q", k, s, want)
		}
	}
	reader.kill()
	hidden.kill()
	h, err := thisHost(dir)
	if err != nil {
		t.Fatal(err)
	}
	if cred != nil {
		h.uid, h.user = cred.Uid, cred.Uid
	}
	sweepNow(&h)
	if n := segments(t, dir); n != 0 {
		t.Errorf("%d segments left", n)
	}
}

// TestPeerMemoryDoesNotAllocate reads through the system call, in this process.
func TestPeerMemoryDoesNotAllocate(t *testing.T) {
	i := open(t, Config{Dir: shmDir(t)})
	p, err := i.Connect(i.Address())
	if err != nil {
		t.Fatal(err)
	}
	src, dst := make([]byte, 1<<20), make([]byte, 1<<20)
	local := localTo(dst)
	remote := []hw.RemoteSegment{{Addr: uint64(uintptr(unsafe.Pointer(&src[0]))), Len: 1 << 20}}
	if _, err := p.(hw.PeerMemory).ReadPeer(local, remote); err != nil {
		t.Skip(err)
	}
	if n := testing.AllocsPerRun(10, func() { p.(hw.PeerMemory).ReadPeer(local, remote) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	runtime.KeepAlive(src) // named by number only
}

// TestPeerMemoryErrno covers the errors that are hard to provoke.
func TestPeerMemoryErrno(t *testing.T) {
	i := open(t, Config{Dir: shmDir(t), UseCMA: CMAYes})
	p, err := i.Connect(i.Address())
	if err != nil {
		t.Fatal(err)
	}
	for errno, want := range map[unix.Errno]error{
		unix.EPERM: hw.ErrPermission, unix.ENOSYS: hw.ErrPermission, unix.ESRCH: hw.ErrPeerDead,
		unix.EFAULT: hw.ErrInvalid, unix.ENOMEM: unix.ENOMEM,
	} {
		if err := p.(*Endpoint).peerError(errno); !errors.Is(err, want) {
			t.Errorf("%v: %v", errno, err)
		}
	}
	p.(*Endpoint).dead.Store(true)
	for _, errno := range []unix.Errno{unix.EPERM, unix.ESRCH, unix.EFAULT, unix.ENOMEM, unix.EIO} {
		if err := p.(*Endpoint).peerError(errno); !errors.Is(err, hw.ErrPeerDead) {
			t.Errorf("%v of a peer that is gone: %v", errno, err)
		}
	}
}
