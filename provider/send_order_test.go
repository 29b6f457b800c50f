package provider

import (
	"testing"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/threads"
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
