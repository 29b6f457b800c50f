package udp

import (
	"fmt"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/recovery"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
)

// AMShort sends one active message; head and payload together are at most
// MaxAMShort bytes.
func (c *Endpoint) AMShort(id hw.AMID, header uint64, head, payload []byte) error {
	if len(head)+len(payload) > maxShort {
		return hw.ErrTooLong
	}
	if id >= hw.MaxAM {
		return fmt.Errorf("udp: message id %d: %w", id, hw.ErrInvalid)
	}
	now, err := c.reserve(id, header, head, len(payload))
	if err != nil {
		return err
	}
	c.tx.ring.write(payload)
	c.commit(now, len(head), len(payload))
	return nil
}

// AMBcopy sends one active message; see hw.Endpoint. pack must not call the
// interface. It is called for what each packet will carry.
func (c *Endpoint) AMBcopy(id hw.AMID, header uint64, head []byte, n int, pack func(dst []byte), stripe int) error {
	if len(head) > maxHead || n > c.i.cfg.MaxBcopy {
		return hw.ErrTooLong
	}
	if id >= hw.MaxAM || n < 0 || stripe < 0 {
		return fmt.Errorf("udp: message id %d, %d bytes, stripe %d: %w", id, n, stripe, hw.ErrInvalid)
	}
	now, err := c.reserve(id, header, head, n)
	if err != nil {
		return err
	}
	for left := n; left > 0; {
		b := c.tx.ring.next(left)
		pack(b)
		left -= len(b)
	}
	c.commit(now, len(head), n)
	return nil
}

// reserve takes the lease and room for a record in the stream, of which it writes
// all before the payload of n bytes. That and commit follow. Without room the lease is given back.
func (c *Endpoint) reserve(id hw.AMID, header uint64, head []byte, n int) (now congestion.Time, err error) {
	if c.at() != up {
		return 0, hw.ErrPeerDead
	}
	if !c.s.lease.spin() {
		return 0, hw.ErrNoResource
	}
	size := recordSize(len(head), n)
	now = c.s.time()
	if !c.fits(now, size) {
		c.s.work() // perhaps the peer has made room
		c.s.acks(now)
	}
	switch err = c.tx.ring.open(c.i.cfg.Window); {
	case c.at() != up:
		err = hw.ErrPeerDead
	case err != nil:
		err = fmt.Errorf("udp: %w: %w", err, hw.ErrNoResource)
	case !c.passed():
		err = hw.ErrNoResource
	case !c.fits(now, size):
		c.starve(now)
		err = hw.ErrNoResource
	default:
		c.beginRecord(now, recordMessage, id, head, n, header)
		return now, nil
	}
	c.s.leave()
	return 0, err
}

// fits reports whether a record of size bytes may be posted: the peer has credit
// for it, so nothing waits here that the peer has no room for, and it fits the ring. If
// full packets have another size than the ring's slots, a long record waits up to emptySoon
// for the ring to become empty, when lay makes the slots as large.
func (c *Endpoint) fits(now congestion.Time, size int) bool {
	t := &c.tx
	end := t.tail + uint64(size)
	switch {
	case end > t.limit:
		return false
	case t.ring.b == nil || t.acked == t.tail:
		return true
	case end > t.acked+t.ring.size:
		return false
	case size < longRecord || t.ring.full == c.full():
		return true
	case t.unfit == 0:
		t.unfit = now
	}
	return now.Sub(t.unfit) >= emptySoon
}

// emptySoon is how long a long record waits for the ring to become empty: others may go on posting.
const emptySoon = 10 * time.Millisecond

// full is how many bytes of the stream a full packet carries.
func (c *Endpoint) full() uint64 { return uint64(c.tx.mtu.Size() - c.overhead()) }

// lay makes the slots of an empty ring as large as full packets, before a record of size bytes: the
// first packet, which carries an acknowledgement, ends where a slot does.
func (c *Endpoint) lay(now congestion.Time, size int) {
	t := &c.tx
	if t.acked != t.tail {
		return
	}
	full, lead := c.full(), 0
	if uint64(size) > full {
		lead = c.rx.ackMost(now)
	}
	t.ring.lay(t.tail, full, uint64(lead))
	t.unfit = 0
}

// starve sends what there is, and asks the peer for more credit (wire.FlagBlocked).
func (c *Endpoint) starve(now congestion.Time) {
	t := &c.tx
	t.wanting = true
	c.transmit(now)
	if t.saidWant != t.limit+1 {
		c.send(now, carryPing, recovery.Span{}, wire.FlagAckNow)
		c.schedule()
	}
}

// A post that follows others closely is corked: it waits for the batch to fill, or for Progress. While much is under
// way (longRecord), the batch is a whole train: nothing is lost by waiting, as an acknowledgement comes meanwhile.
const (
	closely   = 3 * time.Microsecond
	eagerPost = 4       // that many close ones are sent at once nevertheless
	batch     = 8 << 10 // bytes
)

// slowCopy is the size in bytes of a record from which its copy takes a part of closely that counts: what follows it is
// as close as its post is after the copy.
const slowCopy = 1 << 10

// longRecord is the size in bytes from which a record is long: while as much is
// under way its last packets, which are no whole train, wait for the next post or poll.
const longRecord = 32 << 10

// corks is how many bytes are corked at most.
func corks(c *Endpoint) uint64 {
	if c.tx.path.Inflight() >= longRecord {
		return max(batch, c.wholeTrain())
	}
	return batch
}

// markDirty has what is corked sent with the next poll, or post.
func (c *Endpoint) markDirty() {
	if !c.tx.dirty {
		c.tx.dirty = true
		c.s.dirty = append(c.s.dirty, c)
	}
}

// commit ends a post of a record with so many bytes, sends it or leaves it for
// a batch, and gives the lease back.
func (c *Endpoint) commit(now congestion.Time, head, n int) {
	t := &c.tx
	size, first := c.endRecord(head, n), t.sent.Number()
	if now.Sub(t.lastPost) > closely {
		t.burst = 0
	}
	if t.burst++; t.burst > eagerPost && t.tail-t.next < corks(c) {
		if t.lastPost = now; size >= slowCopy {
			t.lastPost = c.i.now()
		}
		c.markDirty()
		c.s.lease.unlock()
		c.i.timerLoop.notify()
		return
	}
	if size >= longRecord {
		t.lastLong = now
	}
	if (size >= longRecord || t.burst > eagerPost) && t.path.Inflight() >= longRecord {
		c.push(now, c.wholeTrain())
	} else {
		c.transmit(now)
	}
	c.s.flush()
	if !t.path.Open() && t.waiting() {
		c.s.work() // acknowledgements may have come
	}
	t.lastPost = c.i.now()
	if t.sent.Number() == first+1 {
		t.sent.Left(first, departure(now, t.lastPost))
	}
	c.s.leave()
}

// mostLead is how much later than its post a packet is taken to have left, at most; a thread that came back from the
// kernel later than lostProcessor was not running meanwhile.
const (
	mostLead      = 3 * time.Microsecond
	lostProcessor = 20 * time.Microsecond
)

// departure is when a lone packet left that was posted at one time and with the kernel at the other:
// halfway, which is nearer to what a capture shows than either.
func departure(posted, sent congestion.Time) congestion.Time {
	took := sent.Sub(posted)
	if took > lostProcessor {
		return posted
	}
	return posted.Add(min(took/2, mostLead))
}
