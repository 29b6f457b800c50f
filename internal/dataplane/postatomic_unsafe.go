package dataplane

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/atomics"
)

// Atomic operations on elements that lie one behind another, as one message in the peer's ring. A plain one completes
// when it is there (atomicPlain), unless it is to complete when it is delivered: then it is answered, as a fetching or
// comparing one is (postAwaited, pending_unsafe.go).

const (
	// atomicFlags are the flags of an atomic operation that fetches nothing.
	atomicFlags = messageFlags&^fi.RemoteCQData | fi.DeliveryComplete
	// fetchFlags are those of one that is answered: with its result it has every completion level.
	fetchFlags = fi.Completion | fi.More | fi.InjectComplete | fi.TransmitComplete | fi.DeliveryComplete
)

// Atomic posts an atomic operation on an array. at is the address of a hot.Post, the result one of its codes.
func Atomic(at, _, _, _ uintptr) uintptr { return endPost(at, postAtomic(beginAccess(at))) }

func postAtomic(p *hot.Post) uintptr {
	p.Todo, p.Next = 0, 0
	if p.Kind&(unlikely|hot.PostRemote) != 0 && !singleAtomic(p) {
		return hot.PostGo
	}
	count := p.Len
	code := postArray(p)
	if code != hot.PostGo {
		return code
	}
	p.Len = count
	if t := matchOf(endpoint(p.EP)); t != nil {
		return accessMatched(p, t, true)
	}
	return code
}

// singleAtomic makes an operation on vectors of one element each one on that element, an array. false: it is none.
func singleAtomic(p *hot.Post) bool {
	if p.Kind&hot.PostDevice != 0 {
		return false
	}
	operand, compare, result := p.Buf, p.Compare, p.Result
	header, key, count := p.Header, p.Key, p.Len
	if p.Kind&hot.PostRemote != 0 {
		if p.Remotes != 1 || p.Remote == 0 {
			return false
		}
		e := (*[3]uint64)(pointer(p.Remote)) // struct fi_rma_ioc
		header, count, key = e[0], e[1], e[2]
		if p.Kind&hot.PostVector == 0 && count != p.Len {
			return false
		}
	}
	if p.Kind&hot.PostVector != 0 {
		var ok bool
		if operand, ok = element(p.Buf, p.Len, &count, p.Kind&hot.PostRemote == 0); !ok {
			return false
		}
		// A post has no more than what its kind takes.
		if p.Atomic == hot.AtomicCompare {
			if compare, ok = element(p.Compare, p.Compares, &count, false); !ok {
				return false
			}
		}
		if p.Atomic != hot.AtomicPlain {
			if result, ok = element(p.Result, p.Results, &count, false); !ok {
				return false
			}
		}
	}
	p.Buf, p.Len, p.Compare, p.Result = operand, count, compare, result
	p.Header, p.Key = header, key
	p.Kind &^= hot.PostVector | hot.PostRemote
	return true
}

// element is the address of the only element of a vector of n, 0 if it has none. false: it has more, or is not of
// *count elements of the datatype, a number that it sets if first is true.
func element(at uintptr, n uint64, count *uint64, first bool) (addr uintptr, ok bool) {
	if n != 1 || at == 0 {
		return 0, n == 0
	}
	e := (*[2]uint64)(pointer(at)) // struct fi_ioc
	if first {
		*count = e[1]
	}
	return uintptr(e[0]), e[1] == *count
}

// postArray posts one on Len elements. Len becomes the bytes of the target.
func postArray(p *hot.Post) uintptr {
	ep := endpoint(p.EP)
	op, datatype := fi.Op(p.Op), fi.Datatype(p.Datatype)
	plain, reads := p.Atomic == hot.AtomicPlain, op == fi.OpRead
	var flags uint64 = atomicFlags
	if !plain {
		flags = fetchFlags
	}
	if !atomics.Valid(atomics.Kind(p.Atomic), datatype, op) || !atomics.Direct(datatype) || p.Flags&^flags != 0 ||
		!reads && p.Buf == 0 || p.Atomic == hot.AtomicCompare && p.Compare == 0 || !plain && p.Result == 0 {
		return hot.PostGo
	}
	size := uint64(datatype.Size())
	if p.Len == 0 || p.Len > atomics.MaxBytes/size {
		return hot.PostGo
	}
	p.Len *= size
	operand, compare := operands(p)
	if all := operand + compare; all > atomics.MaxBytes || all > uint64(ep.EagerMax) ||
		(p.Kind&hot.PostInject != 0 || p.Flags&fi.Inject != 0) && all > uint64(ep.InjectMax) {
		return hot.PostGo
	}
	peer, slots := onesided(p, ep)
	if peer == nil || !keysOf(peer).Allowed(p.Key, p.Header, p.Len, rightsOf(p.Atomic, reads)) {
		return hot.PostGo
	}
	var code uintptr
	if plain && !awaitsDelivery(p, ep) {
		code = atomicPlain(p, ep, peer, slots)
	} else {
		code = postAwaited(p, ep, peer, slots, hot.AMAtomic)
	}
	if code == hot.PostDone {
		countPost(p, ep, stats.ThreadAtomic, 1)
		wakePeer(p, peer)
	}
	return code
}

// atomicPlain posts an operation without an answer, and completes it.
func atomicPlain(p *hot.Post, ep *hot.EP, peer *hot.Peer, slots uintptr) uintptr {
	var e place
	if !e.room(p, ep) {
		return hot.PostAgain
	}
	p.Request = 0
	if code := transmit(p, ep, peer, slots, hot.AMAtomic); code != hot.PostDone {
		return code
	}
	e.complete(p, ep.WriteCntr, fi.Write|fi.Atomic, p.Len)
	return hot.PostDone
}
