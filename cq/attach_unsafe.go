package cq

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// retired is how many replaced arrays of one size lie idle before the oldest
// is used again.
const retired = 8

// epList is the NULL-terminated array of endpoints that pollers walk, in Go and
// in C. It is replaced as a whole with a store-release of *slot (pollers load
// it with acquire). A poller may still walk a replaced array, so its memory stays
// until close; it is used again for later arrays of its size. Its last word is
// always 0, so even a poller that walks it meanwhile ends, having seen endpoints
// of this queue. It may also have seen one that was just detached: an endpoint's
// hot table must stay readable for a while after Detach.
//
// mu is not on the data path: it is taken when endpoints come and go.
type epList struct {
	slot *uintptr // EPs of the hot table; set at open

	mu    sync.Mutex
	eps   []boundEP
	pool  *mem.Pool
	cap   int              // words of the current array, 0: none
	spare map[int][]uint64 // addresses of replaced arrays by words, oldest first
	uses  int              // bindings of every kind
}

type boundEP struct {
	ep   *hot.EP
	uses int // an endpoint may bind a queue for both directions
}

func (l *epList) open(slot *uintptr) {
	l.slot = slot
	l.pool = mem.NewPool(0)
	l.spare = map[int][]uint64{}
}

// attach adds one use of ep.
func (l *epList) attach(ep *hot.EP) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.eps {
		if l.eps[i].ep == ep {
			l.eps[i].uses++
			l.uses++
			return nil
		}
	}
	l.eps = append(l.eps, boundEP{ep, 1})
	if err := l.publish(); err != nil {
		l.eps = l.eps[:len(l.eps)-1]
		return err
	}
	l.uses++
	return nil
}

// detach takes one use of ep back.
func (l *epList) detach(ep *hot.EP) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.eps {
		if l.eps[i].ep != ep {
			continue
		}
		if l.eps[i].uses--; l.eps[i].uses == 0 {
			l.eps = append(l.eps[:i], l.eps[i+1:]...)
			if err := l.publish(); err != nil {
				l.clear(ep)
			}
		}
		l.uses--
		return nil
	}
	return fmt.Errorf("detach an endpoint that is not attached: %w", fi.EINVAL)
}

// retain and release count uses by objects that pollers need not see.
func (l *epList) retain() {
	l.mu.Lock()
	l.uses++
	l.mu.Unlock()
}

func (l *epList) release() {
	l.mu.Lock()
	l.uses--
	l.mu.Unlock()
}

// publish builds the array anew and stores its address. The caller holds mu.
func (l *epList) publish() error {
	words := 8
	for words < len(l.eps)+1 {
		words *= 2
	}
	addr, err := l.array(words)
	if err != nil {
		return err
	}
	a := wordsAt(addr, words)
	for i := range a {
		var v uintptr
		if i < len(l.eps) {
			v = uintptr(unsafe.Pointer(l.eps[i].ep))
		}
		atomic.StoreUintptr(&a[i], v)
	}
	if old := atomic.SwapUintptr(l.slot, uintptr(addr)); old != 0 {
		l.spare[l.cap] = append(l.spare[l.cap], uint64(old))
	}
	l.cap = words
	return nil
}

func (l *epList) array(words int) (uint64, error) {
	if s := l.spare[words]; len(s) >= retired {
		l.spare[words] = append(s[:0], s[1:]...)
		return s[0], nil
	}
	addr, err := l.pool.Get(8 * words)
	if err != nil {
		return 0, fmt.Errorf("list of %d endpoints: %w", len(l.eps), err)
	}
	return addr, nil
}

// clear takes ep out of the current array in place, for a detach without
// memory: the last entry takes its place, so pollers may miss that one once.
func (l *epList) clear(ep *hot.EP) {
	a := wordsAt(uint64(atomic.LoadUintptr(l.slot)), l.cap)
	last := len(l.eps)
	for i := range a {
		if a[i] == uintptr(unsafe.Pointer(ep)) {
			atomic.StoreUintptr(&a[i], a[last])
			atomic.StoreUintptr(&a[last], 0)
			return
		}
	}
}

// busy reports whether anything uses the queue.
func (l *epList) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.uses > 0
}

func (l *epList) close() error {
	atomic.StoreUintptr(l.slot, 0)
	return l.pool.Close()
}

func wordsAt(addr uint64, n int) []uintptr {
	b := mem.Bytes(addr, 8*n)
	return unsafe.Slice((*uintptr)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
