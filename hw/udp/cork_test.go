package udp

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/hwtest"
	"github.com/weft-fabric/weft/internal/congestion"
)

// TestCorks posts messages closely behind each other to a peer that acknowledges none. Those that wait make a batch
// while little is under way, and then a whole train; what waits leaves with the next polls. Rounds in which the pace
// holds posts back while the thread waits for a processor do not count.
func TestCorks(t *testing.T) {
	a, b := open(t, false, Config{MaxPacket: 1472}), open(t, false, Config{MaxPacket: 1472})
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {})
	ep := pair(t, a, b)
	c := ep.(*Endpoint)
	eventually(t, "a batch to wait while little is under way, and most of a train later", func() bool {
		few, many := uint64(0), uint64(0) // bytes that waited while little, and while much was under way
		for range 40 {
			c.s.lease.lock()
			flies := c.tx.path.Inflight() >= longRecord
			c.tx.lastPost = a.now().Add(time.Second) // so that no pause parts this post from the one before
			c.s.leave()
			before, _ := corked(c)
			if !bcopy(t, ep, 0, nil, 4096, hwtest.Packed(numbered(4096, 0))) {
				break
			}
			switch after, open := corked(c); {
			case after <= before || !open:
			case flies:
				many = max(many, after)
			default:
				few = max(few, after)
			}
		}
		answered(t, a, b, ep) // and the congestion window grows
		return few > 0 && few < 2*batch && many >= 4*batch && many < 2*c.wholeTrain()
	})
	if left, _ := corked(c); left != 0 {
		t.Errorf("%d bytes wait for more than the next polls", left)
	}
}

// TestCorksAfterCopies posts messages behind each other whose copies take longer than what parts posts: how closely the
// next one follows counts from the end of the copy, also if the message waits.
func TestCorksAfterCopies(t *testing.T) {
	a, b := open(t, false, Config{MaxPacket: 1472}), open(t, false, Config{MaxPacket: 1472})
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) {})
	ep := pair(t, a, b)
	c := ep.(*Endpoint)
	var copied congestion.Time
	slow := func(dst []byte) {
		for end := a.now().Add(2 * closely); copied < end; copied = a.now() {
		}
		clear(dst)
	}
	eventually(t, "a message to wait", func() bool {
		waits := false
		for range 40 {
			before, _ := corked(c)
			if err := ep.AMBcopy(1, 0, nil, 4096, slow, 0); err != nil {
				break
			}
			after, open := corked(c)
			waits = waits || open && after > before
			c.s.lease.lock()
			at := c.tx.lastPost
			c.s.leave()
			if at < copied {
				t.Fatalf("a post counts as %v before the end of its copy", copied.Sub(at))
			}
		}
		answered(t, a, b, ep)
		return waits
	})
}

// corked is how many bytes of the stream have not been sent, and whether the congestion window and its pace let them.
func corked(c *Endpoint) (n uint64, open bool) {
	c.s.lease.lock()
	defer c.s.leave()
	return c.tx.tail - c.tx.next, c.tx.path.May(c.i.now())
}
