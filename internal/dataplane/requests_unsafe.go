package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/stripe"
)

// Transmits that wait for their receiver's acknowledgement. Package provider and sendRequest make them, and EndRequest
// ends those that have succeeded, from either side.

// VectorMax is the number of elements of a message, on both sides: what an RTS has room for.
const VectorMax = 4

// Request is a transmit that waits for its receiver's acknowledgement. It lies off the Go heap, in its stripe's part of
// the endpoint's table; its id names it in messages.
type Request struct {
	Context uint64
	Flags   uint64 // Request*, and more that are package messages's
	Work    uint64 // the number of the deferred work that it is, or 0
	Length  uint64 // bytes of the message
	Link    uint32 // the endpoint's number for the peer
	Count   uint32 // elements of IOV
	IOV     [VectorMax]fi.IOVec
	// Ring is, of one that sendRequest made, the slots of the peer's ring, which a later peer does not have; else 0.
	Ring uintptr

	// Live is the generation of the request's id while an ACK, or the loss of the peer, may end the request; else 0:
	// while its fields are written, and when the sender has taken it back. Stored by the sender, before the message
	// goes out. The one that ends the request changes it to 0 by compare-and-swap: the lease holder, or a sender that
	// takes it back; sequentially consistent.
	Live atomic.Uint32

	Fragments Fragments // used by the lease holder only, once Live is stored
}

// Begin makes a request that was taken from the table that of a message of length bytes to the peer with a number. Its
// elements are left to the caller.
func (req *Request) Begin(context, length, flags uint64, link uint32) {
	req.Context, req.Flags, req.Work, req.Length = context, flags, 0, length
	req.Link, req.Count, req.Ring = link, 0, 0
	req.Fragments.Op, req.Fragments.Sent, req.Fragments.Limit = 0, 0, 0
}

// Fragments is how far a message is sent in fragments.
type Fragments struct {
	Op    uint64 // the receiver's operation that they name
	Sent  uint64 // bytes
	Limit uint64 // bytes that the receiver wants, 0: the message is not sent in fragments
}

// Bits of Request.Flags.
const (
	RequestTagged    = 1
	RequestCompletes = 2 // on the transmit queue
	RequestRTS       = 4 // its receiver fetches the payload, or has it sent: until then the elements are read
	RequestMore      = 8 // it and all above: package messages's, which ends such a request
)

// RequestFlags are the flags of the request of a message.
func RequestFlags(tagged, completes bool) (flags uint64) {
	if tagged {
		flags = RequestTagged
	}
	if completes {
		flags |= RequestCompletes
	}
	return flags
}

// RTSFlags are the flags of the RTS of a message, or of the head of one whose payload goes along, by its kind.
func RTSFlags(tagged, data bool) (flags uint32) {
	if tagged {
		flags = hot.RTSTagged
	}
	if data {
		flags |= hot.RTSData
	}
	return flags
}

// Bytes of an RTS without elements, and at most.
const (
	RTSFixed = 32
	RTSBytes = RTSFixed + 16*VectorMax + 16
)

// PutRTS writes the RTS of a message to memory that has room for one: a hot.RTSHead of which the elements, at most
// VectorMax, stand at the end. An element is its address, or what else its receiver knows it by, and its bytes. It
// returns the bytes that it has written.
func PutRTS(to *[RTSBytes]byte, id, length, data uint64, flags uint32, elements []fi.IOVec) int {
	h := (*hot.RTSHead)(unsafe.Pointer(to))
	count := min(len(elements), VectorMax)
	h.Request, h.Length, h.Data, h.Flags, h.Count = id, length, data, flags, uint32(count)
	at := (*[VectorMax][2]uint64)(unsafe.Pointer(&h.Addr))
	for i := range count {
		at[i][0], at[i][1] = uint64(elements[i].Base), elements[i].Len
	}
	return RTSFixed + 16*count
}

// Requests are those of an endpoint.
type Requests = stripe.Table[Request]

// requestsOf returns the table of an endpoint, nil if it has none.
func requestsOf(ep *hot.EP) *Requests { return (*Requests)(pointer(ep.Requests)) }

// Link is what is counted of a peer, one line, by the endpoint's number for the peer.
type Link struct {
	// InFlight counts transmits that wait for the peer's acknowledgement. Added to by posting threads, subtracted from
	// by the lease holder; sequentially consistent: while it is not 0 the number is no other peer's.
	InFlight atomic.Int64
	// Listed are the elements of lists that were copied from and to the peer's memory, ListedBytes their bytes. Added
	// to by posting threads, read by the lease holder, set to 0 with a new link's number; sequentially consistent.
	Listed, ListedBytes atomic.Uint64
	_                   [40]byte
}

// linkAt returns the line of a number, nil if there is none for the data plane.
func linkAt(ep *hot.EP, n uint32) *Link {
	if n >= atomic.LoadUint32(&ep.LinkLimit) {
		return nil
	}
	return (*Link)(pointer(ep.Links + uintptr(n)*unsafe.Sizeof(Link{})))
}

// EndRequest completes the transmit of a request that its receiver has acknowledged with success, and frees the
// request. It returns what is left to do (hot.Todo*). ok is false where nothing has happened, because package provider
// is to end the request: its queue has no room, more than the completion depends on it, or it has ended. to is where
// the completion goes, nil: to the queue. The caller holds the progress lease.
func EndRequest(ep *hot.EP, to *hot.Reader, req *Request, id uint64) (todo uint32, ok bool) {
	live := uint32(id >> 32)
	if !req.Live.CompareAndSwap(live, 0) {
		return 0, false
	}
	link := linkAt(ep, req.Link)
	if link == nil || req.Flags >= RequestMore || req.Work != 0 || req.Fragments.Limit != 0 {
		req.Live.Store(live)
		return 0, false
	}
	if req.Flags&RequestCompletes != 0 {
		var s spot
		if q := (*hot.CQ)(pointer(ep.TxCQ)); q == nil || !s.take(q, to) {
			req.Live.Store(live)
			return 0, false
		}
		kind := fi.Send | fi.Msg
		if req.Flags&RequestTagged != 0 {
			kind = fi.Send | fi.Tagged
		}
		e := hot.CQE{Context: req.Context, Flags: kind, Src: uint64(fi.AddrNotAvail)}
		if s.fill((*hot.CQ)(pointer(ep.TxCQ)), &e) {
			todo = hot.TodoWakeTxCQ
		}
	}
	todo |= countAs(ep.TxCntr, req.Length, hot.TodoWakeTxCntr)
	link.InFlight.Add(-1)
	requestsOf(ep).Free(id)
	stat(ep, stats.RxAcksDirect, 1)
	return todo, true
}

// takeAck completes the send that an ACK names, or has the runtime do so.
func takeAck(d *hot.Delivery, ep *hot.EP, owner uint32, slot *hot.Slot, m message) uintptr {
	src, addr := sender(ep, owner)
	if src == nil || m.flags() != 0 || m.length() != 0 || m.head() != 8 {
		return hot.DeliveryGo
	}
	status := atomic.LoadUint64((*uint64)(unsafe.Pointer(&slot.Body)))
	if status == 0 && ackReceived(d, ep, fullAddr(ep, src, addr), m.header) {
		d.Bounce = 0
		release(d, ep)
		return next
	}
	d.Source, d.Request, d.Data = owner-1, m.header, status
	d.Bounce, d.After = 0, afterSlot
	return hot.DeliveryAckReceived
}

// ackReceived ends a request that a peer has acknowledged, which has to be the request's own; false: it is for the
// runtime.
func ackReceived(d *hot.Delivery, ep *hot.EP, addr, id uint64) bool {
	table := requestsOf(ep)
	if table == nil {
		return false
	}
	req, known := table.Lookup(id)
	_, peer := peerOf(ep, addr)
	if !known || peer == nil || atomic.LoadUint32(&peer.Link) != req.Link+1 {
		return false
	}
	todo, ok := EndRequest(ep, (*hot.Reader)(pointer(d.TxReader)), req, id)
	d.Todo |= todo
	return ok
}
