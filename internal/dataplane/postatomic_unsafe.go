package dataplane

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw/loopback/outbound"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// Atomic operations on one integer, as one message in the peer's ring. A plain one completes when it is there
// (atomicPlain), unless it is to complete when it is delivered: then it is answered, as a fetching or comparing one
// is (atomicAwaited, pending_unsafe.go).

const (
	// atomicFlags are the flags of an atomic operation that fetches nothing.
	atomicFlags = messageFlags&^fi.RemoteCQData | fi.DeliveryComplete
	// fetchFlags are those of one that is answered: with its result it has every completion level.
	fetchFlags = fi.Completion | fi.More | fi.InjectComplete | fi.TransmitComplete | fi.DeliveryComplete
)

// Atomic posts an atomic operation on one integer. at is the address of a hot.Post, the result one of its codes.
func Atomic(at, _, _, _ uintptr) uintptr { return endPost(at, postAtomic(beginPost(at))) }

func postAtomic(p *hot.Post) uintptr {
	p.Todo, p.Next = 0, 0
	if p.Kind&(unlikely|hot.PostRemote) != 0 && !singleAtomic(p) || p.Len != 1 {
		return hot.PostGo
	}
	code := postInteger(p)
	if code == hot.PostGo {
		p.Len = 1
	}
	return code
}

// singleAtomic makes an operation on vectors of one element one on that element. false: it is none.
func singleAtomic(p *hot.Post) bool {
	if p.Kind&hot.PostDevice != 0 {
		return false
	}
	header, key := p.Header, p.Key
	if p.Kind&hot.PostRemote != 0 {
		if p.Remotes != 1 || p.Remote == 0 {
			return false
		}
		e := (*[3]uint64)(pointer(p.Remote)) // struct fi_rma_ioc
		if e[1] != 1 {
			return false
		}
		header, key = e[0], e[2]
	}
	if p.Kind&hot.PostVector != 0 {
		operand, ok := element(p.Buf, p.Len)
		compare, okCompare := element(p.Compare, p.Compares)
		result, okResult := element(p.Result, p.Results)
		if !ok || p.Atomic == hot.AtomicCompare && !okCompare || p.Atomic != hot.AtomicPlain && !okResult {
			return false
		}
		p.Buf, p.Len, p.Compare, p.Result = operand, 1, compare, result
	}
	p.Header, p.Key = header, key
	p.Kind &^= hot.PostVector | hot.PostRemote
	return true
}

// element is the address of the only element of a vector, 0 if it has none. false: it has more.
func element(at uintptr, n uint64) (addr uintptr, ok bool) {
	if n != 1 || at == 0 {
		return 0, n == 0
	}
	e := (*[2]uint64)(pointer(at)) // struct fi_ioc
	return uintptr(e[0]), e[1] == 1
}

// postInteger posts one on one element. Len becomes its bytes.
func postInteger(p *hot.Post) uintptr {
	ep := endpoint(p.EP)
	size := integerSize(p.Atomic, fi.Datatype(p.Datatype), fi.Op(p.Op))
	reads := fi.Op(p.Op) == fi.OpRead
	plain := p.Atomic == hot.AtomicPlain
	var flags uint64 = atomicFlags
	if !plain {
		flags = fetchFlags
	}
	p.Len = size
	if size == 0 || !reads && p.Buf == 0 || p.Atomic == hot.AtomicCompare && p.Compare == 0 || !plain && p.Result == 0 ||
		p.Flags&^flags != 0 || (p.Kind&hot.PostInject != 0 || p.Flags&fi.Inject != 0) && size > uint64(ep.InjectMax) {
		return hot.PostGo
	}
	peer, slots := onesided(p, ep)
	if peer == nil || !keysOf(peer).Allowed(p.Key, p.Header, size, rightsOf(p.Atomic, reads)) {
		return hot.PostGo
	}
	view := ringOf(peer, slots)
	var code uintptr
	if plain && !awaitsDelivery(p, ep) {
		code = atomicPlain(p, ep, peer, mpsc.View(&view))
	} else {
		code = atomicAwaited(p, ep, peer, mpsc.View(&view), reads)
	}
	if code == hot.PostDone {
		countPost(p, ep, stats.ThreadAtomic, 1)
		wakePeer(p, peer)
	}
	return code
}

// rightsOf are the rights that an atomic operation of a kind needs.
func rightsOf(kind uint32, reads bool) uint32 {
	switch {
	case reads:
		return hot.KeyRead
	case kind == hot.AtomicPlain:
		return hot.KeyWrite
	}
	return hot.KeyWrite | hot.KeyRead
}

// atomicPlain posts an operation without an answer, and completes it.
func atomicPlain(p *hot.Post, ep *hot.EP, peer *hot.Peer, ring *mpsc.Ring) uintptr {
	var e place
	if !e.room(p, ep) {
		return hot.PostAgain
	}
	slot, pos, ok := outbound.Claim(ring, peer.Owner, peer.Exclusive != 0)
	if !ok {
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	putAtomic(p, slot, 0, p.Len, 0)
	publish(p, peer, ring, slot, pos, hot.AMAtomic)
	e.complete(p, ep.WriteCntr, fi.Write|fi.Atomic, p.Len)
	return hot.PostDone
}

// putAtomic writes an operation into a slot: operand and compare are the bytes of operand and comparand, 0 without one.
// request is the id of its entry, 0: no answer is wanted.
func putAtomic(p *hot.Post, slot *hot.Slot, request, operand, compare uint64) {
	const headBytes = 32
	outbound.Put(slot, hot.AMAtomic, 0, headBytes, int(operand+compare), p.Header)
	body := bodyOf(slot)
	head := (*hot.AtomicHead)(pointer(body))
	head.Key, head.Request, head.Op, head.Datatype, head.Kind, head.Last, head.Count, head.At =
		p.Key, request, uint8(p.Op), uint8(p.Datatype), uint8(p.Atomic), 1, 1, 0
	if operand != 0 {
		move(body+headBytes, p.Buf, uintptr(operand))
	}
	if compare != 0 {
		move(body+headBytes+uintptr(operand), p.Compare, uintptr(compare))
	}
}

// atomicAwaited posts an operation that is answered, with what was there before if it fetches.
func atomicAwaited(p *hot.Post, ep *hot.EP, peer *hot.Peer, ring *mpsc.Ring, reads bool) uintptr {
	stripe := takeStripe(p, ep)
	if stripe == nil {
		return hot.PostAgain
	}
	code := uintptr(hot.PostAgain)
	if takePending(p, ep, stripe) {
		code = putAwaited(p, ep, peer, ring, reads)
	}
	giveStripe(ep, stripe)
	return code
}

// putAwaited sends an operation for whose answer an entry was found.
func putAwaited(p *hot.Post, ep *hot.EP, peer *hot.Peer, ring *mpsc.Ring, reads bool) uintptr {
	slot, pos, ok := outbound.Claim(ring, peer.Owner, peer.Exclusive != 0)
	if !ok {
		countPost(p, ep, stats.ThreadNoRing, 1)
		return hot.PostAgain
	}
	operand, compare := p.Len, uint64(0)
	if reads {
		operand = 0
	}
	if p.Atomic == hot.AtomicCompare {
		compare = p.Len
	}
	slots, flags := ring.Hot().Slots, fi.Atomic|fi.Read
	if p.Atomic == hot.AtomicPlain {
		flags = fi.Atomic | fi.Write
	}
	beginPending(p, ep, slots, flags)
	putAtomic(p, slot, p.Request, operand, compare)
	publish(p, peer, ring, slot, pos, hot.AMAtomic)
	sentAwaited(p, peer, slots)
	return hot.PostDone
}

// integerSize returns the size of the integer, 4 or 8 bytes, that an operation of a kind is for; 0 for all operations
// that the data plane does not perform.
func integerSize(kind uint32, d fi.Datatype, op fi.Op) uint64 {
	const arithmetic = 1<<(fi.OpWrite+1) - 1 // from FI_MIN on
	const swaps = 1<<(fi.OpMSwap+1) - 1 - arithmetic
	var ops uint32
	switch kind {
	case hot.AtomicPlain:
		ops = arithmetic &^ (1 << fi.OpRead)
	case hot.AtomicFetch:
		ops = arithmetic
	case hot.AtomicCompare:
		ops = swaps
	}
	if op < 0 || op > fi.OpMSwap || ops>>uint(op)&1 == 0 {
		return 0
	}
	switch d {
	case fi.Int32, fi.Uint32:
		return 4
	case fi.Int64, fi.Uint64:
		return 8
	}
	return 0
}
