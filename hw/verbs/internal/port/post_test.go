package port

import (
	"testing"

	"github.com/weft-fabric/weft/hw/verbs/ibv"
	"github.com/weft-fabric/weft/hw/verbs/ibv/null"
	"github.com/weft-fabric/weft/internal/mem"
)

// TestNoRoomCalls: a thread that finds no room in the completion queue has Progress try again, also where room was
// found, and Progress was there, before the thread has given the queue back.
func TestNoRoomCalls(t *testing.T) {
	const depth = 16
	p, end := newPort(t, 1)
	memory, err := mem.Map(BlockBytes(depth), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mem.Unmap(memory); err != nil {
			t.Error(err)
		}
	})
	q, _, _, _ := SendQueueAt(memory, depth, 0)
	q.SetCQ(end)
	q.SetQP(null.QP())
	q.Run.Store(QueueIdle)
	peer := p.NewPeer(q)
	end.Used.Store(end.Size)
	// a thread that posts
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
	n, all := q.prepare(&c)
	if n != 0 || all {
		t.Fatalf("%d of 0 are to be posted, all: %v", n, all)
	}
	// the lease holder meanwhile: something ends, and what waits for room is posted
	p.Calls.Store(0)
	end.Used.Store(0)
	if !q.Post() {
		t.Fatal("it does not leave the queue to the thread that posts")
	}
	// the thread goes on
	if q.leave(all) {
		t.Fatal("it tries again at once")
	}
	if p.Calls.Load()&CallPost == 0 {
		t.Error("a message is ready, and nobody will post it")
	}
	// the next Progress
	if p.Calls.Store(0); !q.Post() || q.Posted != 1 || p.Calls.Load() != 0 {
		t.Errorf("%d of 1 posted, calls %d", q.Posted, p.Calls.Load())
	}
}
