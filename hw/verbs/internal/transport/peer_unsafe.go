package transport

import (
	"structs"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// Bits of [Peer].Blocked: C must not send.
const (
	PeerUnready = 1 << iota // the peer has not answered yet
	PeerFailed
	PeerFenced // something must end before
)

// Peer is a peer. The fields of the lease are read and written by the progress lease's holder only. It lies off the Go
// heap, behind its queue.
type Peer struct {
	_         structs.HostLayout
	Path      hot.Path      // what C sends with; first, as C leads here by its address
	transport *Transport    // immutable
	queue     *SendQueue    // of messages; immutable
	Blocked   atomic.Uint32 // Peer*; changed by any thread, sequentially consistent
	Window    atomic.Uint32 // 1: the peer does not want eager payloads. By the service and the lease holder
	Index     atomic.Uint32 // what our messages carry. Stored by the service before queue runs
	QPNums    [2]uint32     // lease: of the queue pairs from which messages may come: current, former
	LastSeq   uint32        // lease: position after the last message received
	Heard     uint32        // lease: something came since the last check
	Source    uint32        // lease: a message came
	// Messages that might be corked since the transport's poll with this number. By the threads that post, one
	// at a time (hot.Hold*).
	row, poll uint32
	// corked is how many bytes of those are corked, each a multiple of 8; as row. Too many after others have sent them.
	corked uint32
	// taken is how many messages were taken from the ring that the peer writes into (eager.go). Stored by the lease
	// holder (release), read by the thread that sends (acquire).
	taken uint32
	ring  *byte // lease: nil: it was given none
	_     [40]byte
}

const peerBytes = int(unsafe.Sizeof(Peer{}))

// NewPeer makes the peer whose messages go by q, in the memory of q. C may not send
// to it before PeerUnready is taken from Blocked.
func (p *Transport) NewPeer(q *SendQueue) *Peer {
	v := (*Peer)(unsafe.Add(unsafe.Pointer(q), queueBytes))
	*(*[peerBytes]byte)(unsafe.Pointer(v)) = [peerBytes]byte{}
	ibv.DrivePath(&v.Path)
	v.Path.Max = MaxShort
	v.transport, v.queue = p, q
	v.Blocked.Store(PeerUnready)
	return v
}

// GiveRing gives a peer ring number k, RingBytes of memory off the Go heap. One thread at a time gives and takes rings;
// no messages come from the peer yet.
func (p *Transport) GiveRing(k int, peer *Peer, memory []byte) {
	clear(memory)
	peer.ring = &memory[0]
	p.rings[k].Store(uintptr(unsafe.Pointer(peer)))
	atomic.AddUint32(&p.Hot.Silent, 1)
}

// TakeRing takes ring k from its peer. The caller holds the lease, and is the one thread that gives and takes rings.
func (p *Transport) TakeRing(k int, peer *Peer) {
	p.rings[k].Store(0)
	peer.ring = nil
	atomic.AddUint32(&p.Hot.Silent, ^uint32(0))
}

// ringSlot is the slot that the next message comes to.
func (p *Peer) ringSlot() *[RingSlotBytes]byte {
	return (*[RingSlotBytes]byte)(unsafe.Add(unsafe.Pointer(p.ring), uintptr(p.taken%RingSlots)*RingSlotBytes))
}

// written reports whether something has come to that slot.
func (p *Peer) written() bool {
	return p.ring != nil && atomic.LoadUint32((*uint32)(unsafe.Pointer(p.ringSlot()))) != 0
}

// clearWord empties that slot for the device, which has the peer write it as a whole.
func (p *Peer) clearWord() { order.Store32((*uint32)(unsafe.Pointer(p.ringSlot())), 0) }

// loadWord loads 8 bytes of a slot in which a device writes, after its first word.
func loadWord(slot *[RingSlotBytes]byte, at uint32) uint64 {
	_ = slot[at+7]
	return atomic.LoadUint64((*uint64)(unsafe.Add(unsafe.Pointer(slot), uintptr(at))))
}

// Put fills a place with a message, whose bytes are copied; head and payload have MaxShort bytes at most. It is not
// ready yet. It returns the message's length. The caller has claimed the place.
func (p *Peer) Put(pos uint64, id uint8, header uint64, head, payload []byte) (n uint32) {
	q := p.queue
	b := q.slot(pos)
	h := Header{id, uint8(len(head)), p.MessageIndex(), uint32(pos + 1), uint32(len(payload)), header}
	h.Put(b[:])
	at := HeaderBytes
	if len(head) != 0 {
		at += copy(b[at:], head)
	}
	if len(payload) == 8 { // as a plain store
		*(*[8]byte)(b[at:]) = [8]byte(payload)
		at += 8
	} else if len(payload) != 0 {
		at += copy(b[at:], payload)
	}
	q.send(pos, &b[0], uint32(at))
	q.place(pos).Plain = 1
	return uint32(at)
}

func peerAt(address uintptr) *Peer { return (*Peer)(at(address)) }
