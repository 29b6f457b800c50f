package cxi

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// matching is an interface that has the NIC match messages, and what has become of what it has posted.
type matching struct {
	t       testing.TB
	i       *Iface
	m       hw.Matcher
	self    hw.MatchAddress
	memory  hw.Memory
	b       []byte // of memory
	events  []hw.MatchEvent
	unknown uint64 // events of kinds that nothing expects, by the test's doing
}

func newMatching(t testing.TB, c MatchConfig, size int) *matching {
	t.Helper()
	switch os.Getenv("WEFT_TEST_CXI_MATCH") {
	case "software":
		c.Mode = MatchSoftware
	case "hybrid":
		c.Mode, c.Unexpected = MatchHybrid, 2
	case "restricted":
		c.Restricted = true
	}
	x := &matching{t: t, i: open(t, Config{Match: c.forTest(), Direct: true})}
	x.m = x.i.Matcher()
	if x.m == nil || x.i.Attr().Caps&hw.CapMatching == 0 {
		t.Fatal("the interface does not match")
	}
	x.m.OnMatch(func(e *hw.MatchEvent) { x.events = append(x.events, *e) })
	var err error
	if x.memory, err = x.i.d.Alloc(hw.Region{Len: size, Access: hw.LocalWrite}); err != nil {
		t.Fatal(err)
	}
	r := x.memory.Region()
	s := hw.Segment{Addr: r.Addr, Len: size}
	x.b = segmentBytes(&s)
	if x.self, err = x.m.ParseMatchName(x.m.MatchName()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		x.checkUnknown()
		if err := errors.Join(x.i.Close(), x.memory.Close()); err != nil {
			t.Error(err)
		}
	})
	return x
}

// at is a piece of the memory.
func (x *matching) at(off, n int) hw.Segment {
	if n == 0 {
		return hw.Segment{}
	}
	s := hw.Segment{Addr: x.memory.Region().Addr, Len: n, Memory: x.memory}
	s.Addr = addressPointer(x.b[off : off+n])
	return s
}

func (x *matching) send(s hw.MatchSend) {
	x.t.Helper()
	for end := time.Now().Add(time.Minute); ; x.i.Progress(64) {
		err := x.m.PostMatched(&s)
		if err == nil {
			return
		}
		if !errors.Is(err, hw.ErrNoResource) || time.Now().After(end) {
			x.t.Fatal(err)
		}
	}
}

func (x *matching) receive(r hw.MatchReceive) hw.MatchID {
	x.t.Helper()
	id, err := x.m.PostReceive(&r)
	for end := time.Now().Add(10 * time.Second); errors.Is(err, hw.ErrNoResource) && time.Now().Before(end); {
		x.i.Progress(64) // the list changes to software
		id, err = x.m.PostReceive(&r)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return id
}

// await makes progress on both sides until each has as many events.
func await(a, b *matching, na, nb int) {
	a.t.Helper()
	for end := time.Now().Add(time.Minute); len(a.events) < na || len(b.events) < nb; {
		if n := a.i.Progress(64) + b.i.Progress(64); n == 0 {
			time.Sleep(10 * time.Microsecond)
		}
		if time.Now().After(end) {
			a.t.Fatalf("%d of %d and %d of %d events: %+v %+v", len(a.events), na, len(b.events), nb, a.events,
				b.events)
		}
	}
}

func (x *matching) clear() { x.events = x.events[:0] }

// sizes are those at which the way of a message changes, and some between.
var sizes = []int{0, 1, 192, 193, 2048, 16384, 18433, 18434, 1 << 20}

// fillBytes makes content that depends on a seed.
func fillBytes(b []byte, seed uint64) {
	r := rand.NewPCG(seed, 77)
	for k := range b {
		b[k] = byte(r.Uint64())
	}
}

// TestMatchSizes sends messages of each size, to a receive that is there and to one that comes later.
func TestMatchSizes(t *testing.T) {
	const size = 1 << 20
	a, b := newMatching(t, MatchConfig{}, size), newMatching(t, MatchConfig{}, size)
	for _, expected := range []bool{true, false} {
		for _, n := range sizes {
			for _, tagged := range []bool{true, false} {
				for _, matched := range []bool{true, false} {
					name := fmt.Sprintf("%d bytes, expected %v, tagged %v, matched %v", n, expected, tagged, matched)
					fillBytes(a.b[:n], uint64(n))
					clear(b.b)
					r := hw.MatchReceive{From: a.self, Tagged: tagged, Local: b.at(0, n), Context: 5}
					s := hw.MatchSend{To: b.self, Tagged: tagged, Data: 0x1122334455667788, HasData: n%2 == 0,
						Local:   a.at(0, n),
						Matched: matched, Context: 6}
					if tagged {
						r.Tag, r.Ignore, s.Tag = 0x123456780000, 0xffff, 0x123456781234
					}
					if expected {
						b.receive(r)
						a.send(s)
					} else {
						a.send(s)
						for end := time.Now().Add(2 * time.Millisecond); time.Now().Before(end); a.i.Progress(8) {
							b.i.Progress(8)
						}
						if matched && len(a.events) != 0 {
							t.Fatalf("%s: it has ended before its receive was there", name)
						}
						b.receive(r)
					}
					await(a, b, 1, 1)
					want := hw.MatchEvent{Kind: hw.MatchReceived, Context: 5, From: a.self, Tagged: tagged, Tag: s.Tag,
						HasData: s.HasData,
						Length:  uint64(n), Wanted: uint64(n), Last: true}
					if s.HasData {
						want.Data = s.Data
					}
					if got := b.events[0]; got != want {
						t.Fatalf("%s: %+v, want %+v", name, got, want)
					}
					if got := a.events[0]; got != (hw.MatchEvent{Kind: hw.MatchSent, Context: 6, Last: true}) {
						t.Fatalf("%s: %+v", name, got)
					}
					if !bytes.Equal(a.b[:n], b.b[:n]) {
						t.Fatalf("%s: damaged", name)
					}
					a.clear()
					b.clear()
				}
			}
		}
	}
}

// TestMatchTruncated: a message that is longer than its receive is cut off there, however it comes.
func TestMatchTruncated(t *testing.T) {
	a, b := newMatching(t, MatchConfig{}, 1<<17), newMatching(t, MatchConfig{}, 1<<17)
	for _, expected := range []bool{true, false} {
		for _, n := range []int{100, 5000, 100000} {
			for _, room := range []int{0, 10, n - 1} {
				fillBytes(a.b[:n], uint64(n))
				clear(b.b)
				r := hw.MatchReceive{From: hw.AnyAddress, Local: b.at(0, room)}
				if expected {
					b.receive(r)
				}
				a.send(hw.MatchSend{To: b.self, Local: a.at(0, n)})
				if !expected {
					for end := time.Now().Add(2 * time.Millisecond); time.Now().Before(end); a.i.Progress(8) {
						b.i.Progress(8)
					}
					b.receive(r)
				}
				await(a, b, 1, 1)
				if e := b.events[0]; e.Length != uint64(room) || e.Wanted != uint64(n) || e.Err != nil ||
					!bytes.Equal(a.b[:room], b.b[:room]) ||
					b.b[room] != 0 {
					t.Errorf("%d bytes to %d, expected %v: %+v", n, room, expected, e)
				}
				a.clear()
				b.clear()
			}
		}
	}
}

// TestMatchMulti: a receive of many messages takes them one behind the other, long ones and those that came before it,
// and says when it takes no more.
func TestMatchMulti(t *testing.T) {
	const room = 150000
	a, b := newMatching(t, MatchConfig{}, 1<<18), newMatching(t, MatchConfig{}, 1<<18)
	fillBytes(a.b, 3)
	lengths := []int{10, 3000, 40000, 0, 192, 20000, 64, 60000, 18433, 100}
	for early := range lengths {
		clear(b.b)
		r := hw.MatchReceive{From: hw.AnyAddress, Local: b.at(0, room), Multi: true, MinFree: 10000, Context: 9}
		for k, n := range lengths {
			if k == early {
				for end := time.Now().Add(time.Millisecond); time.Now().Before(end); a.i.Progress(8) {
					b.i.Progress(8)
				}
				b.receive(r)
			}
			a.send(hw.MatchSend{To: b.self, Local: a.at(k*100, n), Data: uint64(k), HasData: true})
		}
		await(a, b, len(lengths)-1, len(lengths)-1) // the last finds no receive
		at, seen := uint64(0), map[uint64]hw.MatchEvent{}
		for _, e := range b.events {
			seen[e.Data] = e
		}
		for k, n := range lengths[:len(lengths)-1] {
			e := seen[uint64(k)]
			if e.Wanted != uint64(n) || e.Err != nil || n > 0 && e.Offset != at || !bytes.Equal(b.b[at:at+e.Length],
				a.b[k*100:k*100+int(e.Length)]) {
				t.Errorf("%d came before, message %d: %+v", early, k, e)
			}
			at += e.Length
		}
		if last := b.events[len(b.events)-1]; !last.Last {
			t.Errorf("%d came before: the receive goes on after %d of %d bytes", early, at, room)
		}
		b.receive(hw.MatchReceive{From: hw.AnyAddress, Local: b.at(room, 100)})
		await(a, b, len(lengths), len(lengths))
		a.clear()
		b.clear()
	}
}

// TestMatchSearch: a search finds what came before its receive, and leaves it.
func TestMatchSearch(t *testing.T) {
	a, b := newMatching(t, MatchConfig{}, 1<<16), newMatching(t, MatchConfig{}, 1<<16)
	find := func(tag uint64) hw.MatchEvent {
		t.Helper()
		b.clear()
		if err := b.m.Search(&hw.MatchReceive{From: hw.AnyAddress, Tagged: true, Tag: tag, Context: 4}); err != nil {
			t.Fatal(err)
		}
		await(a, b, 0, 1)
		return b.events[0]
	}
	if e := find(7); e.Kind != hw.MatchMissing || e.Context != 4 {
		t.Errorf("%+v", e)
	}
	for _, n := range []int{0, 64, 30000} {
		a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: uint64(n), Local: a.at(0, n), Data: 8, HasData: true})
	}
	for range 2 {
		for _, n := range []int{30000, 0, 64} {
			e := find(uint64(n))
			for end := time.Now().Add(time.Minute); e.Kind == hw.MatchMissing && time.Now().Before(end); e = find(uint64(n)) {
			}
			if e.Kind != hw.MatchFound || e.From != a.self || e.Tag != uint64(n) || e.Wanted != uint64(n) ||
				e.Data != 8 {
				t.Errorf("%d bytes: %+v", n, e)
			}
		}
	}
	if e := find(8); e.Kind != hw.MatchMissing {
		t.Errorf("%+v", e)
	}
	b.clear()
	for _, n := range []int{64, 30000, 0} {
		b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: uint64(n), Local: b.at(0, n)})
	}
	await(a, b, 3, 3)
}

// TestMatchCancel: of cancelling a receive and its message one wins, and the other says so.
func TestMatchCancel(t *testing.T) {
	a, b := newMatching(t, MatchConfig{Receives: 2}, 1<<16), newMatching(t, MatchConfig{Receives: 2}, 1<<16)
	r := rand.New(rand.NewPCG(1, 4))
	lost := 0
	for k := range 500 {
		n := []int{0, 8, 5000, 40000}[r.IntN(4)]
		multi := n > 0 && r.IntN(2) == 0
		id := b.receive(hw.MatchReceive{From: hw.AnyAddress, Local: b.at(0, n), Context: uint64(k), Multi: multi,
			MinFree: 1})
		if r.IntN(2) == 0 {
			a.send(hw.MatchSend{To: b.self, Local: a.at(0, n)})
			lost++
		}
		if err := b.m.CancelReceive(id); err != nil {
			t.Fatal(err)
		}
		if err := b.m.CancelReceive(id); !errors.Is(err, hw.ErrInvalid) {
			t.Fatalf("cancelled twice: %v", err)
		}
		b.clear()
		await(a, b, 0, 1)
		if e := b.events[0]; e.Kind == hw.MatchReceived {
			lost--
		} else if e.Kind != hw.MatchCanceled || e.Context != uint64(k) {
			t.Fatalf("%+v", e)
		}
		for ; lost > 0; lost-- { // it came too late
			b.clear()
			b.receive(hw.MatchReceive{From: hw.AnyAddress, Local: b.at(0, 1<<16)})
			await(a, b, 0, 1)
		}
		a.clear()
	}
	b.clear()
	for range 2 { // all ids are free again
		b.receive(hw.MatchReceive{From: hw.AnyAddress})
	}
}

// TestMatchCancelLanding: a message that was landing when its receive of many messages was taken out of the NIC's list
// is reported behind that, and then the receive ends. What comes later is counted.
func TestMatchCancelLanding(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_MATCH") != "" {
		t.Skip("the NIC is to have the receive")
	}
	a, b := newMatching(t, MatchConfig{}, 1<<16), newMatching(t, MatchConfig{}, 1<<16)
	id := b.receive(hw.MatchReceive{From: hw.AnyAddress, Local: b.at(0, 1<<16), Context: 7, Multi: true,
		MinFree: 1})
	x := &b.i.match.rx
	x.unlinked(x.receive(uint32(id)), wire.RcOk) // before the messages' events, as the NIC has the receive still
	x.leaving.list[0].until = time.Now().Add(time.Minute)
	for k := range 3 {
		fillBytes(a.b[:5000], uint64(k))
		a.send(hw.MatchSend{To: b.self, Local: a.at(0, 5000)})
		await(a, b, 1, k+1)
		got := b.b[k*5000:][:5000]
		if e := b.events[k]; e.Kind != hw.MatchReceived || e.Last || !bytes.Equal(a.b[:5000], got) {
			t.Fatalf("%+v", e)
		}
		a.clear()
	}
	x.leaving.list[0].until = time.Time{}
	await(a, b, 0, 4)
	if e := b.events[3]; e.Kind != hw.MatchCanceled || !e.Last || e.Context != 7 {
		t.Fatalf("%+v", e)
	}
	a.send(hw.MatchSend{To: b.self, Local: a.at(0, 5000)})
	await(a, b, 1, 4)
	for b.m.(hw.MatchCounter).MatchStats().Malformed == 0 {
		b.i.Progress(8)
	}
	if len(b.events) != 4 {
		t.Errorf("%+v", b.events[4:])
	}
}

// TestMatchClaim: a message that is set aside goes to the receive that names it alone, of each size, and once.
func TestMatchClaim(t *testing.T) {
	a, b := newMatching(t, MatchConfig{}, 1<<20+8), newMatching(t, MatchConfig{}, 1<<20+8)
	c := b.m.(hw.Claimer)
	for _, n := range sizes {
		for _, matched := range []bool{true, false} {
			for _, discard := range []bool{true, false} {
				fillBytes(a.b[:n+8], uint64(n))
				clear(b.b)
				a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: 7, Data: 1, HasData: true,
					Local: a.at(0, n), Matched: matched})
				a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: 7, Data: 2, HasData: true,
					Local: a.at(n, 8)})
				want := b.claim(a, hw.MatchReceive{From: a.self, Tagged: true, Tag: 7, Context: 4})
				if want.Kind != hw.MatchFound || want.Data != 1 || want.Wanted != uint64(n) ||
					want.Claim == 0 {
					t.Fatalf("%d bytes: %+v", n, want)
				}
				b.clear()
				b.post(hw.MatchReceive{From: a.self, Tagged: true, Tag: 7, Local: b.at(1<<20,
					8), Context: 5})
				await(a, b, 1, 1)
				if e := b.events[0]; e.Data != 2 || e.Context != 5 || !bytes.Equal(b.b[1<<20:],
					a.b[n:n+8]) {
					t.Fatalf("%d bytes are set aside, and the receive gets %+v", n, e)
				}
				r := hw.MatchReceive{Local: b.at(0, n), Context: 6}
				if discard {
					r.Local = hw.Segment{}
				}
				b.clear()
				if err := c.ReceiveClaimed(want.Claim, &r); err != nil {
					t.Fatal(err)
				}
				if err := c.ReceiveClaimed(want.Claim, &r); !errors.Is(err, hw.ErrInvalid) {
					t.Errorf("received twice: %v", err)
				}
				await(a, b, 2, 1)
				if e := b.events[0]; e.Context != 6 || e.Data != 1 || e.Err != nil ||
					e.Wanted != uint64(n) ||
					!discard && (e.Length != uint64(n) || !bytes.Equal(a.b[:n],
						b.b[:n])) || discard && e.Length != 0 {
					t.Errorf("%d bytes: %+v", n, e)
				}
				a.clear()
				b.clear()
			}
		}
	}
	if e := b.claim(a, hw.MatchReceive{From: a.self, Tagged: true, Tag: 7,
		Context: 8}); e.Kind != hw.MatchMissing || e.Context != 8 {
		t.Errorf("%+v", e)
	}
	if s := b.m.(hw.MatchCounter).MatchStats(); !taking(s.State) || s.Doorbells == 0 || s.Malformed != 0 {
		t.Errorf("%+v", s)
	}
}

// claim sets a message from a aside, if one comes within a while.
func (x *matching) claim(a *matching, r hw.MatchReceive) hw.MatchEvent {
	x.t.Helper()
	for range 20 {
		x.clear()
		err := x.m.(hw.Claimer).Claim(&r)
		if err != nil && !errors.Is(err, hw.ErrNoResource) {
			x.t.Fatal(err)
		}
		if err == nil {
			await(a, x, 0, 1)
			if x.events[0].Kind == hw.MatchFound {
				break
			}
		}
		for end := time.Now().Add(time.Millisecond); time.Now().Before(end); x.i.Progress(64) {
			a.i.Progress(64)
		}
	}
	if len(x.events) == 0 {
		x.t.Fatal("no answer")
	}
	return x.events[0]
}

// TestMatchRandom: messages of all kinds, between two that send to each other, each arrive once, whole, at the receive
// that matches, in order.
func TestMatchRandom(t *testing.T) {
	const most, count = 40000, 1500
	a, b := newMatching(t, MatchConfig{Sends: 32, Receives: 64}, most*32), newMatching(t, MatchConfig{Sends: 32,
		Receives: 64}, most*32)
	r := rand.New(rand.NewPCG(8, 8))
	var sent, posted [4]int // by tag
	var place [32]int       // of a receive among those of its tag
	sending, receiving := make([]bool, 32), make([]bool, 32)
	next := [4]int{}
	a.m.OnMatch(func(e *hw.MatchEvent) {
		if e.Err != nil {
			t.Error(e.Err)
		}
		sending[e.Context] = false
	})
	done := 0
	length := func(tag, k int) int { return sizes[(k*7+tag)%8] }
	b.m.OnMatch(func(e *hw.MatchEvent) {
		tag, n := int(e.Tag), length(int(e.Tag), int(e.Data))
		want := make([]byte, n)
		fillBytes(want, e.Data*4+e.Tag)
		if e.Err != nil || int(e.Data) != place[e.Context] || e.Wanted != uint64(n) || e.Length != uint64(n) ||
			!bytes.Equal(want, b.b[int(e.Context)*most:][:n]) {
			t.Errorf("%+v, want %d bytes", *e, n)
		}
		receiving[e.Context] = false
		next[tag]++
		done++
	})
	idle := func(list []bool) int {
		for k, used := range list {
			if !used {
				return k
			}
		}
		return -1
	}
	for end := time.Now().Add(2 * time.Minute); done < count; {
		tag := r.IntN(4)
		if k := idle(sending); k >= 0 && r.IntN(2) == 0 && sent[0]+sent[1]+sent[2]+sent[3] < count {
			n := length(tag, sent[tag])
			fillBytes(a.b[k*most:][:n], uint64(sent[tag]*4+tag))
			s := hw.MatchSend{To: b.self, Tagged: true, Tag: uint64(tag), Data: uint64(sent[tag]), HasData: true,
				Local:   a.at(k*most, n),
				Matched: r.IntN(3) == 0, More: r.IntN(2) == 0, Context: uint64(k)}
			if err := a.m.PostMatched(&s); err == nil {
				sending[k] = true
				sent[tag]++
			} else if !errors.Is(err, hw.ErrNoResource) {
				t.Fatal(err)
			}
		}
		if k := idle(receiving); k >= 0 && r.IntN(2) == 0 && posted[tag]-sent[tag] < 4 {
			b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: uint64(tag), Local: b.at(k*most, most),
				More: r.IntN(2) == 0, Context: uint64(k)})
			receiving[k], place[k] = true, posted[tag]
			posted[tag]++
		}
		if r.IntN(4) == 0 {
			a.m.RingMatched()
			b.m.RingMatched()
			a.i.Progress(r.IntN(8))
			b.i.Progress(r.IntN(8))
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d: sent %v posted %v came %v", done, count, sent, posted, next)
		}
	}
	b.m.OnMatch(func(*hw.MatchEvent) {}) // receives that are left
}

// TestMatchBoth: both sides fill all places with messages that wait for their match, and still each gives the other its
// notices.
func TestMatchBoth(t *testing.T) {
	const count = 40
	a, b := newMatching(t, MatchConfig{Sends: count}, 4096), newMatching(t, MatchConfig{Sends: count}, 4096)
	for k := range count {
		a.send(hw.MatchSend{To: b.self, Inject: []byte{byte(k)}, Matched: true})
		b.send(hw.MatchSend{To: a.self, Inject: []byte{byte(k)}, Matched: true})
	}
	for k := range count {
		a.receive(hw.MatchReceive{From: b.self, Local: a.at(k, 1)})
		b.receive(hw.MatchReceive{From: a.self, Local: b.at(k, 1)})
	}
	await(a, b, 2*count, 2*count)
	for k := range count {
		if a.b[k] != byte(k) || b.b[k] != byte(k) {
			t.Errorf("message %d: %d, %d", k, a.b[k], b.b[k])
		}
	}
}

// TestMatchWakeup: a message, and the end of one, wake a sleeping thread.
func TestMatchWakeup(t *testing.T) {
	a, b := newMatching(t, MatchConfig{}, 4096), newMatching(t, MatchConfig{}, 4096)
	for _, x := range []*matching{a, b} {
		if err := x.i.EnableWait(); err != nil {
			t.Fatal(err)
		}
	}
	b.receive(hw.MatchReceive{From: a.self, Local: b.at(0, 8)})
	a.arm()
	b.arm()
	a.send(hw.MatchSend{To: b.self, Inject: []byte{1, 2, 3}})
	a.woken()
	b.woken()
	await(a, b, 1, 1)
}

// arm asks for the doorbell of an interface that has nothing to do.
func (x *matching) arm() {
	x.t.Helper()
	for x.i.Arm(); x.i.Pending(); x.i.Arm() {
		x.i.Disarm()
		x.i.Progress(8)
	}
}

// woken waits for the doorbell.
func (x *matching) woken() {
	x.t.Helper()
	p := []unix.PollFd{{Fd: int32(x.i.DoorbellFD()), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 10000)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll(p, 10000)
	}
	if n != 1 {
		x.t.Fatalf("nothing wakes it: %d, %v", n, err)
	}
	x.i.Disarm()
}
