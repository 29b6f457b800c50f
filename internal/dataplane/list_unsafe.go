package dataplane

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/outbound"
)

// Run is some elements of a list that lie at regular distances.
type Run struct {
	First, Count  uint32 // elements
	Local, Remote uint64 // addresses of the first
	Len           uint64 // bytes of each
	Here, There   uint64 // from one element to the next, bytes
	Key           uint64 // of the region
	Direct        bool   // memory of processes on both sides
	Mapped        bool   // memory of a device, which may be reached by a mapping
}

// Element is one element of a list.
type Element struct {
	Local, Remote, Len, Key uint64
	Direct, Mapped          bool
}

// At is the element with a number, which is one of the run's.
func (r *Run) At(n uint32) Element {
	i := uint64(n - r.First)
	return Element{r.Local + i*r.Here, r.Remote + i*r.There, r.Len, r.Key, r.Direct, r.Mapped}
}

// List is what is to be known of a prepared list to post it. Immutable once the list is prepared, but for Tag. It is on
// the Go heap, where the list keeps it.
type List struct {
	Runs  []Run
	Count uint32 // elements
	Flat  bool   // each run has one element
	// Direct: all elements are memory of processes, which the posting thread may copy; Single: there is one element,
	// and the list is a read or a write like others.
	Direct, Single bool
	Read, Write    bool    // all regions may be read, or written
	Dest           uint64  // fi_addr_t of the owner
	Bytes          uint64  // of all elements
	Batches        uintptr // of the endpoint's Batches; 0: the runtime posts the list
	// Tag is that of notifications. Stored by any thread, loaded by posts; sequentially consistent.
	Tag atomic.Uint64
}

// Address is that of the list, for hot.Post.
func (l *List) Address() uintptr { return uintptr(unsafe.Pointer(l)) }

// At is the element with a number, which the list has. run is where the search for it begins, and becomes its run.
func (l *List) At(n uint32, run *int) Element {
	if l.Flat {
		return l.Runs[n].At(n)
	}
	if r := &l.Runs[*run]; n-r.First < r.Count {
		return r.At(n)
	}
	if *run+1 < len(l.Runs) {
		if r := &l.Runs[*run+1]; n-r.First < r.Count {
			*run++
			return r.At(n)
		}
	}
	low, high := 0, len(l.Runs) // the last that begins at n or before
	for low+1 < high {
		if mid := int(uint(low+high) >> 1); l.Runs[mid].First <= n {
			low = mid
		} else {
			high = mid
		}
	}
	*run = low
	return l.Runs[low].At(n)
}

// picks goes through the elements of a post.
type picks struct {
	at    uintptr // of the next number, or word of bits; 0: all elements
	left  uint64  // numbers, or elements that bits are left for
	next  uint32  // of all, or the number of the first bit of word
	bits  bool
	word  uint64 // bits that are left of one
	run   int    // of the element before
	ready bool   // number is the next one
	// number is that of the next element.
	number uint32
}

// begin begins with the first element.
func (s *picks) begin(p *hot.Post, l *List) {
	*s = picks{at: p.Picks, left: p.Count, bits: p.Op&hot.ListBits != 0}
	if s.at == 0 {
		s.left, s.bits = uint64(l.Count), false
	}
}

// peek is the number of the next element; false: there is none. One that the list does not have may be among them.
func (s *picks) peek() (n uint32, ok bool) {
	if s.ready {
		return s.number, true
	}
	switch {
	case s.bits:
		for s.word == 0 {
			if s.left == 0 {
				return 0, false
			}
			s.word = *(*uint64)(pointer(s.at))
			s.next += 64
			s.at += 8
			s.left -= min(s.left, 64)
		}
		s.number = s.next - 64 + uint32(bits.TrailingZeros64(s.word))
		s.word &= s.word - 1
	case s.left == 0:
		return 0, false
	case s.at == 0:
		s.number = s.next
		s.next++
		s.left--
	default:
		s.number = *(*uint32)(pointer(s.at))
		s.at += 4
		s.left--
	}
	s.ready = true
	return s.number, true
}

// drop leaves the element that peek has returned behind.
func (s *picks) drop() { s.ready = false }

// sum goes through the elements, and returns how many there are and their bytes; false: there are none, or some that
// the list does not have. most is how many there may be.
func (s *picks) sum(l *List, most uint64) (elements, bytes uint64, ok bool) {
	if s.at == 0 {
		return uint64(l.Count), l.Bytes, true
	}
	for n, more := s.peek(); more; n, more = s.peek() {
		if n >= l.Count || elements == most {
			return 0, 0, false
		}
		el := l.At(n, &s.run)
		elements++
		bytes += el.Len
		s.drop()
	}
	return elements, bytes, elements != 0
}

// Batches are what posts of an endpoint's lists have of pieces that are copied with one system call.
type Batches [4]pieceBatch

// Address is theirs, for List. The caller keeps them as long as the list.
func (b *Batches) Address() uintptr { return uintptr(unsafe.Pointer(b)) }

// pieceBatch is that of one post at a time.
type pieceBatch struct {
	taken    uint32 // 1: by a post. CAS acquire, store release; by posting threads
	regions  outbound.Regions
	pieces   hw.Pieces
	first    int    // of the pieces that are not copied
	end      int    // of those that are being copied
	picks    picks  // elements that are not among the pieces
	elements uint64 // of the post
}

// take takes a batch for a thread, nil: all are taken.
func (b *Batches) take(thread uint32) *pieceBatch {
	for n := range uint32(len(b)) {
		one := &b[(thread+n)%uint32(len(b))]
		if atomic.LoadUint32(&one.taken) == 0 && atomic.CompareAndSwapUint32(&one.taken, 0, 1) {
			return one
		}
	}
	return nil
}

// give gives it back, with what it has claimed.
func (b *pieceBatch) give() {
	b.regions.Release()
	atomic.StoreUint32(&b.taken, 0)
}

// fill claims the next pieces of a list, and has the shim copy them (Post.Copy). more is false when there are none; ok
// is false where the runtime is to do the post.
func (b *pieceBatch) fill(p *hot.Post, ep *hot.EP, peer *hot.Peer, l *List) (more, ok bool) {
	if b.first == b.pieces.N {
		b.gather(l)
		if b.pieces.N == 0 {
			return false, true
		}
	}
	rights := uint32(hot.KeyWrite)
	if p.Kind&hot.PostRead != 0 {
		rights = hot.KeyRead
	}
	claimant := outbound.Claimant{PID: ep.PID, Start: ep.StartTime, First: p.Thread}
	end, bytes, why := b.regions.Locate(keysOf(peer), &claimant, &b.pieces, b.first, rights)
	if why != outbound.None && (why != outbound.Later || end == b.first) {
		return false, false
	}
	b.end = end
	c := &p.Copy
	setCopy(c, peer, p.Kind)
	c.Here = uintptr(unsafe.Pointer(&b.pieces.Local[b.first]))
	c.There = uintptr(unsafe.Pointer(&b.pieces.Remote[b.first]))
	c.Pieces, c.Len = uint64(end-b.first), bytes
	return true, true
}

// gather makes pieces of the next elements.
func (b *pieceBatch) gather(l *List) {
	b.first, b.pieces.N = 0, 0
	for n, more := b.picks.peek(); more; n, more = b.picks.peek() {
		el := l.At(n, &b.picks.run)
		if !b.pieces.Add(el.Local, el.Remote, el.Len, el.Key) {
			return
		}
		b.picks.drop()
	}
}
