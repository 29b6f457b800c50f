package xdp

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is one of the four rings that a socket shares with the kernel. Indexes run
// freely and are masked on use. On a ring that we produce, fill and transmit, the
// kernel writes consumer; on one that we consume, receive and completion, it
// writes producer. The owner of the ring here is its only user.
//
// Ordering: the store of our index publishes the entries before it (Go's
// atomics are sequentially consistent) to the kernel's acquiring load; the load
// of the kernel's index makes the entries before it visible, which the kernel
// published by a releasing store.
type ring struct {
	memory []byte
	// producer and consumer are indices in memory that the kernel shares. Of a ring that this side fills it stores the
	// first, and loads the second; of one that it empties the other way round. Acquire and release.
	producer *atomic.Uint32
	consumer *atomic.Uint32
	flags    *atomic.Uint32 // written by the kernel: XDP_RING_NEED_WAKEUP
	entries  unsafe.Pointer
	mask     uint32
	own      uint32 // our index, published or not
	other    uint32 // the kernel's as last read
}

// mapRing maps a ring of n entries, a power of two, of the socket fd. Errors are of
// the kernel.
func mapRing(fd int, off *unix.XDPRingOffset, page int64, n uint32, entry uintptr) (ring, error) {
	b, err := unix.Mmap(fd, page, int(off.Desc)+int(n)*int(entry), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return ring{}, fmt.Errorf("map a ring: %w", err)
	}
	word := func(at uint64) *atomic.Uint32 { return wordOf(&b[at]) }
	return ring{
		memory: b, producer: word(off.Producer), consumer: word(off.Consumer), flags: word(off.Flags),
		entries: unsafe.Pointer(&b[off.Desc]), mask: n - 1,
	}, nil
}

// wordOf is the index that begins at p, which is aligned.
func wordOf[T any](p *T) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(p)) }

func (r *ring) unmap() {
	if r.memory != nil {
		_ = unix.Munmap(r.memory)
	}
	*r = ring{}
}

// room is how many entries a ring that we produce can take.
func (r *ring) room(wanted uint32) uint32 {
	if free := r.mask + 1 - (r.own - r.other); free >= wanted {
		return free
	}
	r.other = r.consumer.Load()
	return r.mask + 1 - (r.own - r.other)
}

// publish gives the kernel what was produced.
func (r *ring) publish() { r.producer.Store(r.own) }

// pending is how many entries that were published the kernel has not taken.
func (r *ring) pending() uint32 { return r.own - r.consumer.Load() }

// available is how many entries a ring that we consume has.
func (r *ring) available() uint32 {
	if n := r.other - r.own; n > 0 {
		return n
	}
	r.other = r.producer.Load()
	return min(r.other-r.own, r.mask+1)
}

// release gives the kernel the room of what was consumed.
func (r *ring) release() { r.consumer.Store(r.own) }

// wakeup reports whether the kernel wants a system call to go on.
func (r *ring) wakeup() bool { return r.flags.Load()&unix.XDP_RING_NEED_WAKEUP != 0 }

// addr is the next entry of a fill or completion ring, which is taken.
func (r *ring) addr() *uint64 {
	p := (*uint64)(unsafe.Add(r.entries, uintptr(r.own&r.mask)*unsafe.Sizeof(uint64(0))))
	r.own++
	return p
}

// desc is the next entry of a receive or transmit ring, which is taken.
func (r *ring) desc() *unix.XDPDesc {
	p := (*unix.XDPDesc)(unsafe.Add(r.entries, uintptr(r.own&r.mask)*unsafe.Sizeof(unix.XDPDesc{})))
	r.own++
	return p
}
