package provider

import (
	"testing"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/threads"
	"github.com/weft-fabric/weft/stripe"
)

// TestSendOrder: what one goroutine sends completes in its order, whatever the data plane has in the place of its
// thread for each call.
func TestSendOrder(t *testing.T) {
	s := newSide(t, fi.ThreadSafe)
	if n := s.ep.base.stripeCount(); n < 2 {
		t.Fatalf("%d stripes", n)
	}
	buf := make([]byte, 8)
	const messages = 60
	for i := range uint64(messages) {
		var kept *threads.Thread
		if i%2 != 0 {
			kept = threads.Take()
		}
		if err := s.ep.Send(&SendArgs{IOV: iovOf(buf), Dest: s.addr[s], Tag: 1, Tagged: true, Context: i}); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if kept != nil {
			kept.Give()
		}
	}
	var e [messages]cq.Entry
	n, err := s.cq.Read(e[:])
	if n != messages {
		t.Fatalf("%d completions, %v", n, err)
	}
	for i := range e {
		if e[i].Context != uint64(i) {
			t.Fatalf("completion %d is of message %d", i, e[i].Context)
		}
	}
}

// TestSendOrderLeased: likewise where others lease the stripe that it prefers, and what the runtime sends, which is
// messages of several pieces, is between what the data plane does, and the queue is read an entry at a time.
func TestSendOrderLeased(t *testing.T) {
	s := newSide(t, fi.ThreadSafe)
	buf := make([]byte, 8)
	leases := stripe.NewSet(stripesAt(s.ep.base.hot, s.ep.base.stripeCount()), false)
	next, one := uint64(0), make([]cq.Entry, 1)
	for i := range uint64(60) {
		iov := iovOf(buf)
		if i%3 == 0 {
			iov = append(iovOf(buf[:4]), iovOf(buf[4:])...)
		}
		lease, ok := leases.Acquire(0)
		if err := s.ep.Send(&SendArgs{IOV: iov, Dest: s.addr[s], Tag: 1, Tagged: true, Context: i}); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		if ok {
			leases.Release(lease)
		}
		if i%2 != 0 {
			continue
		}
		if _, err := s.cq.ReadQuietly(one); err != nil || one[0].Context != next {
			t.Fatalf("completion %d is of message %d, %v", next, one[0].Context, err)
		}
		next++
	}
}
