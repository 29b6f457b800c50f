package verbs

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
)

// request is an atomic operation that the peer's CPU is to perform.
type request struct {
	op               hw.AtomicOp
	size             int
	operand, compare uint64
	addr             uint64 // in the key's terms
	key              hw.RemoteKey
	result           *uint64
	c                *hw.Completion
}

// maxAsks is the number of requests to one peer that wait for replies.
const maxAsks = 64

// asks are the requests that wait for replies.
type asks struct {
	// busy is 0 for a free place, 1 while one is filled or ends, and else the number of the request whose reply is
	// out. The thread that changes 0 or a number into 1, by compare-and-swap, has the place until it stores
	// another value: one that asks, or the lease holder. Sequentially consistent.
	busy [maxAsks]atomic.Uint32
	// next counts the requests, for their places and numbers. Any thread; sequentially consistent.
	next   atomic.Uint32
	result [maxAsks]*uint64
	c      [maxAsks]*hw.Completion
}

// replyOut is set in the numbers of requests.
const replyOut = 1 << 31

// end takes a place whose reply is out, to end its request. False: the request has ended.
func (a *asks) end(n int) bool {
	number := a.busy[n].Load()
	return number&replyOut != 0 && a.busy[n].CompareAndSwap(number, 1)
}

// requestBytes is the length of a request's payload:
//
//	operation | size | 2 zeros | device key:4 | address:8 | operand:8 | compare:8
//
// A reply's is status | 7 zeros | old value:8. Both carry the place in asks as
// their header.
const (
	requestBytes = 32
	replyBytes   = 16
)

// Status of a reply.
const (
	replyDone = iota
	replyKey
)

// ask sends a request.
func (e *Endpoint) ask(r request) error {
	at, rkey, err := remote(r.key, r.addr, uint64(r.size), hw.RemoteAtomic)
	if err != nil {
		return fmt.Errorf("verbs: word at %#x of peer %s: %w", r.addr, e, err)
	}
	if err := e.usable(); err != nil {
		return err
	}
	a := &e.asks
	number := a.next.Add(1)
	n := number % maxAsks
	number |= replyOut
	for k := 0; !a.busy[n].CompareAndSwap(0, 1); k++ {
		if k == maxAsks {
			return e.full()
		}
		n = (n + 1) % maxAsks
	}
	a.result[n], a.c[n] = r.result, r.c
	var b [requestBytes]byte
	b[0], b[1] = byte(r.op), byte(r.size)
	binary.LittleEndian.PutUint32(b[4:], rkey)
	binary.LittleEndian.PutUint64(b[8:], at)
	binary.LittleEndian.PutUint64(b[16:], r.operand)
	binary.LittleEndian.PutUint64(b[24:], r.compare)
	e.slow.Add(1)
	a.busy[n].Store(number)
	if err := e.sendShort(kindRequest, 0, uint64(n), nil, b[:]); err != nil {
		return e.unsent(n, number, err)
	}
	return nil
}

// unsent takes back a request that was not sent because of err, and returns that. nil: the end of the connection has
// ended the request, and its completion has the error.
func (e *Endpoint) unsent(n, number uint32, err error) error {
	if !e.asks.busy[n].CompareAndSwap(number, 1) {
		return nil
	}
	e.leavePlace(int(n))
	return err
}

// leavePlace frees a place that the caller has.
func (e *Endpoint) leavePlace(n int) {
	a := &e.asks
	a.result[n], a.c[n] = nil, nil
	a.busy[n].Store(0)
	e.slow.Add(-1)
}

// perform does what a peer asked and sends the reply. Lease.
func (r *receiver) perform(e *Endpoint, m *message, b []byte) {
	if len(b) != requestBytes || m.headLen != 0 || m.header >= maxAsks || len(e.lease.replies) >= maxAsks {
		r.refuse("request of %d bytes from peer %s", len(b), e)
		return
	}
	op, size := hw.AtomicOp(b[0]), int(b[1])
	addr := binary.LittleEndian.Uint64(b[8:])
	p := reply{place: m.header, status: replyKey}
	if checkAtomic(op, size, addr, fetchOps) == nil {
		memory := r.i.d.find(binary.LittleEndian.Uint32(b[4:]))
		old, ok := memory.atomic(op, size, addr, binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:]))
		if ok {
			p.status, p.old = replyDone, old
		}
	}
	e.lease.replies = append(e.lease.replies, p)
	e.sendReplies()
}

// reply is one that has still to be sent.
type reply struct {
	place  uint64
	status uint8
	old    uint64
}

// sendReplies sends as many replies as there are places for. Lease.
func (e *Endpoint) sendReplies() {
	for len(e.lease.replies) > 0 {
		p := e.lease.replies[0]
		var b [replyBytes]byte
		b[0] = p.status
		binary.LittleEndian.PutUint64(b[8:], p.old)
		if err := e.sendShort(kindReply, 0, p.place, nil, b[:]); err != nil {
			e.i.notify(e)
			return
		}
		e.lease.replies = e.lease.replies[1:]
	}
	e.lease.replies = nil
}

// replied takes a reply and updates the completion. Lease.
func (r *receiver) replied(e *Endpoint, m *message, b []byte) int {
	if len(b) != replyBytes || m.headLen != 0 || m.header >= maxAsks || b[0] > replyKey || !e.asks.end(int(m.header)) {
		r.refuse("reply of %d bytes from peer %s", len(b), e)
		return 0
	}
	var err error
	if b[0] == replyKey {
		err = fmt.Errorf("verbs: peer %s: %w", e, hw.ErrKey)
	}
	return e.answered1(int(m.header), binary.LittleEndian.Uint64(b[8:]), err)
}

// answered1 ends a request whose place the caller has.
func (e *Endpoint) answered1(n int, old uint64, err error) int {
	a := &e.asks
	result, c := a.result[n], a.c[n]
	e.leavePlace(n)
	if err == nil && result != nil {
		*result = old
	}
	if c == nil {
		return 0
	}
	c.Update(1, err)
	return 1
}

// endAsks ends all requests with an error. Lease.
func (e *Endpoint) endAsks(err error) {
	for n := range e.asks.busy {
		if e.asks.end(n) {
			e.answered1(n, 0, err)
		}
	}
}

// find is the region with a device key, nil if there is none.
func (d *MemoryDomain) find(rkey uint32) *Memory {
	if m, ok := d.byKey.Load(rkey); ok {
		return m.(*Memory)
	}
	return nil
}
