package recovery

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw/udp/internal/wire"
)

// TestLeft: the round trip of a packet counts from its corrected departure; what has arrived, and a
// train, are left alone.
func TestLeft(t *testing.T) {
	var s Sent
	p := newPath(t)
	sendN(&s, p, ms, 1)
	s.Left(0, ms+ms/2)
	if err := s.OnAck(3*ms, 3*ms, ack(wire.Range{First: 0, Last: 0}), 0, p); err != nil {
		t.Fatal(err)
	}
	if rtt := p.RTT().Last(); rtt != 3*time.Millisecond/2 {
		t.Errorf("a round trip of %v", rtt)
	}
	s.Left(0, 2*ms)
	if q, _ := s.run(0); q.Flight.Sent != ms+ms/2 {
		t.Error("one that has arrived was corrected")
	}
	first := s.Number()
	s.AddMany(4*ms, Packet{Len: 1000, Size: 1000, Flight: p.OnSendMany(4*ms, 1000, 3)}, 3)
	for n := first; n < first+3; n++ {
		s.Left(n, 5*ms)
	}
	if q, _ := s.run(first); q.Flight.Sent != 4*ms {
		t.Error("a train was corrected")
	}
}
