package verbs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
)

// hello is one hand-shake with a peer: the making of one connection. It belongs
// to the service.
//
// Both sides send their half until they know that the other has it. epoch
// numbers the own queue pairs, so that a late packet is recognised; applied is
// the epoch of the peer's that the own queue pair is joined to (0: none), and
// confirmed says that the peer's is joined to ours. first and peerFirst are the
// epochs of the first queue pairs of the connection, the own one and the peer's (0: not known).
type hello struct {
	epoch, applied uint32
	first          uint32
	peerFirst      uint32
	confirmed      bool
	psn            uint32
	qp             *ibv.QP        // the own one
	seq            uint32         // last position received over the former one
	peerIndex      uint32         // what our messages carry
	peerSeq        uint32         // last position that the peer has
	taken          uint32         // messages taken over it from the ring that the peer writes into
	peerRing       transport.Ring // what the peer gives us to write into
	running        bool           // packets are sent again
	next, deadline time.Time
	pause          time.Duration
	attempts       int
}

// passive is the peer's connection for its one-sided operations.
type passive struct {
	epoch uint32 // the peer's
	psn   uint32
	qp    *ibv.QP
}

// Pauses between two packets of a hand-shake.
const (
	firstPause = 4 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// begin starts a hand-shake for a fresh queue pair; what was received over the former one
// is 0.
func (s *service) begin(h *hello, qp *ibv.QP, limit time.Duration) {
	now := time.Now()
	s.epoch++
	h.epoch = s.epoch
	if h.first == 0 {
		h.first = h.epoch
	}
	h.qp, h.seq, h.taken = qp, 0, 0
	h.applied, h.confirmed, h.attempts = 0, false, 0
	h.psn = rand.Uint32() & (1<<24 - 1)
	h.running, h.next, h.pause, h.deadline = true, now, firstPause, now.Add(limit)
}

// due reports whether a packet is to be sent again, and sets when to check next.
func (h *hello) due(now time.Time) bool {
	if !h.running || now.Before(h.next) {
		return false
	}
	h.attempts++
	h.next = now.Add(h.pause)
	h.pause = min(2*h.pause, lastPause)
	return true
}

// connect starts the hand-shake for messages.
func (s *service) connect(e *Endpoint) {
	if !e.hello.running && e.hello.epoch == 0 {
		s.begin(&e.hello, e.msg.qp, s.i.cfg.ConnectTimeout)
		s.active[e] = struct{}{}
	}
}

// rejoin starts it again, after the lease holder has given the queue a new
// queue pair and found out what the old one had received.
func (s *service) rejoin(e *Endpoint, qp *ibv.QP, seq, taken uint32) {
	e.wantRejoin.Store(false)
	s.begin(&e.hello, qp, s.i.cfg.PathTimeout)
	e.hello.seq, e.hello.taken = seq, taken
	s.active[e] = struct{}{}
}

// connectMemory starts the hand-shake for our one-sided operations.
func (s *service) connectMemory(e *Endpoint, qp *ibv.QP) {
	s.begin(&e.memory, qp, s.i.cfg.PathTimeout)
	s.active[e] = struct{}{}
}

// hurry has all hand-shakes send at once, and lost peers be connected to again: the port is back.
func (s *service) hurry() {
	s.i.mu.Lock()
	s.i.gone.seekAgain(time.Now())
	s.i.mu.Unlock()
	for e := range s.active {
		e.hello.next, e.memory.next = time.Time{}, time.Time{}
	}
}

// tick sends what is due and returns the time to the next.
func (s *service) tick(now time.Time) time.Duration {
	wait := time.Hour
	for e := range s.active {
		if e.Err() != nil || !e.hello.running && !e.memory.running {
			delete(s.active, e)
			continue
		}
		if e.hello.due(now) {
			s.sendHello(e)
		}
		if e.memory.due(now) {
			s.sendMemory(e)
		}
		for _, h := range []*hello{&e.hello, &e.memory} {
			if !h.running {
				continue
			}
			if now.After(h.deadline) {
				h.running = false
				e.fail(h.timedOut(e))
			}
			if h.attempts%8 == 7 {
				s.forgetPath(&e.addr)
			}
			wait = min(wait, h.next.Sub(now))
		}
	}
	return max(wait, time.Millisecond)
}

func (h *hello) timedOut(e *Endpoint) error {
	switch {
	case e.refused() != nil:
		return e.lost(e.refused())
	case e.ready.Load():
		return fmt.Errorf("the path to peer %s is lost: %w: %w", e, unix.ETIMEDOUT, errPath)
	}
	return fmt.Errorf("peer %s does not answer: %w: %w", e, hw.ErrUnreachable, hw.ErrPeerDead)
}

// refused is why the peer would not connect when it was last asked, nil if it
// did not refuse, or has connected since.
func (e *Endpoint) refused() error {
	switch code := unix.Errno(e.refusal.Load()); code {
	case 0:
		return nil
	case unix.ENOMEM, unix.EAGAIN, unix.ENOSPC:
		return fmt.Errorf("peer %s has no room for another connection: %w: %w", e, code, hw.ErrNoResource)
	default:
		return fmt.Errorf("peer %s refuses the connection: %w", e, code)
	}
}

func (s *service) sendHello(e *Endpoint) {
	h := &e.hello
	p := packet{
		kind: packetHello, reads: uint8(s.i.reads()), epoch: h.epoch, got: h.applied, qp: h.qp.Num, psn: h.psn,
		index: e.index, seq: h.seq,
	}
	e.offer(&p, h.taken)
	if !h.confirmed {
		p.flags |= flagWant
	}
	if s.i.window.Load() != 0 {
		p.flags |= flagClosed
	}
	if h.epoch == h.first {
		p.flags |= flagFirst
	}
	s.sendTo(e, &p)
}

func (s *service) sendMemory(e *Endpoint) {
	h := &e.memory
	s.sendTo(e, &packet{
		kind: packetMemory, epoch: h.epoch, qp: h.qp.Num, psn: h.psn, index: e.index, reads: uint8(s.i.reads()),
	})
}

// reads is how many reads and atomics are in progress over a connection at a time.
func (i *Iface) reads() int {
	return max(1, min(i.d.attr.MaxReadAtomic, i.d.attr.MaxInitReadAtomic, 16))
}

// packet acts on what a peer sent.
func (s *service) packet(b []byte) {
	p, err := parsePacket(b, s.i.addr.nonce)
	if err != nil {
		s.i.rx.malformed.Add(1)
		s.i.logf("service: %v", err)
		return
	}
	e, answer := s.peer(&p)
	if answer != nil {
		s.send(&p.from, answer)
	}
	if e == nil {
		return
	}
	if e.Err() != nil {
		if p.kind == packetHello && p.flags&flagFirst != 0 && e.byeSeq.Load() == 0 {
			s.sendTo(e, &packet{kind: packetWait}) // until progress has reported the end
		}
		return
	}
	switch p.kind {
	case packetHello:
		s.onHello(e, &p)
	case packetMemory:
		s.onMemory(e, &p)
	case packetPassive:
		s.onPassive(e, &p)
	case packetWait:
		if e.hello.running {
			e.hello.deadline = time.Now().Add(s.i.cfg.PathTimeout)
		}
	case packetBye:
		e.end(fmt.Errorf("peer %s has closed its interface: %w", e, hw.ErrPeerDead))
	case packetRefuse:
		e.refusal.Store(p.code)
	case packetLost:
		if p.got == e.hello.epoch {
			e.fail(fmt.Errorf("peer %s has given up the connection: %w", e, errPath))
		}
	}
}

// sendTo sends a packet to an endpoint's peer.
func (s *service) sendTo(e *Endpoint, p *packet) {
	s.send(&e.addr, p)
}

// peer finds the endpoint that a packet is about; a hello makes one, a bye is remembered. Where there is none, answer
// goes to the sender, if it is not nil: without i.mu, as sending may take in other packets first.
func (s *service) peer(p *packet) (e *Endpoint, answer *packet) {
	i := s.i
	var key [addressBytes]byte
	p.from.appendTo(key[:0])
	i.mu.Lock()
	defer i.mu.Unlock()
	e = i.byKey[key]
	if p.kind == packetBye {
		i.bye(e, key, p.seq)
	}
	if e != nil || p.kind != packetHello || i.gone.closed(key) || i.closed.Load() || i.reachable(&p.from) != nil {
		return e, nil
	}
	if p.flags&flagFirst == 0 || p.got != 0 {
		// Its messages go on behind those that another endpoint has taken, or it is joined to that one's queue pair.
		return nil, &packet{kind: packetLost, got: p.epoch}
	}
	e, err := i.newEndpoint(p.from, p.nameBytes())
	if err != nil {
		i.logf("refuse peer %s: %v", &p.from, err)
		code := unix.ENOMEM
		_ = errors.As(err, &code)
		return nil, &packet{kind: packetRefuse, code: uint32(code)}
	}
	s.begin(&e.hello, e.msg.qp, i.cfg.ConnectTimeout)
	s.active[e] = struct{}{}
	return e, nil
}

// hellos are what a hello of the peer's may be of.
type hellos int

const (
	helloOurs   hellos = iota // the connection that this one is of
	helloLate                 // a former one, or what this one has left behind
	helloAnew                 // another one, which the peer has begun: it has given this one up
	helloFormer               // one that was given up here, which the peer does not know
)

// of says of which connection a peer's hello is.
func (h *hello) of(p *packet) hellos {
	first := p.flags&flagFirst != 0
	switch {
	case h.peerFirst == 0 && first && (p.got == 0 || p.got == h.epoch):
		return helloOurs
	case h.peerFirst == 0: // a later one, or joined to a queue pair that is not ours
		return helloFormer
	case p.epoch < h.peerFirst:
		return helloLate
	case first && p.epoch > h.peerFirst:
		return helloAnew
	case first && h.epoch != h.first: // the peer knows that ours is broken before it answers
		return helloLate
	}
	return helloOurs
}

// onHello joins our queue pair to the peer's.
func (s *service) onHello(e *Endpoint, p *packet) {
	h := &e.hello
	switch h.of(p) {
	case helloLate:
		return
	case helloAnew:
		e.fail(fmt.Errorf("peer %s has lost the connection and begins another: %w", e, errPath))
		return
	case helloFormer:
		if h.epoch != 0 {
			s.sendHello(e) // by which the peer knows
		}
		return
	}
	if h.applied != 0 && p.epoch > h.applied {
		// The peer has made a new queue pair. Ours cannot be joined twice:
		// the lease holder must make another, and the peer must know that
		// we live.
		e.wantRejoin.Store(true)
		s.i.notify(e)
		s.sendTo(e, &packet{kind: packetWait})
		return
	}
	if e.wantRejoin.Load() || h.epoch == 0 {
		s.sendTo(e, &packet{kind: packetWait})
		return
	}
	if p.epoch < h.applied {
		return // late
	}
	if h.applied == 0 {
		// What the peer's window is later comes over the queue pair, in order, once it has joined.
		e.c.Window.Store(uint32(p.flags&flagClosed) / flagClosed)
		if err := e.join(h.qp, h, p); err != nil {
			e.fail(e.lost(fmt.Errorf("connect to peer %s: %w", e, err)))
			return
		}
		h.applied, h.peerIndex, h.peerSeq = p.epoch, p.index, p.seq
		if h.peerFirst == 0 {
			h.peerFirst = p.epoch
		}
		h.peerRing = transport.Ring{Addr: p.reach, RKey: p.rkey, Taken: p.taken}
		if s.i.cfg.Resolve != nil && !e.ready.Load() {
			e.name.Store(new(p.nameBytes()))
		}
	}
	before := h.confirmed
	h.confirmed = h.confirmed || p.got == h.epoch
	if p.flags&flagWant != 0 || p.got != h.epoch {
		s.sendHello(e)
	}
	if h.confirmed && !before {
		h.running = false
		e.joined()
	}
}

// join connects a queue pair to the peer's, so that it receives and may send.
func (e *Endpoint) join(qp *ibv.QP, h *hello, p *packet) error {
	i := e.i
	depth := i.reads()
	err := qp.ToReceive(ibv.Receive{
		Path: i.path(&e.addr), MTU: int(min(i.addr.mtu, e.addr.mtu)), QP: p.qp, PSN: p.psn,
		MaxReadAtomic: depth, RNRTimer: rnrTimer,
	})
	if err != nil {
		return err
	}
	return qp.ToSend(ibv.Send{
		PSN: h.psn, Timeout: i.cfg.ackTimeout(), Retries: retries, RNRRetries: 7,
		MaxReadAtomic: max(1, min(depth, int(p.reads))),
	})
}

// rnrTimer is the code of the time that a peer waits when our receive buffers
// are used up: 0.64 ms. It tries for ever, because a process that computes
// without progress is not dead.
const rnrTimer = 12

// joined lets the message queue post, the first time. Later the lease holder
// does, which knows what has to be sent again; the peer's number for us stays.
func (e *Endpoint) joined() {
	e.refusal.Store(0)
	if !e.ready.Load() {
		e.c.Index.Store(e.hello.peerIndex)
		e.msg.UseRing(e.hello.peerRing)
		e.msg.start()
		e.ready.Store(true)
		e.c.Blocked.And(^uint32(transport.PeerUnready))
		e.answer()
		return
	}
	e.rejoinedAt.Store(uint64(e.hello.peerSeq) | 1<<32)
	e.i.notify(e)
}

// onMemory makes the passive half for a peer's one-sided operations.
func (s *service) onMemory(e *Endpoint, p *packet) {
	if p.epoch < e.passive.epoch {
		return
	}
	if p.epoch > e.passive.epoch {
		if err := s.newPassive(e, p); err != nil {
			s.i.logf("refuse one-sided operations of peer %s: %v", e, err)
			s.sendTo(e, &packet{kind: packetRefuse, code: uint32(unix.ENOMEM)})
			return
		}
	}
	s.sendTo(e, &packet{
		kind: packetPassive, epoch: p.epoch, got: p.epoch, qp: e.passive.qp.Num, psn: e.passive.psn, index: e.index,
		reads: uint8(s.i.reads()), reach: s.i.scratch.addr, rkey: s.i.scratch.mr.RKey,
	})
}

func (s *service) newPassive(e *Endpoint, p *packet) error {
	qp, err := s.i.makeQP(nil, ibv.RemoteRead|ibv.RemoteWrite)
	if err != nil {
		return err
	}
	h := hello{psn: rand.Uint32() & (1<<24 - 1)}
	if err := e.join(qp, &h, p); err != nil {
		return errors.Join(err, qp.Close())
	}
	old := e.passive.qp
	e.passive = passive{p.epoch, h.psn, qp}
	if old != nil { // nothing is posted to it
		return old.Close()
	}
	return nil
}

// onPassive joins our memory queue to the peer's passive half.
func (s *service) onPassive(e *Endpoint, p *packet) {
	h := &e.memory
	if !h.running || p.epoch != h.epoch {
		return
	}
	if err := e.join(h.qp, h, p); err != nil {
		e.fail(e.lost(fmt.Errorf("connect to the memory of peer %s: %w", e, err)))
		return
	}
	h.running = false
	e.refusal.Store(0)
	e.mem.scratchAddr, e.mem.scratchKey = p.reach, p.rkey
	e.mem.queue.start()
	e.mem.state.Store(memoryReady)
	s.i.wantSignals()
	s.i.bell.Ring()
}
