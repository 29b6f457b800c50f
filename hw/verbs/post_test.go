package verbs

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv/null"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
	"github.com/weft-fabric/weft/internal/mem"
)

// direct says whether C calls the data plane without the runtime, where that is possible.
var direct = true

// onEachRoute runs a test with C calling the data plane without the runtime, and by callbacks.
func onEachRoute(t *testing.T, f func(t *testing.T)) {
	t.Run("direct", func(t *testing.T) {
		if !transport.Route(true) {
			t.Skip("there is no trampoline here")
		}
		f(t)
	})
	t.Run("callbacks", func(t *testing.T) { byCallbacks(t, f) })
}

// byCallbacks runs a test with C calling the data plane by callbacks.
func byCallbacks(t *testing.T, f func(t *testing.T)) {
	direct = false
	defer func() {
		direct = true
		transport.Route(true)
	}()
	transport.Route(false)
	f(t)
}

// nullEndpoint is an endpoint whose messages go nowhere.
func nullEndpoint(depth int) *Endpoint {
	i := &Iface{cfg: Config{Direct: direct}.withDefaults()}
	e := &Endpoint{i: i, answered: make(chan struct{})}
	// of a few pages, until the process ends; C's order of accesses is not seen on the heap
	memory, err := mem.Map(transport.BlockBytes(depth), 0)
	if err != nil {
		panic(err)
	}
	e.msg.lay(memory, depth, 0)
	e.msg.reports(&sendCQ{SendCQ: &transport.SendCQ{Size: 1 << 40}})
	e.msg.use(null.QP())
	e.c = nullTransport().NewPeer(e.msg.SendQueue)
	e.msg.start()
	e.ready.Store(true)
	e.c.Blocked.Store(0)
	return e
}

// nullTransport is a transport of an interface that there is not.
func nullTransport() *transport.Transport {
	p, err := transport.New(transport.Config{SRQ: null.SRQ(), Queues: []*ibv.CQ{null.CQ(0)}, Max: 1, Peers: 1,
		Direct: direct})
	if err != nil {
		panic(err)
	}
	return p
}

// retireAll ends everything posted, as completions do.
func (q *queue) retireAll() {
	q.Head.Store(q.Tail.Load())
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
		null.Loop(batch, transport.HeaderBytes+len(payload))
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

// retireUntil ends what has been posted, again and again.
func retireUntil(e *Endpoint, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		// What has been posted may end; run is kept while this polls.
		if e.msg.Run.CompareAndSwap(transport.QueueIdle, transport.QueueBusy) {
			e.msg.Head.Store(e.msg.Posted)
			e.msg.Run.Store(transport.QueueIdle)
			e.msg.Post()
		}
	}
}

// TestPostThreads posts from several threads: every place is posted once.
func TestPostThreads(t *testing.T) {
	postTogether(t, func(e *Endpoint, _ int, n uint64) (bool, error) {
		err := e.AMShort(1, n, nil, nil)
		if errors.Is(err, hw.ErrNoResource) {
			return false, nil
		}
		return err == nil, err
	})
}

// postTogether has several threads post to an endpoint whose operations end, and
// checks that every place is posted once. post reports whether it has posted message
// n of a thread; an error ends the thread.
func postTogether(t *testing.T, post func(e *Endpoint, thread int, n uint64) (bool, error)) {
	e := nullEndpoint(64)
	before := null.Taken()
	const threads, count = 4, 5000
	stop := make(chan struct{})
	var retirer, wg sync.WaitGroup
	retirer.Go(func() { retireUntil(e, stop) })
	for k := range threads {
		wg.Go(func() {
			for n := 0; n < count; {
				posted, err := post(e, k, uint64(n))
				if err != nil {
					t.Error(err)
					return
				}
				if posted {
					n++
				}
			}
		})
	}
	wg.Wait()
	close(stop)
	retirer.Wait()
	e.msg.Post()
	if got := null.Taken() - before; got != threads*count || e.msg.Posted != threads*count {
		t.Errorf("%d posted, position %d, want %d", got, e.msg.Posted, threads*count)
	}
}
