package transport

import (
	"fmt"
	"structs"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// Transport is an interface as C and Progress drive it. It lies off the Go heap, with all that it leads to.
type Transport struct {
	_   structs.HostLayout
	Hot hot.Transport // what C drives; first, as C leads here by its address
	// Calls has Call*: set by any thread, cleared by Progress; sequentially consistent.
	Calls atomic.Uint32
	// polling is 1 while a thread polls: the lease holder, or one that asks whether there is something. Taken by
	// compare-and-swap (acquire), given back by store (release).
	polling uint32
	// staged counts arrivals and completions that were polled and are not dealt with. While it is 0 the thread that
	// polls stores it, with polling, and else the lease holder: release, read with acquire.
	staged uint64
	// corked is the index plus one of the peer of which some messages are corked; exchanged by threads that post and
	// the lease holder.
	corked atomic.Uint32
	// polls counts calls of Next; stored by the lease holder (release), read by threads that post.
	polls uint32

	buffers ibv.Buffers // immutable, as what follows to ends
	limit   int         // completions of each queue that one poll takes
	// cqs are the queues, the first for arrivals, with limit places of done each; of queue q, done[q*limit+nexts[q]] to
	// [counts[q]] are staged; count -1: broken. By the thread that polls, and the lease holder while staged is not 0.
	cqs    []ibv.Queue
	done   []ibv.Done
	counts []int32
	nexts  []int32
	ends   []*SendCQ // what threads that post say of each queue, nil for arrivals
	// peers by index. Stored by one thread at a time, when a peer comes or goes, loaded by any; sequentially
	// consistent.
	peers []atomic.Uintptr
	// free are receive buffers to be given back, of which there are freeCount: the thread that polls, and the lease
	// holder while staged is not 0.
	free      []uint32
	freeCount int
	turn      int // polls since one of all queues; by the thread that polls

	lease lease // of the progress lease

	// rings are peers that have a ring, 0 between them: stored by the thread that makes a peer (release), one at a
	// time, and by the lease holder that takes it away; read by the lease holder (acquire).
	rings  [Rings]atomic.Uintptr
	memory []byte // immutable
}

// lease is what belongs to the progress lease.
type lease struct {
	found    found
	at       int  // bytes of the first staged arrival that are dealt with
	ringsHad bool // the last message taken came by a ring
	ringsDue bool // the queues had something at their last poll, so the rings are next
	passed   uint8
	ringTurn uint32              // ring at which the next poll begins
	copy     [RingSlotBytes]byte // of the message in a ring that was found
}

// found is the message that was found last.
type found struct {
	peer  uintptr // its sender
	seq   uint32
	index uint32
	bytes int    // to the message behind it, 0: it is its arrival's last
	turn  uint32 // ring at which to begin after it
	ring  bool   // it lies in its sender's ring
}

// Config says how a transport is made.
type Config struct {
	SRQ         *ibv.SRQ
	Base        uint64 // address of receive buffer 0
	BufferBytes int    // of each; they follow one another
	Buffers     int
	LKey        uint32
	Queues      []*ibv.CQ // the first is for arrivals
	Ends        []*SendCQ // of the others, off the Go heap
	Max         int       // completions of each that one poll takes
	Peers       int       // their numbers are below it
	// Direct has C call Go without the runtime from now on, in the whole process, where package direct has a
	// trampoline. The caller has tried that.
	Direct bool
}

// New makes a transport; all buffers go to the shared receive queue with the first
// poll. Errors: those of mmap.
func New(c Config) (*Transport, error) {
	n, size := len(c.Queues), 0
	part := func(bytes int) int { // 64-byte aligned
		at := size
		size += (bytes + 63) &^ 63
		return at
	}
	head, cqs := part(int(unsafe.Sizeof(Transport{}))), part(n*int(unsafe.Sizeof(ibv.Queue{})))
	done, counts, nexts := part(n*c.Max*int(unsafe.Sizeof(ibv.Done{}))), part(4*n), part(4*n)
	free, peers, ends := part(4*c.Buffers), part(8*c.Peers), part(8*n)
	b, err := mem.Map(size, mem.NoReserve)
	if err != nil {
		return nil, fmt.Errorf("memory of a transport: %w", err)
	}
	p := (*Transport)(unsafe.Pointer(&b[head]))
	p.memory, p.limit = b, c.Max
	p.buffers = ibv.NewBuffers(c.SRQ, c.Base, c.BufferBytes, c.LKey)
	p.cqs = slice[ibv.Queue](b[cqs:], n)
	p.done = slice[ibv.Done](b[done:], n*c.Max)
	p.counts, p.nexts = slice[int32](b[counts:], n), slice[int32](b[nexts:], n)
	p.ends = slice[*SendCQ](b[ends:], n)
	p.peers = slice[atomic.Uintptr](b[peers:], c.Peers)
	p.free, p.freeCount = slice[uint32](b[free:], c.Buffers), c.Buffers
	for k, q := range c.Queues {
		p.cqs[k] = q.Polled()
	}
	for k, end := range c.Ends {
		p.ends[k+1] = end
		end.calls = uintptr(unsafe.Pointer(&p.Calls))
	}
	for k := range p.free {
		p.free[k] = uint32(k)
	}
	declare()
	if c.Direct {
		Route(true)
	}
	ibv.DriveTransport(&p.Hot)
	return p, nil
}

// slice is n elements at the beginning of memory.
func slice[T any](b []byte, n int) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// Close gives the memory back. No thread uses the transport any more.
func (p *Transport) Close() error { return mem.Unmap(p.memory) }

// SetPeer enters a peer, nil: takes it out. One thread at a time does.
func (p *Transport) SetPeer(index uint32, peer *Peer) {
	p.peers[index].Store(uintptr(unsafe.Pointer(peer)))
}

// peer is the peer with a number, nil: there is none.
func (p *Transport) peer(index uint32) *Peer {
	if uint64(index) >= uint64(len(p.peers)) {
		return nil
	}
	return peerAt(p.peers[index].Load())
}

// keep remembers whose message was found.
func (f *found) keep(p *Peer) { f.peer = uintptr(unsafe.Pointer(p)) }

// arrived is the memory of a receive buffer of which n bytes were written.
func (p *Transport) arrived(buffer uint64, n uint32) []byte {
	return unsafe.Slice((*byte)(at(p.buffers.Buffer(buffer))), min(n, p.buffers.Bytes()))
}

// describe fills in a message that b starts with.
func describe(m *hot.TransportMessage, h *Header, b []byte) {
	head := uintptr(unsafe.Pointer(&b[0])) + HeaderBytes
	m.Header, m.Head, m.Payload = h.Value, head, head+uintptr(h.Head)
	m.Length, m.Source, m.HeadBytes, m.ID = h.Length, h.Index&IndexMask, uint16(h.Head), h.ID
}

// Content are the head and the payload of a message, valid as long as what it lies in.
func Content(m *hot.TransportMessage) (head, payload []byte) {
	if m.HeadBytes != 0 {
		head = unsafe.Slice((*byte)(at(m.Head)), int(m.HeadBytes))
	}
	if m.Length != 0 {
		payload = unsafe.Slice((*byte)(at(m.Payload)), int(m.Length))
	}
	return head, payload
}

func transportAt(address uintptr) *Transport          { return (*Transport)(at(address)) }
func messageAt(address uintptr) *hot.TransportMessage { return (*hot.TransportMessage)(at(address)) }
func callsAt(address uintptr) *atomic.Uint32          { return (*atomic.Uint32)(at(address)) }
