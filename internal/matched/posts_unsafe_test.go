package matched

import (
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// pipe is a device that has room for some operations, which any thread posts, and ends them in Progress.
type pipe struct {
	memoryDevice
	under chan hw.MatchEvent
	rung  atomic.Int64
	wrong atomic.Int64 // payloads that are not their tag's or offset's
}

// take has an operation under way.
func (d *pipe) take(ev hw.MatchEvent) error {
	ev.Last = true
	select {
	case d.under <- ev:
		return nil
	default:
		return hw.ErrNoResource
	}
}

// check compares what an operation brings.
func (d *pipe) check(inject []byte, want uint64) {
	if len(inject) != 8 || binary.NativeEndian.Uint64(inject) != want {
		d.wrong.Add(1)
	}
}

func (d *pipe) PostReceive(r *hw.MatchReceive) (hw.MatchID, error) {
	return 1, d.take(hw.MatchEvent{Kind: hw.MatchReceived, Context: r.Context, From: 11, Tag: r.Tag, Length: 0})
}

func (d *pipe) PostMatched(s *hw.MatchSend) error {
	d.check(s.Inject, s.Tag)
	return d.take(hw.MatchEvent{Kind: hw.MatchSent, Context: s.Context})
}

func (d *pipe) PostTransfer(t *hw.MatchTransfer) error {
	d.check(t.Inject, t.Offset)
	return d.take(hw.MatchEvent{Kind: hw.MatchTransferred, Context: t.Context})
}

func (d *pipe) RingMatched() { d.rung.Add(1) }

func (d *pipe) Progress(limit int) (n int) {
	for ; n < limit; n++ {
		select {
		case ev := <-d.under:
			d.on(&ev)
		default:
			return n
		}
	}
	return n
}

// TestPostsBesideProgress: threads post messages, receives and writes at an endpoint while another one makes progress
// of it, and one asks what any thread may: each operation reaches the device whole, and ends once, as it was posted.
func TestPostsBesideProgress(t *testing.T) {
	const requesters, rounds = 2, 2000
	for _, stripes := range []int{1, 2} {
		d := &pipe{under: make(chan hw.MatchEvent, 24)}
		kinds := map[uint64]uint64{} // flags of what has ended, by context
		e := Open(Options{Iface: d, Matcher: d, Limit: 32, Stripes: stripes, Caps: fi.RMA | fi.Read | fi.Write,
			Address: func(a fi.Addr, _ []byte) (hw.MatchAddress, error) { return hw.MatchAddress(a + 10), nil },
			Source:  func(a hw.MatchAddress) fi.Addr { return fi.Addr(a - 10) },
			Ended: func(n *Ended) {
				if _, twice := kinds[n.Entry.Context]; twice || n.Err != fi.Success {
					t.Errorf("operation %#x: %+v", n.Entry.Context, n)
				}
				kinds[n.Entry.Context] = n.Entry.Flags
			}})
		var running atomic.Int64
		running.Store(requesters)
		var others sync.WaitGroup
		for k := range uint64(requesters) {
			others.Go(func() {
				defer running.Add(-1)
				postAll(t, e, k, rounds)
			})
		}
		others.Go(func() {
			for running.Load() != 0 {
				if n := e.Room(); n < 0 || n > 32 {
					t.Errorf("room for %d", n)
				}
				_ = e.Left()
				runtime.Gosched()
			}
		})
		for running.Load() != 0 || len(d.under) != 0 {
			if !e.Progress(8) {
				runtime.Gosched()
			}
		}
		others.Wait()
		for e.Progress(8) {
		}
		want := [...]uint64{fi.Send | fi.Tagged, fi.Recv | fi.Tagged, fi.RMA | fi.Write}
		for context, flags := range kinds {
			if flags != want[context%3] {
				t.Errorf("operation %#x has ended with flags %#x", context, flags)
			}
		}
		if len(kinds) != requesters*rounds || d.wrong.Load() != 0 || e.Room() != 32 || e.Left() || d.rung.Load() == 0 {
			t.Errorf("%d operations have ended, %d were wrong, room for %d, doorbell left: %v, %d rung", len(kinds),
				d.wrong.Load(), e.Room(), e.Left(), d.rung.Load())
		}
	}
}

// payloads are those of each thread. An operation names them by address, so they are on no stack, which moves.
var payloads [2][8]byte

// postAll posts operations of each kind in turn, again as long as there is no room. Every fifth but the last leaves the
// doorbell to what comes behind it.
func postAll(t *testing.T, e *Endpoint, thread uint64, rounds int) {
	payload := &payloads[thread]
	iov := []fi.IOVec{{Base: uintptr(unsafe.Pointer(payload)), Len: 8}}
	for n := range uint64(rounds) {
		context, more := thread<<32*3+n, uint64(0)
		if n%5 == 0 {
			more = fi.More
		}
		binary.NativeEndian.PutUint64(payload[:], n)
		post := func() error {
			switch context % 3 {
			case 0:
				return e.Send(&Send{IOV: iov, Dest: 1, Tagged: true, Tag: n, Flags: more, Context: context})
			case 1:
				return e.Receive(&Receive{Src: fi.AddrUnspec, Tagged: true, Tag: n, Flags: more, Context: context})
			}
			return e.Transfer(&Transfer{IOV: iov, Remote: remoteOf(5, n, 8), Dest: 1, Flags: more, Context: context})
		}
		err := post()
		for ; errors.Is(err, fi.EAGAIN); err = post() {
			runtime.Gosched()
		}
		if err != nil {
			t.Errorf("operation %#x: %v", context, err)
		}
	}
}
