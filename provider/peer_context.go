package provider

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

// PeerOwner is the owner of a receive context. Entries are the owner's; weft passes them on.
// All methods but Inserted are called under the progress lease.
//
// Inserted moves no message to a receive that waits for its source: so a directed receive for an address that another
// process has inserted is posted when progress has called Inserted, after up to 20 ms of polls (dataplane's timers).
type PeerOwner interface {
	// Get asks for the receive that a message of size bytes matches.
	// fi.Success: it is entry. fi.ENOENT: there is none, and entry stands for the
	// message. Other errors: there is no entry.
	Get(tagged bool, addr fi.Addr, size, tag uint64) (entry uint64, status fi.Errno)
	// Queue leaves a message that matched nothing to the owner, which names it by id
	// when a receive matches it. data is valid with fi.RemoteCQData in flags.
	Queue(tagged bool, entry, id, data, flags uint64) fi.Errno
	// Receive returns the receive of a matched entry.
	Receive(entry uint64) PeerReceive
	// Free gives an entry back to the owner.
	Free(entry uint64)
	// Inserted says that an address vector of an endpoint with these receives has new addresses: the owner calls
	// PeerAddr for messages whose source it does not know, under a lock of its own if it likes. The thread that
	// inserts calls it, without the lease, and not after the endpoint is closed. Of what another process inserts into
	// a named address vector progress says so, with the lease.
	Inserted()
}

// PeerReceive is a receive that an owner has matched.
type PeerReceive struct {
	IOV     []fi.IOVec // read before the next call
	Descs   []uint64   // of device memory, as long as IOV or empty
	Context uint64
	Flags   uint64 // fi.Completion counts
}

// peerMessage is a message that matched nothing and that the owner has queued.
type peerMessage struct {
	rx      *rxContext
	a       arrived // a.ep is set when it is delivered: the endpoint may be closed before
	ep      uint32
	payload uint64   // from the context's pool
	rts     wire.RTS // with msgRTS
	addr    fi.Addr  // of the sender, as the address vector had it last; under peerMessages.Mutex
}

// peerMessages are those of all contexts, by id, because an owner names nothing
// else. Only messages that an owner matched to nothing take the lock.
var peerMessages struct {
	sync.Mutex
	byID map[uint64]*peerMessage
	last uint64
}

// OpenPeerRx makes a receive context whose receives are owner's. Errors as of
// OpenSharedRx, and fi.ENOSYS unless the domain was opened with fi.Peer.
func (d *Domain) OpenPeerRx(attr *fi.RxAttr, owner PeerOwner) (*SharedRx, error) {
	if err := d.matchesNot("shared receive context"); err != nil {
		return nil, err
	}
	if d.info.Caps&fi.Peer == 0 && d.info.Domain.Caps&fi.Peer == 0 {
		return nil, refuse(log.Domain, fi.ENOSYS, "import a receive context: the domain was opened without FI_PEER")
	}
	s, err := d.OpenSharedRx(attr)
	if err != nil {
		return nil, err
	}
	s.rx.owner, s.rx.offload = owner, false
	return s, nil
}

// Imported reports whether another provider matches the endpoint's receives.
func (e *Endpoint) Imported() bool {
	return e.base.bound.srx != nil && e.base.bound.srx.rx.owner != nil
}

// offerPeer gives an arrival to the owner's receive that matches it, or else has the owner queue it. rts is its
// RTS, nil for a message that came with its payload. False: there is no memory to keep it, and nothing has happened.
func (r *leasedRx) offerPeer(a *arrived, payload []byte, rts *wire.RTS) bool {
	tagged := a.flags&msgTagged != 0
	entry, status := r.base.owner.Get(tagged, a.ep.addrOf(a.source), a.length, a.tag)
	switch status {
	case fi.Success:
		r.deliverPeer(entry, a, payload, rts)
	case fi.ENOENT:
		return r.queuePeer(entry, tagged, a, payload, rts)
	default:
		r.refusePeer(a, status)
	}
	return true
}

// refusePeer drops a message that the owner cannot take.
func (r *receiving) refusePeer(a *arrived, status fi.Errno) {
	log.Warnf(log.EPData, "message of %d bytes from %s dropped: the owner of the receive context says %v", a.length,
		r.addressOf(a.sender()), status)
	if a.flags&(msgRTS|msgSync) != 0 {
		r.sendAck(a, status)
	}
}

// deliverPeer gives a message to a receive of the owner's.
func (r *leasedRx) deliverPeer(entry uint64, a *arrived, payload []byte, rts *wire.RTS) {
	t, err := r.peerTarget(entry, a)
	if err != fi.Success {
		r.base.owner.Free(entry)
		r.refusePeer(a, err)
		return
	}
	if rts != nil {
		r.startRendezvous(t, nil, a, rts)
		return
	}
	r.deliver(t, a, payload)
}

// peerTarget is where a receive of the owner's wants its message.
func (r *receiving) peerTarget(entry uint64, a *arrived) (target.Target, fi.Errno) {
	p := r.base.owner.Receive(entry)
	t := target.Target{Context: p.Context, Flags: p.Flags & fi.Completion, Entry: entry}
	if a.flags&msgTagged != 0 {
		t.Flags |= hot.RecvTagged
	}
	if len(p.IOV) > wire.IOVLimit {
		return t, fi.EINVAL
	}
	var iov [wire.IOVLimit]fi.IOVec
	n := copy(iov[:], p.IOV)
	if len(p.Descs) != 0 {
		if err := a.ep.ep.base.domain.Translate(iov[:n], p.Descs); err != nil {
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
		addr, err := r.matching.Pool.Get(n * iovBytes)
		if err != nil {
			return t, fi.ENOMEM
		}
		copy(vectorAt(addr, n), iov[:n])
		t.Buf, t.Len = addr, uint64(n)
		t.Flags |= hot.RecvIOV
	}
	return t, fi.Success
}

// queuePeer keeps a message for the owner. False: there is no memory, and nothing has happened.
func (r *receiving) queuePeer(entry uint64, tagged bool, a *arrived, payload []byte, rts *wire.RTS) bool {
	m := &peerMessage{rx: &r.base, a: *a, ep: a.ep.ep.base.number, addr: a.ep.addrOf(a.source)}
	m.a.ep = nil
	if a.untilHere() {
		m.a.flags &^= msgSync
	}
	if rts != nil {
		m.rts = *rts
	} else if len(payload) != 0 {
		var err error
		if m.payload, err = r.matching.Pool.Get(len(payload)); err != nil {
			r.base.owner.Free(entry)
			return r.noMemory(err)
		}
		copy(bytesAt(m.payload, uint64(len(payload))), payload)
	}
	r.hold(m.cost())
	peerMessages.Lock()
	if peerMessages.byID == nil {
		peerMessages.byID = map[uint64]*peerMessage{}
	}
	peerMessages.last++
	id := peerMessages.last
	peerMessages.byID[id] = m
	peerMessages.Unlock()
	flags := uint64(0)
	if a.flags&msgData != 0 {
		flags = fi.RemoteCQData
	}
	if status := r.base.owner.Queue(tagged, entry, id, a.data, flags); status != fi.Success {
		takePeerMessage(id)
		r.freePeer(m)
		r.base.owner.Free(entry)
		r.refusePeer(a, status)
	} else if a.untilHere() {
		r.sendAck(a, fi.Success)
	}
	return true
}

// takePeerMessage returns an unexpected message, which is then the caller's; nil if there is none.
func takePeerMessage(id uint64) *peerMessage {
	peerMessages.Lock()
	defer peerMessages.Unlock()
	m := peerMessages.byID[id]
	delete(peerMessages.byID, id)
	return m
}

// freePeer frees what a message that was taken has.
func (r *receiving) freePeer(m *peerMessage) {
	if m.payload != 0 {
		r.matching.Pool.Put(m.payload, int(m.a.length))
	}
	r.unhold(m.cost())
}

// cost is the payload of a message that is here, and the memory that the message takes, in bytes.
func (m *peerMessage) cost() (payload, memory int) {
	if m.a.flags&msgRTS != 0 {
		return 0, peerMessageBytes
	}
	payload, memory = int(m.a.length), peerMessageBytes
	if m.payload != 0 {
		memory += mem.PoolBytes(payload)
	}
	return payload, memory
}

// StartPeer gives an unexpected message to the receive that entry has become. Errors: fi.ENOENT
// for a message that is not there: its endpoint was closed.
func StartPeer(entry, id uint64) error {
	m := takePeerMessage(id)
	if m == nil {
		return fi.ENOENT
	}
	r := m.rx.acquire()
	defer r.give()
	if m.a.ep = r.byNumber(m.ep); m.a.ep == nil {
		r.freePeer(m)
		return fi.ENOENT
	}
	if m.a.flags&msgRTS != 0 {
		r.deliverPeer(entry, &m.a, nil, &m.rts)
	} else {
		r.deliverPeer(entry, &m.a, bytesAt(m.payload, m.a.length), nil)
	}
	r.freePeer(m)
	r.publish()
	return nil
}

// DiscardPeer drops an unexpected message. Its sender gets the acknowledgement of a receive; the entry
// stays the owner's. Errors as of StartPeer.
func DiscardPeer(id uint64) error {
	m := takePeerMessage(id)
	if m == nil {
		return fi.ENOENT
	}
	r := m.rx.acquire()
	defer r.give()
	if m.a.ep = r.byNumber(m.ep); m.a.ep != nil && m.a.flags&(msgRTS|msgSync) != 0 {
		r.sendAck(&m.a, fi.Success)
	}
	r.freePeer(m)
	r.publish()
	return nil
}

// PeerAddr is the source address of an unexpected message, which the address vector
// may know now; fi.AddrUnspec if it does not. It takes no lease: the caller may have a lock
// that the holder of the lease waits for in the owner's functions.
func PeerAddr(id uint64) fi.Addr {
	peerMessages.Lock()
	defer peerMessages.Unlock()
	m := peerMessages.byID[id]
	if m == nil {
		return fi.AddrUnspec
	}
	return m.addr
}

// inserted is called when an endpoint's address vector has new addresses.
func (r *rxContext) inserted(e *Endpoint) {
	lease := r.acquire()
	if l := lease.byNumber(e.base.number); l != nil {
		lease.namePeerMessages(l)
	}
	lease.give()
	r.owner.Inserted()
}

// reportInsertions has the owner ask for addresses again if another process has changed an address vector.
func (r *leasedRx) reportInsertions() {
	if r.base.owner == nil {
		return
	}
	changed := false
	for _, e := range r.eps {
		if e.ep.base.bound.av.Shared() && e.ep.base.bound.av.Generation() != e.peersNamed {
			r.namePeerMessages(e)
			changed = true
		}
	}
	if changed {
		r.base.owner.Inserted()
	}
}

// namePeerMessages finds the addresses of the senders of an endpoint's messages that the owner has queued.
func (r *leasedRx) namePeerMessages(e *leasedEP) {
	e.peersNamed = e.ep.base.bound.av.Generation()
	peerMessages.Lock()
	defer peerMessages.Unlock()
	for _, m := range peerMessages.byID {
		if m.rx == &r.base && m.ep == e.ep.base.number {
			m.addr = e.addrOf(m.a.source)
		}
	}
}

// dropPeerMessages forgets what arrived at an endpoint that is closed.
func (r *receiving) dropPeerMessages(e *Endpoint) {
	if r.base.owner == nil {
		return
	}
	peerMessages.Lock()
	defer peerMessages.Unlock()
	for id, m := range peerMessages.byID {
		if m.rx == &r.base && m.ep == e.base.number {
			delete(peerMessages.byID, id)
			r.freePeer(m)
		}
	}
}
