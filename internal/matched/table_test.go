package matched

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/order"
)

// TestWay: writes go with their commands up to what the device takes of them, which may be more than a message.
func TestWay(t *testing.T) {
	e := &Endpoint{attr: hw.MatchAttr{MaxInject: 192, MaxWrite: 224}}
	for _, c := range []struct {
		kind kind
		n    uint64
		want way
	}{
		{kindWrite, 0, wayNone}, {kindWrite, 224, wayInline}, {kindWrite, 225, wayMapped}, {kindSend, 192, wayInline},
		{kindSend, 193, wayMapped}, {kindRead, 8, wayMapped}, {kindFetch, 16, wayInline}, {kindReceive, 8, wayMapped},
	} {
		if got := e.way(c.kind, c.n); got != c.want {
			t.Errorf("kind %d, %d bytes: %d, not %d", c.kind, c.n, got, c.want)
		}
	}
}

// TestStripes: a table has the places that it is to have, in a power of two of stripes, of which each gives out all.
func TestStripes(t *testing.T) {
	for _, c := range []struct{ places, asked, stripes int }{
		{4, 0, 1}, {4, 8, 1}, {32, 2, 2}, {33, 3, 2}, {100, 8, 4}, {1 << 12, 1 << 10, maxStripes},
	} {
		table := newTable(c.places, c.asked, order.Word{})
		if len(table.stripes) != c.stripes || table.room() != c.places {
			t.Errorf("%d places, %d stripes asked for: %d, room for %d", c.places, c.asked, len(table.stripes),
				table.room())
		}
		seen := map[uint64]bool{}
		for n := range c.places {
			context, ok := table.add(&operation{kind: kindSend, hint: uint32(n / 3)})
			p, s := table.at(context)
			if !ok || seen[context] || p == nil || table.places[s.first:][context&placeMask].word != p.word {
				t.Fatalf("%d places: operation %d is %#x, %v", c.places, n, context, ok)
			}
			seen[context] = true
		}
		if _, ok := table.add(&operation{}); ok || table.room() != 0 {
			t.Errorf("%d places: there is one more, room for %d", c.places, table.room())
		}
		for context := range seen {
			p, s := table.at(context)
			table.end(p, s, context)
			if late, _ := table.at(context); late != nil {
				t.Errorf("operation %#x is there behind its end", context)
			}
		}
		if table.room() != c.places {
			t.Errorf("%d places: room for %d at the end", c.places, table.room())
		}
	}
	table := newTable(64, 4, order.Word{})
	const first = 1 << contextWord
	for _, context := range []uint64{0, contextNone, first, first | 5<<contextStripe, first | 200} {
		if p, _ := table.at(context); p != nil {
			t.Errorf("there is an operation %#x", context)
		}
	}
}

// TestStripeBusy: a thread passes by a stripe that another takes from, and finds no place where all are taken from.
func TestStripeBusy(t *testing.T) {
	table := newTable(64, 2, order.Word{})
	table.stripes[1].lease.Take()
	context, ok := table.add(&operation{kind: kindSend, hint: 1})
	if stripe := uint32(context) >> contextStripe; !ok || stripe != 0 {
		t.Errorf("%v, of stripe %d", ok, stripe)
	}
	table.stripes[0].lease.Take()
	if _, ok := table.claim(0, false); ok {
		t.Error("a place of a stripe that is another's")
	}
	table.stripes[1].lease.Give()
	if at, ok := table.claim(0, false); !ok || at.stripe != 1 {
		t.Errorf("%v, of stripe %d", ok, at.stripe)
	}
}

// TestOldest: of receives with the same context the one that was posted first is found, of whatever stripe.
func TestOldest(t *testing.T) {
	table := newTable(64, 4, order.Word{})
	var names []uint64
	for _, hint := range []uint32{3, 0, 2, 1} {
		table.add(&operation{kind: kindSearch, context: 7, hint: hint})
		name, _ := table.add(&operation{kind: kindReceive, context: 7, hint: hint})
		names = append(names, name)
	}
	for _, want := range names {
		name, ok := table.find(7)
		if !ok || name != want {
			t.Fatalf("%#x, %v: not %#x of %#x", name, ok, want, names)
		}
		p, s := table.at(name)
		table.end(p, s, name)
	}
	if name, ok := table.find(7); ok {
		t.Errorf("%#x is a receive", name)
	}
}

// TestTogether: threads that post and take back, two that end what was posted, under the progress lease, and one that
// searches for receives and for what is under way: no place and no buffer is given out twice or lost, and each
// operation ends as it was posted.
func TestTogether(t *testing.T) {
	const requesters, rounds = 3, 3000
	for _, stripes := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d stripes", stripes), func(t *testing.T) {
			table := newTable(70, stripes, order.Word{})
			for k := range table.stripes {
				each := copyCount / len(table.stripes)
				table.stripes[k].copies.Open(uint32(k*each+1), uint32(each))
			}
			device := make(chan uint64, 70)
			var posted, ended sync.WaitGroup
			var owners [requesters]atomic.Int64
			for k := range requesters {
				posted.Go(func() { postTogether(t, table, uint64(k), rounds, device) })
			}
			var progress order.Lock
			for range 2 {
				ended.Go(func() {
					for context := range device {
						progress.Take()
						p, s := table.at(context)
						if p == nil || p.len != p.context || uint64(p.to) != p.tag {
							t.Errorf("operation %#x: %+v", context, p)
						} else {
							owners[p.tag].Add(1)
							table.end(p, s, context)
						}
						progress.Give()
					}
				})
			}
			stop := make(chan struct{})
			ended.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						if name, ok := table.find(1); ok && uint32(name)>>contextStripe >= uint32(len(table.stripes)) {
							t.Errorf("receive %#x", name)
						}
						_ = table.underway(hw.MatchAddress(1))
						runtime.Gosched()
					}
				}
			})
			posted.Wait()
			close(device)
			close(stop)
			ended.Wait()
			for k := range requesters {
				if n := owners[k].Load(); n != rounds {
					t.Errorf("%d of %d operations of thread %d have ended", n, rounds, k)
				}
			}
			free := 0
			for k := range table.stripes {
				free += table.stripes[k].copies.Len()
			}
			if table.room() != 70 || free != copyCount {
				t.Errorf("room for %d, %d buffers at the end", table.room(), free)
			}
		})
	}
}

// postTogether posts operations of one thread, each fourth of which the device refuses first.
func postTogether(t *testing.T, table *table, thread uint64, rounds int, device chan<- uint64) {
	for n := 0; n < rounds; {
		o := operation{kind: kindReceive, to: hw.MatchAddress(thread), tag: thread, hint: uint32(thread),
			context: uint64(n % 5), len: uint64(n % 5)}
		copied := n%3 == 0
		at, ok := table.claim(o.hint, copied)
		if !ok {
			runtime.Gosched()
			continue
		}
		o.copied = uint16(at.buffer)
		if copied != (o.copied != 0) {
			t.Errorf("buffer %d, wanted %v", o.copied, copied)
		}
		context := table.enter(at, &o)
		if n%4 == 0 {
			p, s := table.at(context)
			s.lease.Take()
			if p.copied != 0 {
				s.copies.Undo(uint32(p.copied))
			}
			table.revoke(p, s, context)
			s.lease.Give()
			o.copied = 0
			if context, ok = table.add(&o); !ok {
				continue
			}
		}
		device <- context
		n++
	}
}
