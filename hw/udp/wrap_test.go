package udp

import (
	"testing"

	"github.com/weft-fabric/weft/hw/udp/internal/wire"
)

// endpointsOf returns the connections of an interface that are up.
func endpointsOf(i *Iface) (list []*Endpoint) {
	for _, s := range i.stripes {
		s.lease.lock()
		for _, c := range s.conns {
			if c != nil && c.at() == up {
				list = append(list, c)
			}
		}
		s.leave()
	}
	return list
}

// TestOffsetsWrap streams across where the offsets' lower 32 bits, which packets carry, begin anew:
// sender and receiver of a fresh connection are put a little before.
func TestOffsetsWrap(t *testing.T) {
	const start = 3<<32 - 1<<16
	for name, c := range map[string]Config{"trains": {}, "no trains": {NoGSO: true, MaxPacket: wire.MinPacket},
		"key": {Key: []byte("secret")}} {
		t.Run(name, func(t *testing.T) {
			c.MaxBcopy = 32 << 10
			a, b := open(t, false, c), open(t, false, c)
			from := pair(t, a, b).(*Endpoint)
			peers := endpointsOf(b)
			if len(peers) != 1 {
				t.Fatalf("%d connections", len(peers))
			}
			to := peers[0]
			from.s.lease.lock()
			from.tx.tail, from.tx.next, from.tx.acked = start, start, start
			from.tx.limit += start
			from.s.leave()
			to.s.lease.lock()
			to.rx.contig.Store(start)
			to.deliver.consumed.Store(start)
			to.rx.top = start
			to.rx.limit += start
			to.s.leave()
			stream(t, a, b, 3000)
			from.s.lease.lock() // the timer loop takes acknowledgements, too
			acked := from.tx.acked
			from.s.leave()
			if acked <= start+1<<16 {
				t.Errorf("the stream ends at %#x, before it wraps", acked)
			}
		})
	}
}
