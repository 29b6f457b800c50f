package transport

import (
	"testing"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv/null"
	"github.com/weft-fabric/weft/internal/mem"
)

// noRoom makes a transport with a peer. A message to it is ready and finds no room in the completion queue; the
// caller has the queue, and waits operations are to wait.
func noRoom(t *testing.T) (p *Transport, end *SendCQ, q *SendQueue, waits int) {
	t.Helper()
	const depth = 16
	p, end = newTransport(t, 1)
	memory, err := mem.Map(BlockBytes(depth), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mem.Unmap(memory); err != nil {
			t.Error(err)
		}
	})
	q, _, _, _ = SendQueueAt(memory, depth, 0)
	q.SetCQ(end)
	q.SetQP(null.QP())
	q.Run.Store(QueueIdle)
	peer := p.NewPeer(q)
	end.Used.Store(end.Size)
	pos, ok := q.Claim(0)
	if !ok {
		t.Fatal("no place")
	}
	peer.Put(pos, 1, 0, nil, nil)
	q.Ready(pos)
	if !q.Run.CompareAndSwap(QueueIdle, QueueBusy) {
		t.Fatal("another thread posts")
	}
	var c ibv.Call
	n, waits := q.prepare(&c)
	if n != 0 || waits != 1 {
		t.Fatalf("%d of 0 are to be posted, %d wait", n, waits)
	}
	return p, end, q, waits
}

// TestNoRoomCalls: a thread that finds no room in the completion queue has Progress try again, and leaves
// it to that.
func TestNoRoomCalls(t *testing.T) {
	p, end, q, waits := noRoom(t)
	if q.leave(waits) {
		t.Fatal("it tries again at once")
	}
	if p.Calls.Load()&CallPost == 0 {
		t.Error("a message is ready, and nothing will post it")
	}
	// the next Progress
	end.Used.Store(0)
	if p.Calls.Store(0); !q.Post() || q.Posted != 1 || p.Calls.Load() != 0 {
		t.Errorf("%d of 1 posted, calls %d", q.Posted, p.Calls.Load())
	}
}

// TestRoomMeanwhile: where something ends while the thread has the queue, the lease holder passes by that,
// sees nothing asked for, and may sleep. The thread tries again itself.
func TestRoomMeanwhile(t *testing.T) {
	p, end, q, waits := noRoom(t)
	// the lease holder
	end.Used.Store(0)
	if !q.Post() {
		t.Fatal("it does not leave the queue to the thread that posts")
	}
	if p.Calls.Load() != 0 {
		t.Fatal("something is asked for")
	}
	// the thread goes on
	if !q.leave(waits) {
		t.Fatal("a message is ready, there is room, and nothing posts it")
	}
	if !q.Post() || q.Posted != 1 {
		t.Errorf("%d of 1 posted", q.Posted)
	}
}
