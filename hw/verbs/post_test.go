package verbs

import (
	"errors"
	"os"
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

// TestPostCost compares a message posted from Go with the same work request
// posted from a loop in C: the difference is what Go costs.
func TestPostCost(t *testing.T) {
	if testing.Short() || os.Getenv("WEFT_TEST_RDMA") != "" {
		t.Skip("a measurement, which means nothing on an emulated processor")
	}
	const rounds, count, size = 40, 5000, 8
	const limit = 150 * time.Nanosecond
	e := nullEndpoint(128)
	payload := make([]byte, size)
	goes, c := time.Hour, time.Hour
	for range rounds { // the least of many: everything else is the machine's
		start := time.Now()
		for n := range count {
			if e.AMShort(1, 0, nil, payload) != nil {
				t.Fatal("no place")
			}
			if n%64 == 63 {
				e.msg.retireAll()
			}
		}
		goes = min(goes, time.Since(start)/count)
		e.msg.retireAll()
		start = time.Now()
		null.Loop(count, headerBytes+size)
		c = min(c, time.Since(start)/count)
	}
	t.Logf("a post from Go %v, from C %v, difference %v", goes, c, goes-c)
	if goes-c > limit {
		t.Errorf("Go costs %v for each post, more than %v", goes-c, limit)
	}
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

func BenchmarkPost(b *testing.B) {
	e := nullEndpoint(128)
	payload := make([]byte, 8)
	for n := 0; b.Loop(); n++ {
		if e.AMShort(1, 0, nil, payload) != nil {
			b.Fatal("no place")
		}
		if n%64 == 63 {
			e.msg.retireAll()
		}
	}
}
