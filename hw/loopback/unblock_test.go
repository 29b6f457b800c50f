package loopback

import (
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestRingRepair damages an idle ring in the ways from which a producer or the
// consumer alone does not find back, and then sends through it.
func TestRingRepair(t *testing.T) {
	const slots = 8
	seq := func(i *Iface, pos uint64) *uint64 { word, _ := slotWord(&i.rx.rings[0].ring, pos); return word }
	for name, damage := range map[string]func(i *Iface){
		"tail far ahead":  func(i *Iface) { atomic.StoreUint64(i.rx.rings[0].ring.TailWord(), 1<<40) },
		"tail far behind": func(i *Iface) { atomic.StoreUint64(i.rx.rings[0].ring.TailWord(), ^uint64(1<<20)) },
		"tail a lap ahead": func(i *Iface) {
			atomic.StoreUint64(i.rx.rings[0].ring.TailWord(),
				i.rx.rings[0].head+slots)
		},
		"tail past a hole": func(i *Iface) { atomic.StoreUint64(i.rx.rings[0].ring.TailWord(), i.rx.rings[0].head+3) },
		"tail behind":      func(i *Iface) { atomic.StoreUint64(i.rx.rings[0].ring.TailWord(), i.rx.rings[0].head-5) },
		"low lap beyond":   func(i *Iface) { atomic.StoreUint64(seq(i, i.rx.rings[0].head+1), 0) },
		"low lap and tail": func(i *Iface) {
			atomic.StoreUint64(seq(i, i.rx.rings[0].head+1), 0)
			atomic.StoreUint64(i.rx.rings[0].ring.TailWord(), i.rx.rings[0].head-8)
		},
		"high lap at head":   func(i *Iface) { atomic.StoreUint64(seq(i, i.rx.rings[0].head), 9<<hot.SeqLapShift) },
		"free with an owner": func(i *Iface) { atomic.AddUint64(seq(i, i.rx.rings[0].head), 5<<hot.SeqOwnerShift) },
		"taken by nothing": func(i *Iface) {
			atomic.AddUint64(seq(i, i.rx.rings[0].head),
				500<<hot.SeqOwnerShift|hot.SlotTaken)
		},
		"taken by a free": func(i *Iface) {
			atomic.AddUint64(seq(i, i.rx.rings[0].head),
				3<<hot.SeqOwnerShift|hot.SlotTaken)
		},
		"ready from nothing": func(i *Iface) { atomic.AddUint64(seq(i, i.rx.rings[0].head), hot.SlotReady) },
		"ready from a free": func(i *Iface) {
			atomic.AddUint64(seq(i, i.rx.rings[0].head),
				3<<hot.SeqOwnerShift|hot.SlotReady)
		},
		"state 3": func(i *Iface) { atomic.AddUint64(seq(i, i.rx.rings[0].head), 3) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := shmDir(t)
			a, b := open(t, Config{Dir: dir}), open(t, Config{Dir: dir, RingLog2: 3})
			next := uint64(0)
			b.SetHandler(1, func(_ hw.Source, n uint64, _, _ []byte) {
				if n != next {
					t.Fatalf("message %d came as number %d", n, next)
				}
				next++
			})
			ep, err := a.Connect(b.Address())
			if err != nil {
				t.Fatal(err)
			}
			sent := uint64(0)
			run := func(want uint64) {
				t.Helper()
				for end := time.Now().Add(hang); next < want; {
					if sent < want && ep.AMShort(1, sent, nil, nil) == nil {
						sent++
					}
					b.Progress(4)
					if time.Now().After(end) {
						t.Fatalf("%d of %d messages came: head %d, tail %d, %+v", next, sent, b.rx.rings[0].head,
							b.rx.rings[0].ring.Tail(), b.Stats())
					}
				}
			}
			run(21) // some laps
			damage(b)
			run(100)
			if s := b.Stats(); s.Delivered != 100 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestLostWithSender has a message in a bounce buffer whose segment is gone
// before the receiver polls: neither it nor what was sent after it comes, and
// the sender's end is reported.
func TestLostWithSender(t *testing.T) {
	dir := shmDir(t)
	a, b := open(t, Config{Dir: dir}), open(t, Config{Dir: dir})
	var got []uint64
	b.SetHandler(1, func(_ hw.Source, n uint64, _, _ []byte) { got = append(got, n) })
	gone := 0
	b.OnPeerEvent(func(e hw.PeerEvent) { gone++ })
	ep, err := a.Connect(b.Address())
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(4) {
		var err error
		if n == 2 {
			err = ep.AMBcopy(1, n, nil, 100, func([]byte) {}, 0)
		} else {
			err = ep.AMShort(1, n, nil, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Unlink(a.seg.path); err != nil { // as a sweep does after its owner was killed
		t.Fatal(err)
	}
	a.Close()
	b.Progress(8)
	if len(got) != 2 || got[1] != 1 {
		t.Errorf("got %v, want the first two", got)
	}
	b.CheckPeers()
	if s := b.Stats(); gone != 1 || s.Malformed != 0 || s.Delivered != 2 || attached(b) != 0 {
		t.Errorf("%d events, %d entries, %+v", gone, attached(b), s)
	}
}
