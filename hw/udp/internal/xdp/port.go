package xdp

import (
	"encoding/binary"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/sock"
)

// queue is what the sockets of one queue of the interface share.
type queue struct {
	fd int // of the socket that has the rings

	// mu guards the rest. It is on the data path where the stripes are more than
	// the queues, because the kernel has one pair of rings for a queue; it is taken
	// once for a message to send and once for a batch of frames received.
	mu         sync.Mutex
	fill       ring
	completion ring
	free       []uint64 // frames to send from
}

// reclaim takes back the frames that were sent. The caller has q.mu.
func (q *queue) reclaim() {
	n := q.completion.available()
	for range n {
		q.free = append(q.free, *q.completion.addr())
	}
	if n > 0 {
		q.completion.release()
	}
}

// recycle gives frames to the kernel to receive into. Their addresses may be
// anywhere in them.
func (q *queue) recycle(frames []uint64) {
	q.mu.Lock()
	for _, a := range frames {
		if q.fill.room(1) > 0 { // always, as the ring has room for all frames
			*q.fill.addr() = a
		}
	}
	q.fill.publish()
	wake := q.fill.wakeup()
	q.mu.Unlock()
	if wake {
		notifyFill(q.fd)
	}
}

// receiver is a socket's receiving side.
type receiver struct {
	fd    int
	queue *queue
	rx    ring
	inUse []uint64 // frames that the caller may still read, or that wait to be recycled
}

// recycleAt is how many frames wait until they are recycled together.
const recycleAt = 16

// Port is the sockets of one stripe. It implements sock.Bypass; its user is the
// stripe's owner.
type Port struct {
	d         *Device
	receivers []receiver // one for each queue of the interface
	next      int        // that is polled first
	fd        int        // of the socket that sends
	queue     *queue     // over which it sends
	tx        ring
	unsent    int // polls that still ask the kernel to send what it left

	ways map[sock.Addr]*way
	to   sock.Addr // last sent to
	way  *way      // to it; nil: not known

	// Malformed counts frames that were ours by their addresses, but damaged.
	Malformed uint64
}

// Files are the sockets' descriptors.
func (p *Port) Files() []int {
	list := make([]int, len(p.receivers))
	for i := range p.receivers {
		list[i] = p.receivers[i].fd
	}
	return list
}

// Receive reads what has come; see sock.Bypass.
func (p *Port) Receive(m []sock.Message) (n int) {
	if p.unsent > 0 {
		p.unsent--
		p.push()
	}
	for range p.receivers {
		r := &p.receivers[p.next]
		if p.next++; p.next == len(p.receivers) {
			p.next = 0
		}
		if len(r.inUse) >= recycleAt {
			r.queue.recycle(r.inUse)
			r.inUse = r.inUse[:0]
		}
		if n += p.take(r, m[n:]); n == len(m) {
			break
		}
	}
	return n
}

// take reads what has come to one socket.
func (p *Port) take(r *receiver, m []sock.Message) (n int) {
	have := r.rx.available()
	if have == 0 {
		return 0
	}
	for ; have > 0 && n < len(m); have-- {
		d := *r.rx.desc()
		frame, stamp := p.d.frame(d.Addr, d.Len)
		if frame == nil {
			p.Malformed++
			continue // no frame of ours: the kernel does not do that
		}
		r.inUse = append(r.inUse, d.Addr)
		if !p.d.local.parse(frame, &m[n]) {
			p.Malformed++
			continue
		}
		m[n].Driver = time.Duration(binary.NativeEndian.Uint64(stamp))
		clear(stamp) // a frame without a stamp next time has none then
		n++
	}
	r.rx.release()
	return n
}

// find returns the way to a peer.
func (p *Port) find(to *sock.Addr) *way {
	if p.way != nil && p.to == *to && !p.way.stale.Load() {
		return p.way
	}
	w := p.ways[*to]
	if w == nil || w.stale.Load() {
		if len(p.ways) >= maxWays {
			clear(p.ways)
		}
		w = p.d.routes.find(to)
		p.ways[*to] = w
	}
	p.to, p.way = *to, w
	return w
}

// longTrain is how many datagrams at most are copied to the kernel one by one. More
// go by the socket, where the kernel copies them at once and the interface, or the other
// end of a virtual one, may cut them up. Between network namespaces 64 KiB took 1.6 times
// the processor time frame by frame.
const longTrain = 8

// Send takes the datagrams of a train if there is a way to the peer, and room.
func (p *Port) Send(t *sock.Train) bool {
	w := p.find(t.To)
	if t.Segment > w.most || w.confirm.Load() && w.confirm.CompareAndSwap(true, false) {
		return false
	}
	count, q := t.Count(), p.queue
	if count > longTrain && !p.d.zeroCopy {
		return false
	}
	if int(p.tx.room(uint32(count))) < count {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.free) < count {
		if q.reclaim(); len(q.free) < count {
			return false
		}
	}
	for range count {
		last := len(q.free) - 1
		at := q.free[last]
		q.free = q.free[:last]
		frame := p.d.chunk(at)
		size := w.put(frame, t.Next(frame[w.size:]))
		*p.tx.desc() = unix.XDPDesc{Addr: at, Len: uint32(size)}
	}
	return true
}

// Flush has the kernel send what Send took.
func (p *Port) Flush() {
	p.tx.publish()
	p.push()
}

// patience is how many polls ask the kernel once more to send what it left.
const patience = 64

// push has the kernel send. What it does not send now, because the interface is
// down or its queue full, it may send later; a network loses datagrams too.
func (p *Port) push() {
	left := p.tx.pending()
	for tries := 0; left > 0 && tries < 3 && p.tx.wakeup(); tries++ {
		errno := notifyTx(p.fd)
		now := p.tx.pending()
		if now < left {
			tries = 0 // it sends a bounded number in one call
		} else if errno != unix.EAGAIN && errno != unix.EINTR && errno != 0 {
			break
		}
		left = now
	}
	switch {
	case left == 0 || !p.tx.wakeup():
		p.unsent = 0
	case p.unsent == 0:
		p.unsent = patience
	}
}
