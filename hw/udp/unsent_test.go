package udp

import (
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// TestUnsent: what waits in a stream for the congestion window counts, what has been sent once does not, and a stream
// that another thread is at is not waited for.
func TestUnsent(t *testing.T) {
	a, b := open(t, false, Config{}), open(t, false, Config{})
	ep := pair(t, a, b).(*Endpoint)
	var stream hw.Streamer = ep
	got := uint64(0)
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
	want := func(what string, least, most int64) {
		t.Helper()
		if n, known := stream.Unsent(); !known || n < least || n > most {
			t.Errorf("%s: %d bytes wait, known %t, want %d to %d", what, n, known, least, most)
		}
	}
	want("nothing posted", 0, 0)
	if err := ep.AMShort(1, 0, nil, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	want("a packet that is on its way", 0, 0)
	const message, headers = 8000, 200
	posted := uint64(0)
	for ep.AMBcopy(1, 0, nil, message, clearBytes, 0) == nil {
		posted++
	}
	if posted < 20 {
		t.Fatalf("the stream took %d messages", posted)
	}
	sent := int64(ep.tx.next - ep.tx.acked)
	all := int64(posted) * message
	want("more than the window", all-sent, all-sent+int64(posted)*headers)
	if sent >= all/2 {
		t.Errorf("the first window has %d of %d bytes", sent, all)
	}
	a.stripes[0].lease.lock()
	if n, known := stream.Unsent(); known {
		t.Errorf("known beside another thread: %d", n)
	}
	a.stripes[0].leave()
	eventually(t, "messages", func() bool {
		a.Progress(16)
		b.Progress(16)
		return got == posted+1
	})
	want("all have come", 0, 0)
}
