package dataplane

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/copies"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/mem"
)

// Receiver is the matching state of a receive context. Its fields belong to the holder of the progress lease, except
// where they say otherwise. It must not be copied or moved once [hot.Rx.Receiver] names it.
type Receiver struct {
	Tagged   *match.Engine // of tagged messages; immutable
	Untagged *match.Engine // of the others; immutable
	Pool     *mem.Pool     // payload of unexpected messages; immutable

	Kept
	Closed    bool    // the eager window is closed: senders use rendezvous for everything
	Ended     bool    // no message comes any more: receives find unexpected messages only
	Directed  [2]bool // the source of an untagged and a tagged receive counts; immutable
	Endpoints int     // that deliver into the context
	Addresses Addresses
	elements  elements
	copies    [copySizes]hot.Copies // of payload out of peers' bounce buffers, by its length

	// MinMulti is FI_OPT_MIN_MULTI_RECV in bytes. Written by fi_setopt, read by the lease holder and by
	// threads that post; relaxed.
	MinMulti atomic.Uint64
	// Urgent counts the entries on the post ring that complete without an arrival: searches and cancels. Added to
	// by threads that post, subtracted from by the lease holder; sequentially consistent.
	Urgent atomic.Int32
}

// Kept is what unexpected messages take, and the bounds above which the eager window closes.
type Kept struct {
	UnexpectedBytes int // of payload
	UnexpectedMax   int // immutable
	Memory          int // of nodes, payload and RTS (KeptMemory), in bytes
	MemoryMax       int // immutable

	// BytesOver and MemoryOver say which bounds were exceeded since the eager window closed: it opens again when
	// half of these is free. Written by the lease holder.
	BytesOver, MemoryOver bool
}

// within reports whether what is used of a bound lets the eager window open, half of it if the bound was exceeded.
func within(used, most int, over bool) bool {
	if over {
		most /= 2
	}
	return used <= most
}

// Addresses maps an fi_addr_t to the identity of the peer that it names. IDs is the address of Count identities by
// fi_addr_t, 0: not known yet. They are valid while *Generation, which changes with the address vector, is Seen.
type Addresses struct {
	IDs        uintptr
	Count      uint64
	Generation *atomic.Uint64 // of the address vector, nil: there is none
	Seen       uint64
}

// Set makes ids, which the caller keeps alive, the identities by address.
func (a *Addresses) Set(ids []uint32) {
	a.IDs, a.Count = uintptr(unsafe.Pointer(unsafe.SliceData(ids))), uint64(len(ids))
}

// ReceiverOf returns the receiver of a receive context, nil if it has none.
func ReceiverOf(rx *hot.Rx) *Receiver { return (*Receiver)(pointer(rx.Receiver)) }

// Address is what hot.Rx.Receiver holds of r, which the caller keeps alive.
func (r *Receiver) Address() uintptr { return uintptr(unsafe.Pointer(r)) }

// Engine returns the matching of tagged or untagged messages.
func (r *Receiver) Engine(tagged bool) *match.Engine {
	if tagged {
		return r.Tagged
	}
	return r.Untagged
}

// Directs reports whether the source of a receive with flags counts.
func (r *Receiver) Directs(flags uint64) bool { return r.Directed[flags>>63] } // hot.RecvTagged

// identity returns what matching takes as the source of a receive with an fi_addr_t and flags; ok is false where
// package provider has to find it.
func (r *Receiver) identity(addr, flags uint64) (id uint32, ok bool) {
	if fi.Addr(addr) == fi.AddrUnspec || !r.Directs(flags) {
		return match.AnySource, true
	}
	a := &r.Addresses
	if flags&fi.AuthKey != 0 || a.Generation == nil || a.Generation.Load() != a.Seen || addr >= a.Count {
		return 0, false
	}
	id = *(*uint32)(pointer(a.IDs + uintptr(addr)*4))
	return id, id != 0
}

// pointer turns an address into a pointer. The detour through memory shows vet that this is no arithmetic on a Go
// pointer.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// endpoint views the endpoint at an address.
func endpoint(addr uintptr) *hot.EP { return (*hot.EP)(pointer(addr)) }

// context is the receive context into which an endpoint delivers now. Acquire ↔ enabling and closing.
func context(ep *hot.EP) *hot.Rx { return (*hot.Rx)(pointer(atomic.LoadUintptr(&ep.Rx))) }

// moveWords is how many words are copied one by one.
const moveWords = 8

// move copies n bytes between addresses, one of which is memory that another processor reads or has written.
// They do not overlap.
func move(to, from, n uintptr) {
	if n&7 == 0 && n <= moveWords*8 { // short ones without a call
		for ; n != 0; n -= 8 {
			*(*uint64)(pointer(to)) = *(*uint64)(pointer(from))
			to += 8
			from += 8
		}
		return
	}
	moveLong(to, from, n)
}

// copySizes is how many lengths of payload are distinguished in choosing how to copy it: those below copies.OutLeast,
// below twice that, and so on.
const copySizes = 4

// takePayload is move of payload out of memory of the peer's. The caller holds the progress lease.
func takePayload(r *Receiver, to, from, n uintptr) {
	if n < mem.StreamMin {
		move(to, from, n)
		return
	}
	size := min(bits.Len64(uint64(n/copies.OutLeast)), copySizes-1)
	copies.Out.Copy(&r.copies[size], to, from, n)
}

// moveLong is move of any length: by vectors what is long, all of which comes out of bounce buffers or memory where
// unexpected messages are kept. Apart from it, move is short enough to be inlined.
//
//go:noinline
func moveLong(to, from, n uintptr) {
	if mem.HasWays && n >= mem.StreamMin {
		mem.CopyBy(to, from, n, mem.Vectors)
		return
	}
	mem.Stream(unsafe.Slice((*byte)(pointer(to)), n), unsafe.Slice((*byte)(pointer(from)), n))
}

// bodyOf is the address of a slot's body.
func bodyOf(slot *hot.Slot) uintptr { return uintptr(unsafe.Pointer(&slot.Body)) }
