package stats

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/order"
)

// Endpoint is the block of one endpoint, as its process writes it.
type Endpoint struct {
	page  *page
	block unsafe.Pointer
	index int // in the page, -1: not shown
	peers int // lines in use; the lease holder's
}

// Shown reports whether the block is in the page: if not, its counters count in memory that is not read.
func (e *Endpoint) Shown() bool { return e.index >= 0 }

// word returns a word of an area that has no lines.
func (e *Endpoint) word(at uintptr, i int) *uint64 {
	return (*uint64)(unsafe.Add(e.block, at+uintptr(i)*wordBytes))
}

// Threads is the address of the lines of threads, for C.
func (e *Endpoint) Threads() uintptr { return uintptr(unsafe.Add(e.block, threadsAt)) }

// RxLine is the address of the lease holder's words, for C.
func (e *Endpoint) RxLine() uintptr { return uintptr(unsafe.Add(e.block, rxAt)) }

// Rx adds to a word of the progress lease's holder, which calls it.
func (e *Endpoint) Rx(i int, n uint64) {
	w := e.word(rxAt, i)
	order.Store64(w, *w+n)
}

// RxTotal is a word of the progress lease's holder, which calls it.
func (e *Endpoint) RxTotal(i int) uint64 { return *e.word(rxAt, i) }

// RxSet sets a gauge of the progress lease's holder, which calls it.
func (e *Endpoint) RxSet(i int, v uint64) { order.Store64(e.word(rxAt, i), v) }

// RxPeak raises a gauge and its peak, which is the word at peak.
func (e *Endpoint) RxPeak(i, peak int, v uint64) {
	order.Store64(e.word(rxAt, i), v)
	if p := e.word(rxAt, peak); v > *p {
		order.Store64(p, v)
	}
}

// Shared adds to a shared word. Any thread may call it.
func (e *Endpoint) Shared(i int, n uint64) { atomic.AddUint64(e.word(sharedAt, i), n) }

// Line is a stripe's line of counters. It belongs to the holder of the stripe's
// lease, but for the shared last one.
type Line struct {
	words  *[LineWords]uint64
	shared bool
}

// Stripe returns the line of a stripe.
func (e *Endpoint) Stripe(n int) Line {
	n, shared := min(n, Lines-1), n >= Lines-1
	at := unsafe.Add(e.block, stripesAt+uintptr(n)*LineWords*wordBytes)
	return Line{(*[LineWords]uint64)(at), shared}
}

// Add adds to a word of the line.
func (l *Line) Add(i int, n uint64) {
	w := &l.words[i]
	if l.shared {
		atomic.AddUint64(w, n)
		return
	}
	order.Store64(w, *w+n)
}

// PeerLine is the line of one peer. It belongs to the progress lease's holder.
// The nil line counts nothing.
type PeerLine struct{ at unsafe.Pointer }

// Peer returns a line for the peer at a socket address, nil when there are none
// left. The caller holds the progress lease.
func (e *Endpoint) Peer(sockaddr []byte) *PeerLine {
	if e.peers >= MaxPeers || len(sockaddr) > maxAddr {
		return nil
	}
	at := unsafe.Add(e.block, peersAt+uintptr(e.peers)*peerBytes)
	e.peers++
	h := (*peerHead)(at)
	h.Name = uint32(copy(h.Addr[:], sockaddr))
	order.Store32(&h.State, peerDown)
	return &PeerLine{at}
}

// Set sets a gauge of the peer.
func (p *PeerLine) Set(i int, v uint64) {
	if p != nil {
		order.Store64((*uint64)(unsafe.Add(p.at, peerWordsAt+i*wordBytes)), v)
	}
}

// Up reports whether the peer is connected. Each time that it no longer is
// counts as lost.
func (p *PeerLine) Up(up bool) {
	if p == nil {
		return
	}
	h := (*peerHead)(p.at)
	switch {
	case up:
		order.Store32(&h.State, peerUp)
	case h.State == peerUp:
		order.Store32(&h.State, peerDown)
		w := (*uint64)(unsafe.Add(p.at, peerWordsAt+PeerLost*wordBytes))
		order.Store64(w, *w+1)
	}
}
