package loopback

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// What a killed process leaves at the worst instants, made on purpose.
//
//	slot    a message, a slot that it has taken, and a message behind that
//	entry   an attach entry that it has claimed and not filled
//	buffer  a bounce buffer that is marked, whose message was not published

// middleRole does the three, prints, and is killed.
func middleRole(i *Iface, peer []byte) {
	c, err := i.Connect(peer)
	if err != nil {
		fatal(err)
	}
	ep := c.(*Endpoint)
	if err := ep.AMShort(1, 0, nil, []byte("before")); err != nil {
		fatal(err)
	}
	ep.ring.Claim(ep.owner, false)
	if err := ep.AMShort(1, 1, nil, []byte("after")); err != nil {
		fatal(err)
	}
	atomic.StoreUint32(&i.seg.bounce(0).State, ep.owner)
	for n := range ep.seg.geo.attachCount {
		claim := uint64(hot.AttachClaimed) | uint64(unix.Getpid())<<32
		if atomic.CompareAndSwapUint64(attachWord(ep.seg.attach(n)), hot.AttachFree, claim) {
			break
		}
	}
	fmt.Println("ready")
	select {}
}

func TestDieInTheMiddle(t *testing.T) {
	for _, mode := range []string{"Progress", "CheckPeers"} {
		t.Run(mode, func(t *testing.T) {
			dir := shmDir(t)
			i := open(t, Config{Dir: dir})
			var got []string
			i.SetHandler(1, func(_ hw.Source, _ uint64, _, p []byte) { got = append(got, string(p)) })
			c := start(t, "middle", dir, i.Address(), nil)
			if s := c.line(t); s != "ready" {
				t.Fatal(s)
			}
			for begin := time.Now(); time.Since(begin) < 20*patience; {
				i.Progress(8)
				i.CheckPeers()
			}
			if len(got) != 1 || got[0] != "before" || i.Stats().Reclaimed != 0 {
				t.Fatalf("while the sender lives: got %q, %+v", got, i.Stats())
			}
			if n := attached(i); n != 2 {
				t.Errorf("%d attach entries", n)
			}
			c.kill()
			for end := time.Now().Add(hang); len(got) < 2; {
				if time.Now().After(end) {
					t.Fatalf("the message behind the taken slot does not come: %+v", i.Stats())
				}
				if mode == "CheckPeers" {
					i.CheckPeers()
				}
				i.Progress(8)
			}
			if s := i.Stats(); got[1] != "after" || s.Reclaimed != 1 || s.Malformed != 0 || s.Delivered != 2 {
				t.Errorf("got %q, %+v", got, s)
			}
			i.CheckPeers()
			if n := attached(i); n != 0 {
				t.Errorf("%d attach entries are left", n)
			}
			sweepNow(&i.host)
			if n := segments(t, dir); n != 1 {
				t.Errorf("%d segments", n)
			}
		})
	}
}

// TestDeadPeerMemory shows that the memory of dead peers goes, although C
// threads may go on writing where it was mapped.
func TestDeadPeerMemory(t *testing.T) {
	dir := shmDir(t)
	i := open(t, Config{Dir: dir})
	var line hot.Peer
	other := open(t, Config{Dir: dir})
	ep, err := i.Connect(other.Address())
	if err != nil {
		t.Fatal(err)
	}
	if err := i.FillPeer(ep, &line); err != nil {
		t.Fatal(err)
	}
	slots := *(*unsafe.Pointer)(unsafe.Pointer(&line.Slots))
	state := *(**uint32)(unsafe.Pointer(&line.RxState))
	if atomic.LoadUint32(state) != hot.RxOpen {
		t.Fatalf("rx_state %#x", atomic.LoadUint32(state))
	}
	path := other.seg.path
	other.Close()
	i.CheckPeers()
	mem := unsafe.Slice((*byte)(slots), hot.SlotBytes<<line.Log2Slots)
	for k := range mem {
		mem[k] = 0xff // as a late C thread might
	}
	if atomic.LoadUint32(state) != 0 {
		t.Errorf("rx_state %#x", atomic.LoadUint32(state))
	}
	if unix.Access(path, unix.F_OK) != unix.ENOENT {
		t.Errorf("%s exists", path)
	}
	if mapped(t, path) {
		t.Errorf("%s is still mapped", path)
	}
}
