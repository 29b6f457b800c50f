package ibv

// #cgo noescape weft_vport_poll
// #cgo nocallback weft_vport_poll
// #cgo noescape weft_vport_poll_ends
// #cgo nocallback weft_vport_poll_ends
// #cgo noescape weft_vport_flush
// #cgo nocallback weft_vport_flush
// #include "vport.h"
import "C"

import (
	"fmt"
	"structs"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// Bits of [Peer].Blocked: C must not send.
const (
	PeerUnready = C.WEFT_PEER_UNREADY // the peer has not answered yet
	PeerFailed  = C.WEFT_PEER_FAILED
	PeerFenced  = C.WEFT_PEER_FENCED // something must end before
)

// Message headers, as C reads and writes them.
const (
	HeaderBytes = C.sizeof_struct_weft_message_header
	HeaderMagic = C.WEFT_MESSAGE_MAGIC
	MessageIDs  = C.WEFT_MESSAGE_IDS
	MessageMore = C.WEFT_MESSAGE_MORE // in a message's kind: another one follows in its packet
)

// Row is the number of messages in a row that are not corked.
const Row = C.WEFT_ROW

// Peer is a peer as C sees it (struct weft_vpeer, where the fields are explained).
type Peer struct {
	_       structs.HostLayout
	Path    hot.Path
	port    uintptr
	queue   uintptr
	Blocked atomic.Uint32
	Window  atomic.Uint32
	Index   atomic.Uint32
	QPNums  [2]uint32
	LastSeq uint32
	Heard   uint32
	Source  uint32
	_       [12]byte
	taken   atomic.Uint32
	ring    unsafe.Pointer // off the Go heap, as ringAt
	ringAt  *uint32
	_       [32]byte
}

const peerBytes = C.sizeof_struct_weft_vpeer

// vport is an interface as C drives it (struct weft_vport, where the fields are
// explained). It lies off the Go heap.
type vport struct {
	_           structs.HostLayout
	Hot         hot.Port
	Polling     atomic.Uint32
	Calls       atomic.Uint32
	Staged      atomic.Int64
	buffers     C.struct_weft_buffers
	cqs         uintptr
	done        uintptr
	count       uintptr
	next        uintptr
	ends        uintptr
	queues      uint32
	max         uint32
	free        uintptr
	freeCount   uint32
	bufferCount uint32
	peers       uintptr
	peerLimit   uint32
	_           uint32
	_           uintptr
	_           uint32
	at          uint32
	_           uint32
	_           uint32
	corked      atomic.Uint32
	_           uint32
	_           uint32
	_           [2]uint32
	rings       [Rings]atomic.Uintptr
	copy        [RingSlotBytes]byte
}

// The layouts agree, or this does not compile.
var (
	_ = [1]byte{}[unsafe.Sizeof(Peer{})-C.sizeof_struct_weft_vpeer]
	_ = [1]byte{}[unsafe.Offsetof(Peer{}.Blocked)-unsafe.Offsetof(C.struct_weft_vpeer{}.blocked)]
	_ = [1]byte{}[unsafe.Offsetof(Peer{}.Index)-unsafe.Offsetof(C.struct_weft_vpeer{}.index)]
	_ = [1]byte{}[unsafe.Offsetof(Peer{}.QPNums)-unsafe.Offsetof(C.struct_weft_vpeer{}.qp_nums)]
	_ = [1]byte{}[unsafe.Offsetof(Peer{}.Source)-unsafe.Offsetof(C.struct_weft_vpeer{}.source)]
	_ = [1]byte{}[unsafe.Offsetof(Peer{}.taken)-unsafe.Offsetof(C.struct_weft_vpeer{}.ring_taken)]
	_ = [1]byte{}[unsafe.Offsetof(Peer{}.ringAt)-unsafe.Offsetof(C.struct_weft_vpeer{}.ring_at)]
	_ = [1]byte{}[unsafe.Sizeof(vport{})-C.sizeof_struct_weft_vport]
	_ = [1]byte{}[unsafe.Offsetof(vport{}.Staged)-unsafe.Offsetof(C.struct_weft_vport{}.staged)]
	_ = [1]byte{}[unsafe.Offsetof(vport{}.cqs)-unsafe.Offsetof(C.struct_weft_vport{}.cqs)]
	_ = [1]byte{}[unsafe.Offsetof(vport{}.next)-unsafe.Offsetof(C.struct_weft_vport{}.next)]
	_ = [1]byte{}[unsafe.Offsetof(vport{}.ends)-unsafe.Offsetof(C.struct_weft_vport{}.ends)]
	_ = [1]byte{}[unsafe.Offsetof(vport{}.free)-unsafe.Offsetof(C.struct_weft_vport{}.free)]
	_ = [1]byte{}[unsafe.Offsetof(vport{}.peers)-unsafe.Offsetof(C.struct_weft_vport{}.peers)]
	_ = [1]byte{}[unsafe.Offsetof(vport{}.at)-unsafe.Offsetof(C.struct_weft_vport{}.at)]
	_ = [1]byte{}[unsafe.Offsetof(vport{}.corked)-unsafe.Offsetof(C.struct_weft_vport{}.corked)]
	_ = [1]byte{}[unsafe.Offsetof(vport{}.rings)-unsafe.Offsetof(C.struct_weft_vport{}.rings)]
	_ = [1]byte{}[unsafe.Offsetof(vport{}.copy)-unsafe.Offsetof(C.struct_weft_vport{}.copy)]
)

// VPortConfig says how a port is made.
type VPortConfig struct {
	SRQ         *SRQ
	Base        uint64 // address of receive buffer 0
	BufferBytes int    // of each; they follow one another
	Buffers     int
	LKey        uint32
	Queues      []*CQ     // the first is for arrivals
	Ends        []*SendCQ // of the others, off the Go heap
	Max         int       // completions of each that one poll takes
	Peers       int       // C knows those with numbers below it
}

// VPort is a port with the memory that it lies in.
type VPort struct {
	*vport
	memory []byte
	// peers are stored by the lease holder, and loaded by polls without the runtime; release and acquire.
	peers  []atomic.Uintptr
	counts []int32
	nexts  []int32
	done   []Done
	free   []uint32
}

// NewPort makes a port; all buffers go to the shared receive queue with the first
// poll. Errors: those of mmap.
func NewVPort(c VPortConfig) (*VPort, error) {
	n := len(c.Queues)
	var size, at int
	part := func(bytes int) int { // 64-byte aligned
		at = size
		size += (bytes + 63) &^ 63
		return at
	}
	port, cqs := part(int(unsafe.Sizeof(vport{}))), part(n*C.sizeof_struct_weft_cq)
	done, counts := part(n*c.Max*C.sizeof_struct_weft_done), part(8*n)
	free, peers, ends := part(4*c.Buffers), part(8*c.Peers), part(8*n)
	b, err := mem.Map(size, mem.NoReserve)
	if err != nil {
		return nil, fmt.Errorf("memory of a port: %w", err)
	}
	p := &VPort{
		vport:  (*vport)(unsafe.Pointer(&b[port])),
		memory: b,
		peers:  unsafe.Slice((*atomic.Uintptr)(unsafe.Pointer(&b[peers])), c.Peers),
		counts: unsafe.Slice((*int32)(unsafe.Pointer(&b[counts])), n),
		nexts:  unsafe.Slice((*int32)(unsafe.Pointer(&b[counts+4*n])), n),
		done:   unsafe.Slice((*Done)(unsafe.Pointer(&b[done])), n*c.Max),
		free:   unsafe.Slice((*uint32)(unsafe.Pointer(&b[free])), c.Buffers),
	}
	for k, q := range c.Queues {
		unsafe.Slice((*C.struct_weft_cq)(unsafe.Pointer(&b[cqs])), n)[k] = q.c
	}
	for k := range p.free {
		p.free[k] = uint32(k)
	}
	p.vport.buffers = C.struct_weft_buffers{srq: c.SRQ.p, base: C.uint64_t(c.Base), stride: C.uint32_t(c.BufferBytes),
		len: C.uint32_t(c.BufferBytes), lkey: C.uint32_t(c.LKey)}
	address := func(offset int) uintptr { return uintptr(unsafe.Pointer(&b[offset])) }
	p.cqs, p.vport.done, p.vport.free, p.vport.peers = address(cqs), address(done), address(free), address(peers)
	p.count, p.next = address(counts), address(counts+4*n)
	p.ends = address(ends)
	for k, end := range c.Ends {
		unsafe.Slice((*uintptr)(unsafe.Pointer(&b[ends])), n)[k+1] = uintptr(unsafe.Pointer(end))
		end.calls = uintptr(unsafe.Pointer(&p.Calls))
	}
	p.queues, p.max, p.peerLimit = uint32(n), uint32(c.Max), uint32(c.Peers)
	p.freeCount, p.bufferCount = uint32(c.Buffers), uint32(c.Buffers)
	C.weft_vport_init((*C.struct_weft_vport)(unsafe.Pointer(p.vport)))
	return p, nil
}

// NewPeer makes the peer whose messages go by q, in the memory of q. C may not send
// to it before PeerUnready is taken from Blocked.
func (p *VPort) NewPeer(q *SendQueue) *Peer {
	v := (*Peer)(unsafe.Add(unsafe.Pointer(q), queueBytes))
	*(*[peerBytes]byte)(unsafe.Pointer(v)) = [peerBytes]byte{}
	C.weft_vpeer_init((*C.struct_weft_vpeer)(unsafe.Pointer(v)), (*C.struct_weft_vport)(unsafe.Pointer(p.vport)))
	v.queue = uintptr(unsafe.Pointer(q))
	return v
}

// Delivered is the number of messages that C has delivered.
func (p *VPort) Delivered() uint64 { return atomic.LoadUint64(&p.Hot.Taken) }

// Close gives the memory back. No thread uses the port any more.
func (p *VPort) Close() error { return mem.Unmap(p.memory) }

// Poll gives buffers back and stages what the queues have. Nothing is staged, and
// the caller has Polling. False: a queue is broken.
func (p *VPort) Poll() bool {
	return bool(C.weft_vport_poll((*C.struct_weft_vport)(unsafe.Pointer(p.vport)), true))
}

// PollEnds stages what the queues of what was posted have, while arrivals are staged. [VPort.Ended] has taken what
// these queues had, and the caller has Polling and the lease. False: a queue is broken.
func (p *VPort) PollEnds() bool {
	return bool(C.weft_vport_poll_ends((*C.struct_weft_vport)(unsafe.Pointer(p.vport))))
}

// Arrival is the first staged arrival, nil if there is none. The caller holds the
// lease, also of what follows.
func (p *VPort) Arrival() *Done {
	if p.nexts[0] >= p.counts[0] {
		return nil
	}
	return &p.done[p.nexts[0]]
}

// Pass passes by the first staged arrival. It is valid until Staged says that
// nothing is staged. It returns how many of its bytes C has dealt with.
func (p *VPort) Pass() (at int) {
	at, p.at = int(p.at), 0
	p.nexts[0]++
	return at
}

// PutBack undoes Pass: the arrival is the first staged one again, of which the first bytes up to at are dealt with.
func (p *VPort) PutBack(at int) {
	p.at = uint32(at)
	p.nexts[0]--
}

// Flush sends the corked messages. The caller holds the lease, or no thread
// else posts or polls.
func (p *VPort) Flush() {
	if p.corked.Load() != 0 {
		C.weft_vport_flush((*C.struct_weft_vport)(unsafe.Pointer(p.vport)))
	}
}

// Empty reports whether the last poll found no arrival.
func (p *VPort) Empty() bool { return p.counts[0] <= 0 }

// Ended takes the staged completions of queue k, 1 and up; valid as an arrival.
func (p *VPort) Ended(k int) []Done {
	from, to := p.nexts[k], p.counts[k]
	if from >= to {
		return nil
	}
	p.nexts[k] = to
	at := p.done[k*int(p.max):]
	return at[from:to:to]
}

// Queues is the number of queues.
func (p *VPort) Queues() int { return len(p.counts) }

// GiveBack has the next poll give a receive buffer back.
func (p *VPort) GiveBack(buffer uint32) {
	p.free[p.freeCount] = buffer
	p.freeCount++
}

// SetPeer enters a peer, nil: takes it out. Those that C has no room for are Go's.
func (p *VPort) SetPeer(index uint32, peer *Peer) {
	if int(index) >= len(p.peers) {
		return
	}
	p.peers[index].Store(uintptr(unsafe.Pointer(peer)))
}
