package transport

import (
	"runtime"
	"testing"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv/null"
)

// newTransport is a transport of the null device, with one queue for what is posted, which has room for so many
// operations.
func newTransport(t *testing.T, room int64) (*Transport, *SendCQ) {
	end := &SendCQ{Size: room}
	p, err := New(Config{SRQ: null.SRQ(), BufferBytes: 64, Buffers: 16, Queues: []*ibv.CQ{null.CQ(0), null.CQ(1)},
		Ends: []*SendCQ{end}, Max: 8, Peers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		runtime.KeepAlive(end)
	})
	if polled, empty, ok := p.Poll(); !polled || !empty || !ok { // the buffers go to the device
		t.Fatalf("polled %v, empty %v, whole %v", polled, empty, ok)
	}
	return p, end
}

// arrive has something arrive in buffer n, and a completion of what was posted come if so many do.
func arrive(n uint64, ends int) {
	null.Complete(0, ibv.Done{ID: n, Opcode: ibv.DoneRecv, Bytes: 1})
	for range ends {
		null.Complete(1, ibv.Done{ID: 1 << 62})
	}
}

// TestStagedOnly: while nothing is staged the lease holder takes nothing of what another thread is about to stage.
func TestStagedOnly(t *testing.T) {
	p, _ := newTransport(t, 1)
	arrive(0, 0)
	if polled, empty, _ := p.Poll(); !polled || empty || p.Arrival() == nil || p.Drop() {
		t.Fatal("one arrival is not staged")
	}
	// another thread, which polls
	arrive(1, 1)
	if !p.tryPoll() {
		t.Fatal("nothing polls")
	}
	var c ibv.Call
	p.want(&c, true)
	c.Perform()
	// the lease holder meanwhile
	p.EndStaged()
	if d := p.Arrival(); d != nil {
		t.Errorf("an arrival that is not staged: %+v", *d)
	}
	if d := p.Ended(1); d != nil {
		t.Errorf("completions that are not staged: %+v", d)
	}
	if polled, empty, ok := p.Poll(); polled || empty || !ok {
		t.Errorf("polled %v, empty %v, whole %v while another thread polls", polled, empty, ok)
	}
	// the other thread is done
	if !p.stage(&c) {
		t.Error("a queue is broken")
	}
	p.polled()
	if d := p.Arrival(); p.Staged() != 2 || d == nil || d.ID != 1 {
		t.Fatalf("%d staged, the first arrival is %+v", p.Staged(), d)
	}
	p.Drop()
	p.EndedWith(len(p.Ended(1)))
	if p.Staged() != 0 || p.freeCount != 2 {
		t.Errorf("%d stay, %d buffers are free", p.Staged(), p.freeCount)
	}
}

// TestPollEndsKeeps: completions that another thread has staged with arrivals stay when the lease holder polls for
// more.
func TestPollEndsKeeps(t *testing.T) {
	p, _ := newTransport(t, 1)
	arrive(0, 2)
	if polled, _, ok := p.Poll(); !polled || !ok || p.Staged() != 3 {
		t.Fatalf("%d of 3 staged", p.Staged())
	}
	null.Complete(1, ibv.Done{ID: 1 << 62})
	for _, want := range []int{2, 1} { // the last has come meanwhile
		if !p.PollEnds() {
			t.Error("a queue is broken")
		}
		got := p.Ended(1)
		if len(got) != want {
			t.Errorf("%d completions of %d", len(got), want)
		}
		p.EndedWith(len(got))
	}
	if p.Drop(); p.Staged() != 0 {
		t.Errorf("%d stay staged", p.Staged())
	}
}
