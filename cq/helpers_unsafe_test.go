package cq

import (
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cqring"
	"github.com/weft-fabric/weft/internal/hot"
)

// heapQueue returns a queue on the Go heap, where the race detector sees it.
func heapQueue(t testing.TB, attr *fi.CQAttr, opts Options) *Queue {
	t.Helper()
	l, err := plan(attr, opts)
	if err != nil {
		t.Fatal(err)
	}
	words := make([]uint64, l.bytes()/8+8)
	skip := (-uintptr(unsafe.Pointer(&words[0])) & 63) / 8
	memory := unsafe.Slice((*byte)(unsafe.Pointer(&words[skip])), l.bytes())
	q, err := newQueue(attr, opts, nil, l, memory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

// address returns where an endpoint's table is.
func address(ep *hot.EP) uintptr { return uintptr(unsafe.Pointer(ep)) }

// listed returns what a poller that loads the array now would walk.
func listed(q *Queue) (addrs []uintptr) {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&q.hot.EPs))
	for i := 0; p != nil; i++ {
		v := *(*uintptr)(unsafe.Add(p, 8*i))
		if v == 0 {
			break
		}
		addrs = append(addrs, v)
	}
	return addrs
}

// claimed is a slot that is taken and not yet filled, as a delivery of the data plane has it for a moment.
type claimed struct {
	ring *ring
	at   unsafe.Pointer
	pos  uint64
}

func claim(q *Queue, n int) (claimed, bool) {
	r := &q.rings[ringIndex(n, len(q.rings))]
	at, pos, ok := r.Claim(hot.CQMarkEntry, cqring.Exclusive(q.hot))
	return claimed{r, at, pos}, ok
}

func (c claimed) fill(q *Queue, e Entry) {
	c.ring.fill(c.at, c.pos, &e, hot.CQMarkEntry)
	q.Wake()
}
