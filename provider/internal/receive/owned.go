package receive

import (
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/target"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// A receive context may be another provider's (fi_peer(3), FI_PEER), its owner: then weft asks the owner for the
// receive that an arrival matches. A message that matches none is kept here, and the owner, which has the queue of such
// messages, names the receive later.
//
// The owner's lock protects its queues. The owner takes it when it has weft make progress, so no other thread may make
// any: such endpoints have no progress thread, and posting makes no progress for them.

// Owner is the owner of a receive context. Entries are the owner's; weft passes them on.
// All methods but Inserted are called under the progress lease.
//
// Inserted moves no message to a receive that waits for its source: so a directed receive for an address that another
// process has inserted is posted when progress has called Inserted, after up to 20 ms of polls (dataplane's timers).
type Owner interface {
	// Get asks for the receive that a message of size bytes matches.
	// fi.Success: it is entry. fi.ENOENT: there is none, and entry stands for the
	// message. Other errors: there is no entry.
	Get(tagged bool, addr fi.Addr, size, tag uint64) (entry uint64, status fi.Errno)
	// Queue leaves a message that matched nothing to the owner, which names it by id
	// when a receive matches it. data is valid with fi.RemoteCQData in flags.
	Queue(tagged bool, entry, id, data, flags uint64) fi.Errno
	// Receive returns the receive of a matched entry.
	Receive(entry uint64) Receive
	// Free gives an entry back to the owner.
	Free(entry uint64)
	// Inserted says that an address vector of an endpoint with these receives has new addresses: the owner calls
	// Addr for messages whose source it does not know, under a lock of its own if it likes. The thread that
	// inserts calls it, without the lease, and not after the endpoint is closed. Of what another process inserts into
	// a named address vector progress says so, with the lease.
	Inserted()
}

// Receive is a receive that an owner has matched.
type Receive struct {
	IOV     []fi.IOVec // read before the next call
	Descs   []uint64   // of device memory, as long as IOV or empty
	Context uint64
	Flags   uint64 // fi.Completion counts
}

// queued is a message that matched nothing and that the owner has queued.
type queued struct {
	lease   Lease    // of its context
	a       message  // a.at is set when it is delivered: the endpoint may be closed before
	number  uint32   // of its endpoint
	payload uint64   // from the context's pool
	rts     wire.RTS // with msgRTS
	addr    fi.Addr  // of the sender, as the address vector had it last; under waiting.Mutex
}

// waiting are those of all contexts, by id, because an owner names nothing
// else. Only messages that an owner matched to nothing take the lock.
var waiting struct {
	sync.Mutex
	byID map[uint64]*queued
	last uint64
}

// Own has an owner match the receives of a context whose progress lease is l, before endpoints use it.
func (c *Context) Own(owner Owner, l Lease) { c.owner, c.lease = owner, l }

// offer gives an arrival to the owner's receive that matches it, or else has the owner queue it. rts is its
// RTS, nil for a message that came with its payload. False: there is no memory to keep it, and nothing has happened.
func (c *Context) offer(a *message, payload []byte, rts *wire.RTS) bool {
	tagged := a.flags&msgTagged != 0
	entry, status := c.owner.Get(tagged, a.at.host.AddrOf(a.from.ID), a.length, a.tag)
	switch status {
	case fi.Success:
		c.deliverOwned(entry, a, payload, rts)
	case fi.ENOENT:
		return c.enqueue(entry, tagged, a, payload, rts)
	default:
		c.refuse(a, status)
	}
	return true
}

// refuse drops a message that the owner cannot take.
func (c *Context) refuse(a *message, status fi.Errno) {
	log.Warnf(log.EPData, "message of %d bytes from %s dropped: the owner of the receive context says %v", a.length,
		a.at.host.Name(a.from), status)
	if a.awaited() {
		a.ack(status)
	}
}

// deliverOwned gives a message to a receive of the owner's.
func (c *Context) deliverOwned(entry uint64, a *message, payload []byte, rts *wire.RTS) {
	t, err := c.ownedTarget(entry, a)
	if err != fi.Success {
		c.owner.Free(entry)
		c.refuse(a, err)
		return
	}
	if rts != nil {
		c.startRendezvous(t, nil, a, rts)
		return
	}
	c.deliver(t, a, payload)
}

// ownedTarget is where a receive of the owner's wants its message.
func (c *Context) ownedTarget(entry uint64, a *message) (target.Target, fi.Errno) {
	p := c.owner.Receive(entry)
	t := target.Target{Context: p.Context, Flags: p.Flags & fi.Completion, Entry: entry}
	if a.flags&msgTagged != 0 {
		t.Flags |= hot.RecvTagged
	}
	if len(p.IOV) > wire.IOVLimit {
		return t, fi.EINVAL
	}
	iov := &c.iov
	n := copy(iov[:], p.IOV)
	if len(p.Descs) != 0 {
		if err := a.at.host.Translate(iov[:n], p.Descs); err != nil {
			return t, fi.ErrnoOf(err)
		}
		if hmem.AnyOnDevice(iov[:n]) {
			t.Flags |= hot.RecvDevice
		}
	}
	switch n {
	case 0:
	case 1:
		t.Buf, t.Len = uint64(iov[0].Base), iov[0].Len
	default:
		addr, err := keepVector(c.Pool, iov[:n])
		if err != nil {
			return t, fi.ENOMEM
		}
		t.Buf, t.Len = addr, uint64(n)
		t.Flags |= hot.RecvIOV
	}
	return t, fi.Success
}

// enqueue keeps a message for the owner. False: there is no memory, and nothing has happened.
func (c *Context) enqueue(entry uint64, tagged bool, a *message, payload []byte, rts *wire.RTS) bool {
	m := &queued{lease: c.lease, a: *a, number: a.at.number, addr: a.at.host.AddrOf(a.from.ID)}
	m.a.at = nil
	if a.untilHere() {
		m.a.flags &^= msgSync
	}
	if rts != nil {
		m.rts = *rts
	} else if len(payload) != 0 {
		var err error
		if m.payload, err = c.Pool.Get(len(payload)); err != nil {
			c.owner.Free(entry)
			return c.noMemory(err)
		}
		copy(mem.Bytes(m.payload, uint64(len(payload))), payload)
	}
	c.Hold(m.cost())
	waiting.Lock()
	if waiting.byID == nil {
		waiting.byID = map[uint64]*queued{}
	}
	waiting.last++
	id := waiting.last
	waiting.byID[id] = m
	waiting.Unlock()
	flags := uint64(0)
	if a.flags&msgData != 0 {
		flags = fi.RemoteCQData
	}
	if status := c.owner.Queue(tagged, entry, id, a.data, flags); status != fi.Success {
		takeQueued(id)
		c.free(m)
		c.owner.Free(entry)
		c.refuse(a, status)
	} else if a.untilHere() {
		a.ack(fi.Success)
	}
	return true
}

// takeQueued returns an unexpected message, which is then the caller's; nil if there is none.
func takeQueued(id uint64) *queued {
	waiting.Lock()
	defer waiting.Unlock()
	m := waiting.byID[id]
	delete(waiting.byID, id)
	return m
}

// free frees what a message that was taken has.
func (c *Context) free(m *queued) {
	if m.payload != 0 {
		c.Pool.Put(m.payload, int(m.a.length))
	}
	c.Unhold(m.cost())
}

// cost is the payload of a message that is here, and the memory that the message takes, in bytes.
func (m *queued) cost() (payload, memory int) {
	if m.a.flags&msgRTS != 0 {
		return 0, queuedBytes
	}
	payload, memory = int(m.a.length), queuedBytes
	if m.payload != 0 {
		memory += mem.PoolBytes(payload)
	}
	return payload, memory
}

// Start gives an unexpected message to the receive that entry has become. Errors: fi.ENOENT
// for a message that is not there: its endpoint was closed.
func Start(entry, id uint64) error {
	m := takeQueued(id)
	if m == nil {
		return fi.ENOENT
	}
	c := m.lease.Wait()
	defer m.lease.Give()
	if m.a.at = c.byNumber(m.number); m.a.at == nil {
		c.free(m)
		return fi.ENOENT
	}
	if m.a.flags&msgRTS != 0 {
		c.deliverOwned(entry, &m.a, nil, &m.rts)
	} else {
		c.deliverOwned(entry, &m.a, mem.Bytes(m.payload, m.a.length), nil)
	}
	c.free(m)
	return nil
}

// Discard drops an unexpected message. Its sender gets the acknowledgement of a receive; the entry
// stays the owner's. Errors as of Start.
func Discard(id uint64) error {
	m := takeQueued(id)
	if m == nil {
		return fi.ENOENT
	}
	c := m.lease.Wait()
	defer m.lease.Give()
	if m.a.at = c.byNumber(m.number); m.a.at != nil && m.a.awaited() {
		m.a.ack(fi.Success)
	}
	c.free(m)
	return nil
}

// Addr is the source address of an unexpected message, which the address vector
// may know now; fi.AddrUnspec if it does not. It takes no lease: the caller may have a lock
// that the holder of the lease waits for in the owner's functions.
func Addr(id uint64) fi.Addr {
	waiting.Lock()
	defer waiting.Unlock()
	m := waiting.byID[id]
	if m == nil {
		return fi.AddrUnspec
	}
	return m.addr
}

// NameQueued finds the addresses of the senders of an endpoint's messages that the owner has queued.
func (c *Context) NameQueued(e *Endpoint) {
	waiting.Lock()
	defer waiting.Unlock()
	for _, m := range waiting.byID {
		if m.lease == c.lease && m.number == e.number {
			m.addr = e.host.AddrOf(m.a.from.ID)
		}
	}
}

// dropQueued forgets what arrived at an endpoint that is closed.
func (c *Context) dropQueued(e *Endpoint) {
	if c.owner == nil {
		return
	}
	waiting.Lock()
	defer waiting.Unlock()
	for id, m := range waiting.byID {
		if m.lease == c.lease && m.number == e.number {
			delete(waiting.byID, id)
			c.free(m)
		}
	}
}
