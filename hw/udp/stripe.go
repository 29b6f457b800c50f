package udp

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/hw/udp/internal/crypt"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/sock"
)

// lease is a lock that is taken for one operation at a time, never while a
// handler runs. It is on the data path, as the price of order: two threads that
// send to one peer must agree on which is first. A stripe is what they share, so
// threads on other stripes do not meet.
type lease struct {
	_    [64]byte
	word atomic.Uint32 // 1: taken. Taken with compare-and-swap, given back with a store.
	_    [60]byte
}

func (l *lease) try() bool { return l.word.Load() == 0 && l.word.CompareAndSwap(0, 1) }

// spins is how often a post tries for the lease before it fails with hw.ErrNoResource.
const spins = 200

// leasePause is how long a thread that waits for the lease sleeps between two tries.
const leasePause = 10 * time.Microsecond

// spin tries for a while.
func (l *lease) spin() bool {
	for n := range spins {
		if l.try() {
			return true
		}
		if n&15 == 15 {
			runtime.Gosched()
		}
	}
	return false
}

// lock waits for the lease, for calls that are not on the data path.
func (l *lease) lock() {
	for !l.spin() {
		time.Sleep(leasePause)
	}
}

// lockWithin is lock that fails after d, and what the last pause takes longer than it should.
func (l *lease) lockWithin(d time.Duration) bool {
	for end := time.Now().Add(d); !l.spin(); time.Sleep(leasePause) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func (l *lease) unlock() { l.word.Store(0) }

// peerKey names a connection by the peer's side of it.
type peerKey struct {
	addr sock.Addr
	cid  wire.CID
}

// stripe is a socket and the connections that use it. Everything but what is
// marked belongs to the holder of the lease.
type stripe struct {
	i      *Iface
	number uint8 // immutable
	lease  lease

	socket  *sock.Socket
	in      *sock.In
	out     *sock.Out
	cookies *crypt.Cookies
	budget  bucket // answers to strangers

	conns    []*Endpoint // by index; nil: free
	free     []uint32    // indexes
	byPeer   map[peerKey]*Endpoint
	byTarget map[target]*Endpoint // accepted and used, for Connect
	halfOpen []*Endpoint          // accepted, the oldest first
	touched  []*Endpoint          // that something came for
	owing    []*Endpoint          // acknowledgements
	dirty    []*Endpoint          // with a stream that waits to be sent
	timed    []*Endpoint          // with a timer
	next     congestion.Time      // not before it a timer is due; 0: none
	dead     []*Endpoint          // to be reported
	doomed   []*Endpoint          // their peers are gone; to be ended when the socket is empty
	ended    []ended              // operations that have ended; Progress updates their completions
	entered  []*region            // in use until flush

	readyList []*Endpoint // with a record to deliver
	// connections in readyList or that Progress has taken off it, and length of ended; changed with the lease,
	// read by any thread
	ready   atomic.Int32
	emptyAt congestion.Time
	stale   bool          // packets were sent since the time was last read
	polls   atomic.Uint64 // polls of the socket, by which the timer loop sees that others poll; added to with the lease
	found   bool          // the last poll found something

	stamping stamping // of probes

	message sock.Message
	frame   frameScratch
}

func newStripe(i *Iface, number uint8, socket *sock.Socket, cookies *crypt.Cookies) (*stripe, error) {
	s := &stripe{i: i, number: number, socket: socket, cookies: cookies, byPeer: map[peerKey]*Endpoint{},
		byTarget: map[target]*Endpoint{}}
	var err error
	if s.in, err = sock.NewIn(); err != nil {
		return nil, err
	}
	if s.out, err = sock.NewOut(i.cfg.Impair); err != nil {
		s.in.Free()
		return nil, err
	}
	s.budget = bucket{rate: answerRate, burst: answerBurst, left: answerBurst}
	return s, nil
}

// release gives the memory back; no thread uses the stripe any more.
func (s *stripe) release() {
	for _, c := range s.conns {
		if c != nil {
			c.freeRings()
		}
	}
	s.in.Free()
	s.out.Free()
}

// leave sends what is waiting, rings the doorbell if there is something for Progress, and gives the lease back.
func (s *stripe) leave() {
	s.flush()
	s.i.wait.bell(s)
	s.lease.unlock()
}

// flush gives the batch of built packets to the socket.
func (s *stripe) flush() {
	if s.out.Empty() {
		return
	}
	s.out.Flush(s.socket)
	s.stale = true
	if s.socket.WantsNear() {
		s.i.wait.approach(s)
	}
	for n, m := range s.entered {
		m.leave()
		s.entered[n] = nil
	}
	s.entered = s.entered[:0]
	for n := range s.out.Failed {
		f := &s.out.Failed[n]
		if f.Owner < uint64(len(s.conns)) && s.conns[f.Owner] != nil {
			s.conns[f.Owner].refused(f)
		}
	}
}

// time reads the clock.
func (s *stripe) time() congestion.Time {
	s.stale = false
	return s.i.now()
}

// freshen returns the time after packets were added: a flush among them is a
// system call, during which the thread may have lost its processor for long.
func (s *stripe) freshen(now congestion.Time) congestion.Time {
	if s.stale {
		return s.time()
	}
	return now
}

// conn returns the connection with an id, nil if there is none.
func (s *stripe) conn(id wire.CID) *Endpoint {
	if index := id.Index(); index < uint32(len(s.conns)) {
		if c := s.conns[index]; c != nil && c.own.CID == id {
			return c
		}
	}
	return nil
}

// owner names c to the socket.
func (c *Endpoint) owner() uint64 { return uint64(c.own.CID.Index()) }

// work polls the socket, runs timers that are due, and sends what is corked. It returns the time, and whether anything
// came. Acknowledgements stay owed: acks sends them.
func (s *stripe) work() (now congestion.Time, some bool) {
	s.polls.Add(1)
	now, some = s.receive()
	s.found = some
	if s.next != 0 && now >= s.next {
		s.expire(now)
	}
	s.sendDirty(now)
	return now, some
}

// sendDirty sends what is corked.
func (s *stripe) sendDirty(now congestion.Time) {
	list := s.dirty
	s.dirty = list[:0] // for those that go on waiting: none is written before it was read
	for _, c := range list {
		c.tx.dirty = false
		c.transmit(now)
	}
}

// expire runs the timers of connections that are due.
func (s *stripe) expire(now congestion.Time) {
	s.next = 0
	kept := s.timed[:0]
	list := s.timed
	for n := 0; n < len(list); n++ {
		c := list[n]
		if c.due != 0 && c.due <= now {
			c.onTimer(now)
			c.due = c.deadline()
		}
		if c.due == 0 {
			c.timed = false
			continue
		}
		kept = append(kept, c)
		s.wake(c.due)
	}
	clear(list[len(kept):])
	s.timed = kept
}

// wake has the stripe's timers run at a time, by the timer loop if no other thread polls then.
func (s *stripe) wake(at congestion.Time) {
	if s.next == 0 || at < s.next {
		s.next = at
		s.i.timerLoop.expect(at)
	}
}

// acks sends the acknowledgements that are owed now.
func (s *stripe) acks(now congestion.Time) {
	for _, c := range s.owing {
		c.rx.owing = false
		c.rx.acknowledge(now)
	}
	s.owing = s.owing[:0]
}

// settle does for every connection that something came for what follows from it.
// That may touch a connection once more: when a region that it serves has gone.
func (s *stripe) settle(now congestion.Time) {
	for n := 0; n < len(s.touched); n++ {
		c := s.touched[n]
		c.touched = false
		c.settle(now)
	}
	s.touched = s.touched[:0]
}

// touch has c settled after the batch.
func (s *stripe) touch(c *Endpoint) {
	if !c.touched {
		c.touched = true
		s.touched = append(s.touched, c)
	}
}

// bucket is a token bucket.
type bucket struct {
	rate, burst, left int64
	at                congestion.Time
}

// take takes a token, false: there is none.
func (b *bucket) take(now congestion.Time) bool {
	if d := now.Sub(b.at); d > time.Millisecond {
		b.left = min(b.burst, b.left+int64(min(d, time.Second))*b.rate/int64(time.Second))
		b.at = now
	}
	if b.left <= 0 {
		return false
	}
	b.left--
	return true
}
