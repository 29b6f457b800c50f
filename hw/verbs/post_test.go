package verbs

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/ibv"
	"github.com/weft-fabric/weft/hw/verbs/ibv/null"
)

// nullEndpoint is an endpoint whose messages go nowhere.
func nullEndpoint(depth int) *Endpoint {
	i := &Iface{cfg: Config{}.withDefaults()}
	e := &Endpoint{i: i, answered: make(chan struct{})}
	memory := make([]byte, depth*(ibv.OpBytes+slotBytes))
	q := &e.msg
	q.mask = uint64(depth - 1)
	q.ops = ibv.Ops(memory, depth)
	q.slots = memory[depth*ibv.OpBytes:]
	q.first = addressOf(q.slots)
	q.entries = make([]entry, depth)
	q.cq = &sendCQ{size: 1 << 40}
	q.qp, q.inline = null.QP(), slotBytes
	q.start()
	e.ready.Store(true)
	return e
}

// retireAll ends everything posted, as completions do.
func (q *queue) retireAll() {
	q.head.Store(q.tail.Load())
}

// BenchmarkPostCost compares a message posted from Go with the same work request
// posted from a loop in C: the difference is what Go costs.
func BenchmarkPostCost(b *testing.B) {
	const batch = 64
	e := nullEndpoint(2 * batch)
	payload := make([]byte, 8)
	var inGo, inC time.Duration
	for b.Loop() {
		start := time.Now()
		for range batch {
			if e.AMShort(1, 0, nil, payload) != nil {
				b.Fatal("no place")
			}
		}
		inGo += time.Since(start)
		e.msg.retireAll()
		start = time.Now()
		null.Loop(batch, headerBytes+len(payload))
		inC += time.Since(start)
	}
	posts := float64(b.N) * batch
	b.ReportMetric(float64(inGo)/posts, "ns/post")
	b.ReportMetric(float64(inGo-inC)/posts, "ns/post-over-C")
}

func TestPostNoAllocation(t *testing.T) {
	e := nullEndpoint(128)
	payload := make([]byte, 8)
	if n := testing.AllocsPerRun(1000, func() {
		if e.AMShort(1, 0, nil, payload) != nil {
			t.Fatal("no place")
		}
		e.msg.retireAll()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestPostThreads posts from several threads: every place is posted once.
func TestPostThreads(t *testing.T) {
	e := nullEndpoint(64)
	before := null.Taken()
	const threads, count = 4, 5000
	stop := make(chan struct{})
	var retirer, wg sync.WaitGroup
	retirer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			// What has been posted may end; run is held while this looks.
			if e.msg.run.CompareAndSwap(idle, busy) {
				e.msg.head.Store(e.msg.posted)
				e.msg.run.Store(idle)
				e.msg.post()
			}
		}
	})
	for range threads {
		wg.Go(func() {
			for n := 0; n < count; {
				err := e.AMShort(1, uint64(n), nil, nil)
				if err == nil {
					n++
				} else if !errors.Is(err, hw.ErrNoResource) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	retirer.Wait()
	e.msg.post()
	if got := null.Taken() - before; got != threads*count || e.msg.posted != threads*count {
		t.Errorf("%d posted, position %d, want %d", got, e.msg.posted, threads*count)
	}
}
