package flow

import (
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// peer is a transport and the peer behind it: it has what was posted until the test has it end.
type peer struct {
	t       *testing.T
	set     Set
	now     congestion.Time
	room    int // for posts and messages, below 0: any number
	lost    bool
	flying  []congestion.Segment
	sent    []message
	refuses fi.Errno       // what Send fails with, or Success
	ended   map[int]string // how transfers have ended, by ID
	begins  func(t *Transfer)
}

type message struct{ at, n uint64 }

const piece = 1000 // bytes of a message at most

// newPeer returns a peer, and a flow to it with a window of so many segments of 4096 bytes.
func newPeer(t *testing.T, window int) (*peer, *Flow) {
	t.Helper()
	c := config.Default()
	c.CC, c.InitialCwnd, c.MaxCwnd = "fixed", window, max(window, c.MaxCwnd)
	c.SegmentSize, c.MinSegment, c.MaxSegment = 4096, 4096, 4096
	p := &peer{t: t, room: -1, ended: map[int]string{}}
	p.set = NewSet(func() congestion.Time { p.now++; return p.now })
	f, err := p.set.New(c, &hw.Attr{})
	if err != nil {
		t.Fatal(err)
	}
	return p, f
}

func (p *peer) full() bool {
	if p.room == 0 {
		return true
	}
	p.room--
	return false
}

func (p *peer) Post(t *Transfer, seg congestion.Segment) (ended, posted bool) {
	if p.full() {
		return t.Unpost(seg)
	}
	p.flying = append(p.flying, seg)
	return false, true
}

func (p *peer) End(t *Transfer) {
	if how, twice := p.ended[int(t.ID)]; twice {
		p.t.Errorf("transfer %d ends again, after %s", t.ID, how)
	}
	p.ended[int(t.ID)] = t.Status.Error()
	if p.begins != nil {
		p.begins(t)
	}
}

func (p *peer) Lost() bool { return p.lost }

// messages is a peer to which segments go as messages.
type messages struct{ *peer }

func (p messages) Post(t *Transfer, seg congestion.Segment) (ended, posted bool) {
	return t.SendSegment(seg)
}

func (p messages) Send(t *Transfer, at, most uint64) (n uint64, err error) {
	switch {
	case p.refuses != fi.Success:
		return 0, p.refuses
	case p.full():
		return 0, fi.EAGAIN
	}
	n = min(most, piece)
	p.sent = append(p.sent, message{at, n})
	return n, nil
}

func (p *peer) want(id int, how fi.Errno) {
	p.t.Helper()
	if p.ended[id] != how.Error() {
		p.t.Errorf("transfer %d: %q, want %q", id, p.ended[id], how.Error())
	}
}

// TestWindow has no more segments in flight than the window lets out, whichever end first, and every byte move once.
func TestWindow(t *testing.T) {
	p, f := newPeer(t, 3)
	r := rand.New(rand.NewPCG(1, 2))
	const total = 41_234
	transfer := p.set.Transfer(7, p)
	f.Begin(transfer, total)
	moved := map[int64]int64{}
	for len(p.ended) == 0 {
		if n := len(p.flying); n == 0 || n > 3 {
			t.Fatalf("%d segments in flight in a window of 3", n)
		}
		i := r.IntN(len(p.flying))
		seg := p.flying[i]
		p.flying = slices.Delete(p.flying, i, i+1)
		moved[seg.Offset] = seg.Length
		transfer.Ended(seg, 0)
		f.Pump()
	}
	p.want(7, fi.Success)
	at := int64(0)
	for at < total {
		n := moved[at]
		if n <= 0 {
			t.Fatalf("nothing was moved from %d", at)
		}
		at += n
	}
	if at != total || len(p.flying) != 0 || p.set.Busy() || f.Path().Inflight() != 0 {
		t.Errorf("%d of %d bytes, %d segments and %d bytes in flight, busy %v", at, total, len(p.flying),
			f.Path().Inflight(), p.set.Busy())
	}
	f.Begin(p.set.Transfer(8, p), 0)
	p.want(8, fi.Success)
}

// TestNoRoom has a segment without room wait until progress pumps the set.
func TestNoRoom(t *testing.T) {
	p, f := newPeer(t, 8)
	p.room = 1
	transfer := p.set.Transfer(1, p)
	f.Begin(transfer, 3*4096)
	if len(p.flying) != 1 || !p.set.Busy() {
		t.Fatalf("%d segments, busy %v", len(p.flying), p.set.Busy())
	}
	p.set.Pump()
	if len(p.flying) != 1 || !p.set.Busy() {
		t.Fatalf("without room: %d segments, busy %v", len(p.flying), p.set.Busy())
	}
	p.room = -1
	p.set.Pump()
	if len(p.flying) != 3 || p.set.Busy() {
		t.Fatalf("with room: %d segments, busy %v", len(p.flying), p.set.Busy())
	}
	for _, seg := range p.flying {
		transfer.Ended(seg, 0)
	}
	p.want(1, fi.Success)
}

// TestMessages has segments go as messages, as there is room, and answers end them in order.
func TestMessages(t *testing.T) {
	p, f := newPeer(t, 2)
	p.room = 3
	transfer := p.set.Transfer(1, messages{p})
	f.Begin(transfer, 4*4096)
	var left atomic.Uint64
	left.Store(100)
	if transfer.Answered(wire.NoPlace, 1, fi.Success, &left) {
		t.Error("an answer ends a segment of which a part is sent")
	}
	for range 100 {
		p.room = 2
		p.set.Pump()
	}
	if len(p.sent) != 10 || p.set.Busy() {
		t.Fatalf("%d messages of two segments, busy %v", len(p.sent), p.set.Busy())
	}
	p.room = -1
	for answers := range uint64(4) {
		if got := len(p.sent); got != min(20, 10+5*int(answers)) {
			t.Errorf("%d messages after %d answers", got, answers)
		}
		if !transfer.Answered(wire.NoPlace, 1, fi.Success, &left) || left.Load() != 99-answers {
			t.Errorf("answer %d is not taken; %d left", answers, left.Load())
		}
	}
	p.want(1, fi.Success)
	at := uint64(0)
	for _, m := range p.sent {
		if m.at != at || m.n == 0 || m.n > piece {
			t.Fatalf("message of %d bytes at %d, want it at %d", m.n, m.at, at)
		}
		at += m.n
	}
	if at != 4*4096 {
		t.Errorf("%d bytes were sent", at)
	}
}

// TestAnsweredByPlace has answers name bytes of the operation, in no order, and parts of a segment.
func TestAnsweredByPlace(t *testing.T) {
	p, f := newPeer(t, 3)
	transfer := p.set.Transfer(1, flies{p})
	f.Begin(transfer, 3*4096)
	var left atomic.Uint64
	answer := func(at, units uint64, want bool) {
		t.Helper()
		if got := transfer.Answered(at, units, fi.Success, &left); got != want {
			t.Errorf("%d units at %d: %v", units, at, got)
		}
	}
	left.Store(3 * 4096)
	answer(3*4096, 1, false)
	answer(4096, 4000, true)
	answer(8192, 4096, true)
	answer(8192, 1, false)
	answer(4096+4000, 96, true)
	if len(p.ended) != 0 {
		t.Error("the transfer ends with a segment in flight")
	}
	answer(0, 4096, true)
	p.want(1, fi.Success)
	if left.Load() != 0 {
		t.Errorf("%d are left", left.Load())
	}
}

// flies is a peer that answers a segment byte by byte.
type flies struct{ *peer }

func (p flies) Post(t *Transfer, seg congestion.Segment) (ended, posted bool) {
	t.Flies(seg, uint64(seg.Length))
	return false, true
}

// TestRefused has an error end an operation when what is in flight has ended, with the first status.
func TestRefused(t *testing.T) {
	p, f := newPeer(t, 2)
	transfer := p.set.Transfer(1, messages{p})
	f.Begin(transfer, 4*4096)
	p.refuses = fi.EIO
	var left atomic.Uint64
	if !transfer.Answered(wire.NoPlace, 1, fi.Success, &left) || len(p.ended) != 0 {
		t.Fatalf("after a segment that could not be sent: %v", p.ended)
	}
	if !transfer.Answered(wire.NoPlace, 1, fi.EACCES, &left) {
		t.Error("the last answer is not taken")
	}
	p.want(1, fi.EIO)
	if f.Path().Inflight() != 0 || p.set.Busy() {
		t.Errorf("%d bytes in flight, busy %v", f.Path().Inflight(), p.set.Busy())
	}
}

// TestDrop has a peer that is gone end its transfers: at once where nothing in flight ends any more, else with that.
func TestDrop(t *testing.T) {
	for _, lost := range []bool{true, false} {
		p, f := newPeer(t, 2)
		p.lost, p.room = lost, 1
		transfer := p.set.Transfer(1, p)
		f.Begin(transfer, 4*4096)
		f.Begin(p.set.Transfer(2, p), 4096)
		f.Drop(fi.ECONNRESET)
		p.want(2, fi.ECONNRESET)
		if !lost {
			if _, ended := p.ended[1]; ended {
				t.Error("a transfer ends with a segment in flight")
			}
			transfer.Ended(p.flying[0], 0)
			f.Pump()
		}
		p.want(1, fi.ECONNRESET)
		if p.set.Busy() || len(p.flying) != 1 {
			t.Errorf("lost %v: busy %v, %d segments posted", lost, p.set.Busy(), len(p.flying))
		}
	}
	(*Flow)(nil).Drop(fi.ECONNRESET)
}

// TestBeginsAnew has a mover begin the operation anew as it ends.
func TestBeginsAnew(t *testing.T) {
	p, f := newPeer(t, 2)
	transfer := p.set.Transfer(1, p)
	p.begins = func(*Transfer) {
		p.begins = nil
		f.Begin(p.set.Transfer(2, p), 4096)
	}
	f.Begin(transfer, 4096)
	transfer.Ended(p.flying[0], 0)
	f.Pump()
	p.want(1, fi.Success)
	if len(p.flying) != 2 {
		t.Fatalf("%d segments", len(p.flying))
	}
	second := f.all[0]
	second.Ended(p.flying[1], 0)
	p.want(2, fi.Success)
	if again := p.set.Transfer(3, p); again != second {
		t.Error("a transfer that has ended is not used again")
	}
}

// trained is an endpoint that sends trains.
type trained struct{ hw.Endpoint }

func (trained) Train(get bool) uint64 {
	if get {
		return 2
	}
	return 3
}

// TestGrain: segments are cut where trains end.
func TestGrain(t *testing.T) {
	if get, put := Grain(trained{}, true), Grain(trained{}, false); get != 2 || put != 3 {
		t.Errorf("gets are cut at %d, puts at %d", get, put)
	}
	if g := Grain(struct{ hw.Endpoint }{}, true); g != 0 {
		t.Errorf("without trains cut at %d", g)
	}
}
