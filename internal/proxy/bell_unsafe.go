package proxy

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/order"
)

// States of a bell's word.
const (
	bellAwake  = hot.BellAwake
	bellAsleep = hot.BellAsleep // or it is about to sleep: a thread that has work for it rings
	// it sleeps for a short time, because the application makes the progress: only posted operations ring
	bellWatch = 2
)

// Bell is what one thread sleeps on and any other wakes it by: an event file in
// an epoll set, and a word that says whether ringing is needed.
//
//	the sleeper   word = asleep (B0); poll for work; sleep; word = awake
//	the ringer    publish it; fence (B1); read the word; swap it for awake; write to the event file
//
// Between store and load on both sides is a full fence, so the sleeper sees the
// work or the other sees it asleep. The data plane reads the same bell (dataplane.PushEntry).
//
// The word's memory is never unmapped, but given to a later bell: a thread that posts late
// may still read it.
type Bell struct {
	word  *uint32       // written by the sleeper, swapped for bellAwake by threads that ring; sequentially consistent
	event int           // eventfd, immutable
	epoll int           // immutable
	rung  atomic.Uint64 // how often; added to and loaded by any thread; relaxed
}

// words are the free words of closed bells, a cache line each.
var words struct {
	sync.Mutex // taken when bells are made and closed
	free       []*uint32
}

func takeWord() (*uint32, error) {
	words.Lock()
	defer words.Unlock()
	if len(words.free) == 0 {
		page, err := mem.Map(1, 0)
		if err != nil {
			return nil, err
		}
		for at := 0; at < len(page); at += 64 {
			words.free = append(words.free, (*uint32)(unsafe.Pointer(&page[at])))
		}
	}
	w := words.free[len(words.free)-1]
	words.free = words.free[:len(words.free)-1]
	return w, nil
}

// NewBell opens the descriptors of a bell.
func NewBell() (*Bell, error) {
	word, err := takeWord()
	if err != nil {
		return nil, fmt.Errorf("bell: %w", err)
	}
	b := &Bell{word: word, event: -1, epoll: -1}
	if b.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		b.event = -1
		return nil, errors.Join(fmt.Errorf("bell: eventfd: %w", err), b.Close())
	}
	if b.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		b.epoll = -1
		return nil, errors.Join(fmt.Errorf("bell: epoll: %w", err), b.Close())
	}
	if err = b.Add(b.event); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Close gives the descriptors back. No thread may sleep or ring any more.
func (b *Bell) Close() error {
	var errs []error
	for _, fd := range []int{b.epoll, b.event} {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	b.epoll, b.event = -1, -1
	atomic.StoreUint32(b.word, bellAwake)
	words.Lock()
	words.free = append(words.free, b.word)
	words.Unlock()
	return errors.Join(errs...)
}

// Add makes a descriptor wake the sleeper: each time that something new comes
// to read, not as long as something is there, so others may sleep on the same.
// A descriptor below 0 is no descriptor.
func (b *Bell) Add(fd int) error {
	if fd < 0 {
		return nil
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(fd)}
	if err := unix.EpollCtl(b.epoll, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("bell: add descriptor %d: %w", fd, err)
	}
	return nil
}

// Remove takes back Add. A descriptor that was closed has left by itself.
func (b *Bell) Remove(fd int) {
	if fd >= 0 {
		_ = unix.EpollCtl(b.epoll, unix.EPOLL_CTL_DEL, fd, nil)
	}
}

// Word is the address of the word, and Event the event file, for C.
func (b *Bell) Word() uintptr { return uintptr(unsafe.Pointer(b.word)) }

// Arm says that the caller is about to sleep; it must poll for work
// afterwards (B0). Only the sleeper calls it.
func (b *Bell) Arm(state uint32) { atomic.StoreUint32(b.word, state) }

// Disarm says that the caller is awake.
func (b *Bell) Disarm() { atomic.StoreUint32(b.word, bellAwake) }

// Ring wakes the sleeper, after something was published for it (B1).
func (b *Bell) Ring() {
	order.Fence()
	if w := atomic.LoadUint32(b.word); w != bellAwake && atomic.CompareAndSwapUint32(b.word, w, bellAwake) {
		b.raise()
	}
}

// RingAsleep is Ring that lets a thread be which watches the application.
func (b *Bell) RingAsleep() {
	order.Fence()
	if atomic.LoadUint32(b.word) == bellAsleep && atomic.CompareAndSwapUint32(b.word, bellAsleep, bellAwake) {
		b.raise()
	}
}

// raise makes the event file readable. It can only fail when it is readable.
func (b *Bell) raise() {
	b.rung.Add(1)
	one := [8]byte{1}
	_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(b.event), uintptr(unsafe.Pointer(&one)), 8)
}

// Sleep returns when the bell rings, a descriptor of Add has something new, or
// the time is over (negative: never). It may return early. The caller has armed
// the bell and found no work.
func (b *Bell) Sleep(timeout time.Duration) {
	var events [8]unix.EpollEvent
	ms := -1
	if timeout >= 0 {
		ms = int(min((timeout+time.Millisecond-1)/time.Millisecond, 1<<30))
	}
	_, _ = unix.EpollWait(b.epoll, events[:], ms) // interrupted is early
	b.Disarm()
	var count [8]byte
	_, _, _ = unix.RawSyscall(unix.SYS_READ, uintptr(b.event), uintptr(unsafe.Pointer(&count)), 8) // empty is fine
}
