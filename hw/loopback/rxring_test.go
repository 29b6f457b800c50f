package loopback

import (
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/outbound"
)

// TestRings has more senders than a receiver has rings of their own. Each one's
// messages come in order, and only those alone on a ring send without locks.
func TestRings(t *testing.T) {
	const senders, laps = hot.RxRings + 4, 5
	dir := shmDir(t)
	to := open(t, Config{Dir: dir, RingLog2: 3, AttachCount: senders})
	next := make([]uint64, senders)
	to.SetHandler(1, func(src hw.Source, n uint64, _, _ []byte) {
		if n != next[src] {
			t.Fatalf("message %d of sender %d came as number %d", n, src, next[src])
		}
		next[src]++
	})
	var eps []*Endpoint
	for n := range senders {
		from := open(t, Config{Dir: dir, Exclusive: n%2 == 0})
		ep, err := from.Connect(to.Address())
		if err != nil {
			t.Fatal(err)
		}
		e := ep.(*Endpoint)
		if want := n%2 == 0 && n < hot.RxRings-1; e.exclusive != want {
			t.Errorf("sender %d: exclusive %v", n, e.exclusive)
		}
		var line hot.Peer
		if err := from.FillPeer(ep, &line); err != nil || (line.Exclusive != 0) != e.exclusive {
			t.Errorf("sender %d: line %+v, %v", n, line, err)
		}
		if used, want := len(to.rx.active()), min(n+1, hot.RxRings); used != want {
			t.Errorf("%d rings are in use by %d senders, want %d", used, n+1, want)
		}
		eps = append(eps, e)
	}
	for sent := uint64(0); sent < laps*8; {
		for n, ep := range eps {
			for ep.AMShort(1, sent, nil, nil) != nil {
				if to.Progress(3) == 0 {
					t.Fatalf("sender %d finds no room, and nothing has arrived", n)
				}
			}
		}
		sent++
	}
	for to.Progress(3) != 0 {
	}
	for n := range next {
		if next[n] != laps*8 {
			t.Errorf("%d messages of sender %d", next[n], n)
		}
	}
}

// TestRingChangesHands has one sender after the other in the same attach entry:
// each goes on in the ring where the one before ended.
func TestRingChangesHands(t *testing.T) {
	dir := shmDir(t)
	to := open(t, Config{Dir: dir, RingLog2: 2})
	sum := uint64(0)
	to.SetHandler(1, func(_ hw.Source, n uint64, _, _ []byte) { sum += n })
	want := uint64(0)
	for life := range uint64(30) {
		from := open(t, Config{Dir: dir, Exclusive: life%3 != 0})
		ep, err := from.Connect(to.Address())
		if err != nil {
			t.Fatal(err)
		}
		if owner := ep.(*Endpoint).owner; owner != 1 {
			t.Fatalf("sender %d has attach entry %d", life, owner-1)
		}
		for n := range 1 + life%4 {
			if err := ep.AMShort(1, life+n, nil, nil); err != nil {
				t.Fatal(err)
			}
			want += life + n
		}
		from.Close()
		to.Progress(8)
		to.CheckPeers()
	}
	if sum != want || to.rx.rings[0].head <= 2*4 {
		t.Errorf("sum %d, want %d; %+v", sum, want, to.Stats())
	}
}

// TestRingNumberRepair overwrites the number of rings in use.
func TestRingNumberRepair(t *testing.T) {
	dir := shmDir(t)
	from, to := open(t, Config{Dir: dir}), open(t, Config{Dir: dir})
	to.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {})
	ep, err := from.Connect(to.Address())
	if err != nil {
		t.Fatal(err)
	}
	for _, number := range []uint32{0, 1 << 31, ^uint32(0)} {
		atomic.StoreUint32(to.seg.ringsInUse(), number)
		if err := ep.AMShort(1, 0, nil, nil); err != nil {
			t.Fatal(err)
		}
		to.CheckPeers()
		if !to.Pending() || to.Progress(2) != 1 {
			t.Errorf("with %#x rings in use the message does not come", number)
		}
	}
}

// TestRenew has a ring's next sender find nothing of what the one before knew, or wrote.
func TestRenew(t *testing.T) {
	l := &open(t, Config{Dir: shmDir(t), RingLog2: 3}).rx.rings[0]
	l.head = 13
	atomic.StoreUint64(l.ring.TailWord(), 17)
	atomic.StoreUint64(outbound.FreeWord(&l.ring), 19)
	if _, _, ok := l.ring.Claim(1, true); ok {
		t.Error("a slot of no lap was taken")
	}
	l.renew()
	if tail, free := l.ring.Tail(), atomic.LoadUint64(outbound.FreeWord(&l.ring)); tail != l.head || free != 0 {
		t.Errorf("tail %d, free up to %d, head %d", tail, free, l.head)
	}
	for want := l.head; want != l.head+l.ring.Slots(); want++ {
		if _, pos, ok := l.ring.Claim(1, true); !ok || pos != want {
			t.Fatalf("claim gave %d, %v, want %d", pos, ok, want)
		}
	}
}
