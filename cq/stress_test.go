package cq

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
)

// stamp is message n of a producer; every field follows from both.
func stamp(producer, n uint64) Entry {
	v := producer<<40 | n
	return Entry{Context: v, Flags: fi.Send, Len: v + 1, Buf: v + 2, Data: v + 3, Tag: v + 4, Src: fi.Addr(v + 5)}
}

// tally counts what several readers get: each message once.
type tally struct {
	seen  [][]atomic.Bool
	count atomic.Uint64
}

func newTally(producers, each int) *tally {
	a := &tally{seen: make([][]atomic.Bool, producers)}
	for i := range a.seen {
		a.seen[i] = make([]atomic.Bool, each)
	}
	return a
}

// take checks that each reader sees each producer's entries in order: last has
// the number after the last of each.
func (a *tally) take(e Entry, last []uint64) error {
	p, n := e.Context>>40, e.Context&(1<<40-1)
	if p >= uint64(len(a.seen)) || n >= uint64(len(a.seen[p])) || e != stamp(p, n) {
		return fmt.Errorf("torn entry %+v", e)
	}
	if a.seen[p][n].Swap(true) {
		return fmt.Errorf("entry %d of %d came twice", n, p)
	}
	if n < last[p] {
		return fmt.Errorf("entry %d of %d came after %d", n, p, last[p]-1)
	}
	last[p] = n + 1
	a.count.Add(1)
	return nil
}

// read takes entries and errors until all have come.
func (a *tally) read(q *Queue, total uint64, batch int) error {
	dst := make([]Entry, batch)
	last := make([]uint64, len(a.seen))
	for stop := time.Now().Add(time.Minute); a.count.Load() < total; {
		n, err := q.Read(dst)
		for _, e := range dst[:n] {
			if err := a.take(e, last); err != nil {
				return err
			}
		}
		switch fi.ErrnoOf(err) {
		case fi.EAVAIL:
			e, err := q.ReadErr()
			if err != nil {
				break // another reader was faster
			}
			if e.Err != fi.EIO || e.OLen != e.Context {
				return fmt.Errorf("torn error %+v", e)
			}
			if err := a.take(e.Entry, last); err != nil {
				return err
			}
		case fi.EAGAIN:
			if time.Now().After(stop) {
				return fmt.Errorf("%d of %d arrived", a.count.Load(), total)
			}
			runtime.Gosched()
		}
	}
	return nil
}

// TestStress has a progress engine that completes and fails, stripes that
// push or claim, and several readers, on small rings.
func TestStress(t *testing.T) {
	each := 20000
	if testing.Short() {
		each = 2000
	}
	for _, size := range []uint64{1, 2, 8, 64} {
		for _, readers := range []int{1, 3} {
			t.Run(fmt.Sprintf("size=%d/readers=%d", size, readers), func(t *testing.T) {
				stress(t, heapQueue(t, &fi.CQAttr{Size: size}, Options{Stripes: 2}), readers, each)
			})
		}
	}
}

func stress(t *testing.T, q *Queue, readers, each int) {
	var wg sync.WaitGroup
	wg.Go(func() { // producer 0: progress
		for n := range uint64(each) {
			for atomic.LoadUint64(&q.hot.Overflow) > 100 {
				runtime.Gosched()
			}
			if e := stamp(0, n); n%7 == 0 {
				q.CompleteError(e, ErrorInfo{Err: fi.EIO, OLen: e.Context})
			} else {
				q.Complete(e)
			}
		}
	})
	for p := 1; p <= 3; p++ { // the last two share a ring
		wg.Go(func() { post(q, p, each) })
	}
	a := newTally(4, each)
	var errs = make(chan error, readers)
	for i := range readers {
		wg.Go(func() { errs <- a.read(q, uint64(4*each), 1+3*i) })
	}
	for range readers {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	wantRead(t, q)
}

// post writes each completions to ring p, every third in a slot that it claims
// first.
func post(q *Queue, p, each int) {
	for n := range uint64(each) {
		if n%3 != 0 {
			for !q.TryComplete(p, stamp(uint64(p), n)) {
				runtime.Gosched()
			}
			continue
		}
		for {
			if c, ok := claim(q, p); ok {
				c.fill(q, stamp(uint64(p), n))
				break
			}
			runtime.Gosched()
		}
	}
}

// TestExclusive runs the same moves on one thread.
func TestExclusive(t *testing.T) {
	q := heapQueue(t, &fi.CQAttr{Size: 4}, Options{Exclusive: true})
	a := newTally(1, 1000)
	last := make([]uint64, 1)
	dst := make([]Entry, 3)
	for n := range uint64(1000) {
		q.Complete(stamp(0, n))
		if n%5 != 4 {
			continue
		}
		for {
			k, err := q.Read(dst)
			if err != nil {
				wantErr(t, err, fi.EAGAIN)
				break
			}
			for _, e := range dst[:k] {
				if err := a.take(e, last); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if a.count.Load() != 1000 {
		t.Errorf("%d arrived", a.count.Load())
	}
}
