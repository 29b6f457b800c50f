package provider

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/ordering"
)

// The tables of an endpoint and of a receive context are read by threads that
// poll a queue. Such a thread may have found the endpoint before it was
// closed and read on at any later time. So the memory of these tables is never
// unmapped, but used again for tables of the same kind, and a late reader can
// do no harm:
//
//   - What it reads are valid addresses. hot.EP.Inbound, hot.EP.RxRings and hot.Rx.Posts
//     are never cleared; rings of another size are another kind; and the memory of
//     an inbound ring outlives its interface too.
//   - What it finds is nothing, or work that is not there. Before it acts it
//     takes the lease of the receive context that it has read, and then reads
//     whether the endpoint still delivers there (hot.EP.Rx). Closing an endpoint
//     puts noRx there under that lease.
//   - The lease is not cleared between two users, because a late reader may
//     hold it; the next user waits for it then. Contexts that need no lease are
//     a kind of their own: an application that asks for those does not close
//     endpoints while it reads their queues.
//
// There are as many blocks as objects were open at a time.

// blockKind is what does not change while a block is used again.
type blockKind struct {
	rx        bool // a hot.Rx and its post ring, else a hot.EP and its stripes
	bytes     int
	ringLog2  uint32 // of the ring that is polled
	exclusive bool   // the context's lease is not used
}

var blocks struct {
	sync.Mutex // taken by objects that are opened and closed
	free       map[blockKind][][]byte
}

// hotMemory is an endpoint's memory that C and the data plane use, too. Its place is fixed from OpenEndpoint on.
type hotMemory struct {
	hot         *hot.EP
	block       []byte // memory of hot and the stripes
	kind        blockKind
	fast        ordering.Gate         // of posts by the data plane
	growMu      sync.Mutex            // not on the way of a send to a known peer
	peers       mem.Growing[hot.Peer] // grown under growMu
	sourceLines mem.Array[hot.Source] // by hw.Source
	// backLines lead back to senders that are contexts of scalable endpoints, by hw.Source; of length 0 before
	// the first. Made and filled by the lease holder under the link's mutex, under which Slots is zeroed; read
	// by the lease holder.
	backLines mem.Array[hot.Peer]
	// sourcesSeen is how many of sourceLines were ever used. Written by the
	// lease holder, read by the thread that removes addresses; sequentially consistent.
	sourcesSeen atomic.Uint32
}

// takeBlock returns a block of a kind: a new one is zero, a used one as it was
// given.
func takeBlock(k blockKind) ([]byte, error) {
	blocks.Lock()
	defer blocks.Unlock()
	if free := blocks.free[k]; len(free) != 0 {
		b := free[len(free)-1]
		blocks.free[k] = free[:len(free)-1]
		return b, nil
	}
	return mem.Map(k.bytes, mem.NoReserve)
}

func giveBlock(k blockKind, b []byte) {
	blocks.Lock()
	defer blocks.Unlock()
	if blocks.free == nil {
		blocks.free = map[blockKind][][]byte{}
	}
	blocks.free[k] = append(blocks.free[k], b)
}

// clearBlock zeroes memory and gives its whole pages back.
func clearBlock(b []byte) {
	const page = 4096
	head := min(len(b), int(-uintptr(unsafe.Pointer(unsafe.SliceData(b)))&(page-1)))
	clear(b[:head])
	if pages := b[head:]; len(pages) < page || unix.Madvise(pages[:len(pages)&^(page-1)], unix.MADV_DONTNEED) != nil {
		clear(pages)
	} else {
		clear(pages[len(pages)&^(page-1):])
	}
}

// noRx is the receive context of endpoints that are not enabled: it never has
// work, and its lease is never free.
var noRx = sync.OnceValues(func() (*hot.Rx, error) {
	b, err := mem.Map(int(unsafe.Sizeof(hot.Rx{})), 0)
	if err != nil {
		return nil, err
	}
	rx := (*hot.Rx)(unsafe.Pointer(unsafe.SliceData(b)))
	rx.Lease = 1
	return rx, nil
})

// hide ends all progress on the endpoint. The caller holds the lease.
func (e *hotMemory) hide() {
	rx, _ := noRx() // allocateHot has asked already
	atomic.StoreUintptr(&e.hot.Rx, uintptr(unsafe.Pointer(rx)))
}

// allocateHot takes the memory of the tables that C reads.
func (e *peering) allocateHot() error {
	if _, err := noRx(); err != nil {
		return err
	}
	stripes := (e.stripeCount() + 1) * int(unsafe.Sizeof(hot.Stripe{}))
	e.kind = blockKind{
		bytes:    mem.Round(int(unsafe.Sizeof(hot.EP{})) + stripes),
		ringLog2: log2(e.domain.cfg.RingSlots),
	}
	b, err := takeBlock(e.kind)
	if err != nil {
		return err
	}
	e.block = b
	e.hot = (*hot.EP)(unsafe.Pointer(unsafe.SliceData(b)))
	e.hide()
	return nil
}

// freeHot clears the tables but for what late readers go by.
func (e *hotMemory) freeHot() {
	const (
		rx, rings     = unsafe.Offsetof(hot.EP{}.Rx), unsafe.Offsetof(hot.EP{}.RxState)
		inbound, last = unsafe.Offsetof(hot.EP{}.Inbound), unsafe.Sizeof(hot.EP{})
	)
	e.hot = nil
	clear(e.block[:rx])
	clear(e.block[rings:inbound])
	clear(e.block[last:])
	giveBlock(e.kind, e.block)
	e.block = nil
}

// allocateHot takes the memory of the table that C reads and of its ring of
// 1<<log posts.
func (r *rxContext) allocateHot(log uint32, flags uint32) error {
	const head = int(unsafe.Sizeof(hot.Rx{}))
	r.kind = blockKind{
		rx: true, bytes: mem.Round(head + hot.CacheLine + hot.CacheLine<<log), ringLog2: log,
		exclusive: flags&hot.RxExclusive != 0,
	}
	b, err := takeBlock(r.kind)
	if err != nil {
		return err
	}
	r.block = b
	r.hot = (*hot.Rx)(unsafe.Pointer(unsafe.SliceData(b)))
	r.hot.Flags = flags
	r.hot.OpFlags = r.attr.OpFlags
	r.hot.Rest = restMillis(r.cfg.PeerCheckInterval)
	return nil
}

// freeHot clears the table but for what late readers go by. The context is dead.
func (r *rxContext) freeHot() {
	h := r.hot
	h.Flags &= hot.RxExclusive
	atomic.StoreUint32(&h.WantPosts, 0)
	atomic.StoreUint32(&h.Attention, 0)
	atomic.StoreUint64(&h.PostsHead, 0)
	atomic.StoreUintptr(&h.Bell, 0)
	h.Handle, h.Selective, h.OpFlags, h.Receiver = 0, 0, 0, 0
	clearBlock(r.block[unsafe.Sizeof(hot.Rx{}):])
	giveBlock(r.kind, r.block)
}

// log2 is the logarithm of a power of two.
func log2(n int) uint32 { return uint32(bits.Len(uint(n)) - 1) }
