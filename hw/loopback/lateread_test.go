package loopback

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/mpsc"
)

// TestLateReader goes on reading the rings of interfaces that are closed, as
// C threads do that were polling meanwhile: nothing is there, and nothing
// faults, also when the next interface has the address.
func TestLateReader(t *testing.T) {
	dir := shmDir(t)
	i := open2(t, dir)
	var ep hot.EP
	i.FillEP(&ep)
	sender := open(t, Config{Dir: dir})
	to, err := sender.Connect(i.Address())
	if err != nil {
		t.Fatal(err)
	}
	if err := to.AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	ring := mpsc.View(&ep.Inbound[0].Ring)
	if !ring.Ready(0) || !i.Pending() {
		t.Fatal("no message")
	}
	i.Close()
	if ring.Ready(0) || i.Pending() {
		t.Error("a message in a closed interface")
	}
	i.Arm()
	i.Disarm()
	next := open2(t, dir)
	defer next.Close()
	if next.rx.rings[0].ring.Hot().Slots != ep.Inbound[0].Ring.Slots {
		t.Fatal("the address range is not used again")
	}
	if i.Arm(); atomic.LoadUint32(next.seg.armed()) != 0 {
		t.Error("a closed interface arms the next one")
	}
	if to, err = sender.Connect(next.Address()); err != nil {
		t.Fatal(err)
	}
	if err := to.AMShort(1, 0, nil, nil); err != nil || next.Progress(1) != 1 {
		t.Errorf("the next interface does not work: %v", err)
	}
}

// TestLateReaders opens and closes interfaces while threads poll them.
func TestLateReaders(t *testing.T) {
	dir := shmDir(t)
	var current atomic.Pointer[Iface]
	var stop atomic.Bool
	var wg sync.WaitGroup
	polls := make([]int, 2)
	for n := range polls {
		wg.Go(func() {
			for !stop.Load() {
				if i := current.Load(); i != nil {
					i.Pending()
					i.Arm()
					i.Disarm()
					polls[n]++
				}
			}
		})
	}
	cycles := 300
	if testing.Short() {
		cycles = 100
	}
	sender := open(t, Config{Dir: dir})
	for range cycles {
		i := open2(t, dir)
		current.Store(i)
		to, err := sender.Connect(i.Address())
		if err != nil {
			t.Fatal(err)
		}
		if err := to.AMShort(1, 0, nil, nil); err != nil {
			t.Fatal(err)
		}
		i.Close()
		sender.CheckPeers()
	}
	stop.Store(true)
	wg.Wait()
	t.Logf("%d cycles, %v polls", cycles, polls)
}

// TestAddressRanges shows that what closed interfaces keep is bounded.
func TestAddressRanges(t *testing.T) {
	dir := shmDir(t)
	c := Config{Dir: dir, RingLog2: 3, AttachCount: 77} // a size of its own
	kept := func() int {
		ownRanges.Lock()
		defer ownRanges.Unlock()
		g := newGeometry(new(c.withDefaults()))
		return len(ownRanges.free[uintptr(g.bytes)])
	}
	for range 20 {
		var all []hw.Iface
		for range 3 {
			all = append(all, open(t, c))
		}
		if n := kept(); n != 0 {
			t.Fatalf("%d ranges idle while three are open", n)
		}
		for _, i := range all {
			i.Close()
		}
		if n := kept(); n != 3 {
			t.Fatalf("%d ranges idle, want 3", n)
		}
	}
}
