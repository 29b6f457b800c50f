// Package tables has the memory of the tables of endpoints and receive contexts that C and the data plane read.
//
// They are read by threads that poll a queue. Such a thread may have found the endpoint before it was closed and read
// on at any later time. So the memory of these tables is never unmapped, but used again for tables of the same kind,
// and a late reader can do no harm:
//
//   - What it reads are valid addresses. hot.EP.Inbound, hot.EP.RxRings and hot.Rx.Posts are never cleared; rings of
//     another size are another kind; and the memory of an inbound ring outlives its interface too. A match transport
//     (hot.EP.Match) does not outlive its endpoint: it is read under the lease, or, of an endpoint with a gate, as an
//     epoch reader (hot.EpochReader).
//   - What it finds is nothing, or work that is not there. Before it acts it takes the lease of the receive context
//     that it has read, and then reads whether the endpoint still delivers there (hot.EP.Rx). Closing an endpoint puts
//     a context that is never free there under that lease ([EP.Hide]).
//   - The lease is not cleared between two users, because a late reader may hold it; the next user waits for it then.
//     Contexts that need no lease are a kind of their own: an application that asks for those does not close endpoints
//     while it reads their queues.
//
// There are as many blocks of memory as objects were open at a time.
package tables

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
)

// kind is what does not change while a block is used again.
type kind struct {
	rx        bool // a hot.Rx and its post ring, else a hot.EP and its stripes
	bytes     int
	ringLog2  uint32 // of the ring that is polled
	exclusive bool   // one thread at a time takes the context's lease, by plain stores, or it is not used
}

// blocks are those that wait to be used again.
var blocks struct {
	sync.Mutex // taken by objects that are opened and closed
	free       map[kind][][]byte
}

// take returns a block of a kind: a new one is zero, a used one as it was given.
func take(k kind) ([]byte, error) {
	blocks.Lock()
	defer blocks.Unlock()
	if free := blocks.free[k]; len(free) != 0 {
		b := free[len(free)-1]
		blocks.free[k] = free[:len(free)-1]
		return b, nil
	}
	return mem.Map(k.bytes, mem.NoReserve)
}

func give(k kind, b []byte) {
	blocks.Lock()
	defer blocks.Unlock()
	if blocks.free == nil {
		blocks.free = map[kind][][]byte{}
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

// noRx is the receive context of endpoints that are not enabled: it never has work, and its lease is never free.
var noRx = sync.OnceValues(func() (*hot.Rx, error) {
	b, err := mem.Map(int(unsafe.Sizeof(hot.Rx{})), 0)
	if err != nil {
		return nil, err
	}
	rx := (*hot.Rx)(unsafe.Pointer(unsafe.SliceData(b)))
	rx.Lease = 1
	return rx, nil
})

// EP is the memory of the table of an endpoint, with that of its stripes behind it. One thread at a time opens and
// closes it.
type EP struct {
	block []byte // nil: it is not open
	kind  kind
}

// OpenEP takes the memory for an endpoint with some stripes, whose inbound ring has 1<<ringLog2 slots. exclusive: it
// has a gate (hot.Gate). The endpoint is hidden. Errors: what keeps the system from giving memory.
func OpenEP(stripes int, ringLog2 uint32, exclusive bool) (EP, error) {
	if _, err := noRx(); err != nil {
		return EP{}, err
	}
	bytes := int(unsafe.Sizeof(hot.EP{})) + stripes*int(unsafe.Sizeof(hot.Stripe{}))
	k := kind{bytes: mem.Round(bytes), ringLog2: ringLog2, exclusive: exclusive}
	b, err := take(k)
	if err != nil {
		return EP{}, err
	}
	t := EP{b, k}
	t.Hide()
	return t, nil
}

// Table is the endpoint's table, until Close.
func (t *EP) Table() *hot.EP { return (*hot.EP)(unsafe.Pointer(unsafe.SliceData(t.block))) }

// Hide ends all progress on the endpoint. The caller holds the lease of its receive context.
func (t *EP) Hide() {
	rx, _ := noRx() // OpenEP has asked already
	atomic.StoreUintptr(&t.Table().Rx, uintptr(unsafe.Pointer(rx)))
}

// HideMatch is Hide of an endpoint with a match transport, which threads do not use any more afterwards. One that is
// alone reads it without the lease, as an epoch reader: behind the barrier any such thread either is seen here, and is
// waited for, or finds no transport.
func (t *EP) HideMatch() {
	atomic.StoreUintptr(&t.Table().Match, 0)
	t.Hide()
	if t.kind.exclusive {
		order.Barrier()
		hot.NewGrace().Wait()
	}
}

// Close clears the table but for what late readers go by. The endpoint is hidden.
func (t *EP) Close() {
	const (
		rx, rings     = unsafe.Offsetof(hot.EP{}.Rx), unsafe.Offsetof(hot.EP{}.RxState)
		inbound, last = unsafe.Offsetof(hot.EP{}.Inbound), unsafe.Sizeof(hot.EP{})
	)
	clear(t.block[:rx])
	clear(t.block[rings:inbound])
	clear(t.block[last:])
	give(t.kind, t.block)
	t.block = nil
}

// Rx is the memory of the table of a receive context. One thread at a time opens and closes it.
type Rx struct {
	block []byte
	kind  kind
}

// OpenRx takes the memory for a context with a ring of 1<<log posts. exclusive: its lease is not used. The caller
// writes the table's Flags. Errors: what keeps the system from giving memory.
func OpenRx(log uint32, exclusive bool) (Rx, error) {
	return openRx(kind{
		rx: true, bytes: mem.Round(int(unsafe.Sizeof(hot.Rx{})) + hot.CacheLine + hot.CacheLine<<log), ringLog2: log,
		exclusive: exclusive,
	})
}

// OpenLease takes the memory for a context to which no receives are posted: its table has a lease. exclusive: that of
// an endpoint with a gate. Errors as of OpenRx.
func OpenLease(exclusive bool) (Rx, error) {
	return openRx(kind{rx: true, bytes: mem.Round(int(unsafe.Sizeof(hot.Rx{}))), exclusive: exclusive})
}

func openRx(k kind) (Rx, error) {
	b, err := take(k)
	return Rx{b, k}, err
}

// Table is the context's table, until Close.
func (t *Rx) Table() *hot.Rx { return (*hot.Rx)(unsafe.Pointer(unsafe.SliceData(t.block))) }

// Ring is where the context's ring of posts is: behind the table, a cache line of the ring's own before its slots.
func (t *Rx) Ring() (head, slots unsafe.Pointer) {
	head = unsafe.Pointer(&t.block[unsafe.Sizeof(hot.Rx{})])
	return head, unsafe.Add(head, hot.CacheLine)
}

// Close clears the table but for what late readers go by. The context is dead.
func (t *Rx) Close() {
	h := t.Table()
	h.Flags &= hot.RxExclusive
	atomic.StoreUint32(&h.WantPosts, 0)
	atomic.StoreUint32(&h.Attention, 0)
	atomic.StoreUint64(&h.PostsHead, 0)
	atomic.StoreUintptr(&h.Bell, 0)
	atomic.StoreUint32(&h.Asleep, hot.BellAwake)
	atomic.StoreUint64(&h.Handle, 0)
	h.Selective, h.OpFlags, h.Receiver = 0, 0, 0
	clearBlock(t.block[unsafe.Sizeof(hot.Rx{}):])
	give(t.kind, t.block)
	t.block = nil
}
