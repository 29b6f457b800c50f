package proxy

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

func newPool(t testing.TB, size int) *Pool {
	t.Helper()
	bell, err := NewBell()
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPool(size, bell)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := bell.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestPoolKeepsOrderAndBounds(t *testing.T) {
	p := newPool(t, 20)
	if p.Size() != 32 {
		t.Fatalf("size %d, want the next power of two", p.Size())
	}
	for i := range 32 {
		if !p.Post(Op{Code: 1, Target: uint32(i), Args: [6]uint64{5: uint64(i)}}) {
			t.Fatalf("operation %d refused", i)
		}
	}
	if p.Post(Op{}) || p.PostBatch(make([]Op, 3)) != 0 {
		t.Fatal("a full pool took an operation")
	}
	dst := make([]Op, 20)
	if n := p.Take(dst); n != 20 || !p.Ready() {
		t.Fatalf("took %d", n)
	}
	if n := p.PostBatch(make([]Op, 30)); n != 20 {
		t.Fatalf("a batch of 30 gave %d, want what there is room for", n)
	}
	for i, op := range dst {
		if op.Target != uint32(i) || op.Args[5] != uint64(i) || op.Code != 1 {
			t.Fatalf("operation %d is %+v", i, op)
		}
	}
	if n := p.Take(make([]Op, 100)); n != 32 || p.Ready() || p.Taken() != 52 {
		t.Fatalf("took %d of the rest, %d in all", n, p.Taken())
	}
}

// TestPoolManyProducers sees that each producer's operations come once and in
// order, and that the consumer never sleeps through one.
func TestPoolManyProducers(t *testing.T) {
	const producers = 8
	each := 20000
	if testing.Short() {
		each = 3000
	}
	p := newPool(t, 64)
	var wg sync.WaitGroup
	for w := range producers {
		wg.Go(func() {
			for i := 0; i < each; {
				batch := [3]Op{}
				for k := range batch {
					batch[k] = Op{Target: uint32(w), Args: [6]uint64{uint64(i + k)}}
				}
				n := p.PostBatch(batch[:min(3, each-i)])
				if i += n; n == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	var next [producers]int
	dst := make([]Op, 16)
	for got := 0; got < producers*each; {
		n := p.Take(dst)
		for _, op := range dst[:n] {
			if op.Args[0] != uint64(next[op.Target]) {
				t.Fatalf("producer %d: operation %d, want %d", op.Target, op.Args[0], next[op.Target])
			}
			next[op.Target]++
		}
		if got += n; n > 0 {
			continue
		}
		p.bell.Arm(bellAsleep)
		if p.Ready() {
			p.bell.Disarm()
			continue
		}
		began := time.Now()
		p.bell.Sleep(time.Minute)
		if time.Since(began) >= time.Minute && p.Ready() { // nothing rang
			t.Fatal("slept while operations waited")
		}
	}
	wg.Wait()
}

// BenchmarkPost is what posting costs the requester: alone, with the consumer
// taking in batches between, and from all processors at once.
func BenchmarkPost(b *testing.B) {
	b.Run("single", func(b *testing.B) {
		p := newPool(b, 1<<12)
		dst := make([]Op, p.Size())
		b.ReportAllocs()
		for b.Loop() {
			if !p.Post(Op{Code: 1}) {
				b.StopTimer()
				p.Take(dst)
				b.StartTimer()
			}
		}
	})
	b.Run("batch16", func(b *testing.B) {
		p := newPool(b, 1<<12)
		dst := make([]Op, p.Size())
		ops := make([]Op, 16)
		n := 0
		for b.Loop() {
			if n++; n < 16 {
				continue
			}
			n = 0
			if p.PostBatch(ops) < 16 {
				b.StopTimer()
				p.Take(dst)
				b.StartTimer()
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		// All processors post at once, while there is room. What it costs to
		// drain the pool between is not the requesters'.
		p := newPool(b, 1<<16)
		dst := make([]Op, p.Size())
		for left := b.N; left > 0; {
			each := min(left, p.Size()) / runtime.GOMAXPROCS(0)
			var wg sync.WaitGroup
			for range runtime.GOMAXPROCS(0) {
				wg.Go(func() {
					for range each {
						p.Post(Op{Code: 1})
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			p.Take(dst)
			b.StartTimer()
			left -= max(1, each*runtime.GOMAXPROCS(0))
		}
	})
	b.Run("poll", func(b *testing.B) {
		p := newPool(b, 64)
		for b.Loop() {
			if p.Ready() {
				b.Fatal("ready")
			}
		}
	})
}
