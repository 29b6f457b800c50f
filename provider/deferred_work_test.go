package provider

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/atomics"
)

func triggerHints() *fi.Info {
	return &fi.Info{Caps: fi.Msg | fi.Tagged | fi.RMA | fi.Atomic | fi.Source | fi.Trigger}
}

// counter opens a counter of the domain.
func (s *side) counter() *cq.Counter {
	s.t.Helper()
	c, err := s.domain.OpenCounter(nil, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			s.t.Errorf("close counter: %v", err)
		}
	})
	return c
}

func count(c *cq.Counter) uint64    { return atomic.LoadUint64(&c.Hot().Value) }
func errorsOf(c *cq.Counter) uint64 { return atomic.LoadUint64(&c.Hot().Errors) }

// until makes progress on both sides until f holds.
func until(t *testing.T, what string, f func() bool, sides ...*side) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not for 20 s", what)
		}
		for _, s := range sides {
			s.ep.Progress()
		}
	}
}

func (s *side) queue(w Work) {
	s.t.Helper()
	if err := s.domain.QueueWork(&w); err != nil {
		s.t.Fatal(err)
	}
}

// TestDeferredKinds runs random work of every kind, whose ends count up the
// counters that other work waits for. The counters only grow, so what is reached
// in the end does not depend on the order, and is compared with a model.
func TestDeferredKinds(t *testing.T) {
	forEachPath(t, func(t *testing.T, b *bench) {
		b.info.Caps |= fi.Trigger
		b.domain.info.Caps |= fi.Trigger
		b.info.Tx.Caps |= fi.Trigger
		b.info.Rx.Caps |= fi.Trigger
		x, y := b.side(t), b.side(t)
		x.know(x, y)
		seeds := uint64(300)
		if testing.Short() {
			seeds = 30
		}
		mem := make([]byte, 1<<16)
		y.region(mem, 7, fi.RemoteRead|fi.RemoteWrite)
		for seed := range seeds {
			deferredKinds(t, rand.New(rand.NewPCG(seed, 4)), x, y, mem)
		}
	})
}

// growing is one piece of work, which adds 1 to a word of the peer or nothing.
type growing struct {
	on, done  int
	threshold uint64
	adds      uint64
	fired     bool
}

func deferredKinds(t *testing.T, r *rand.Rand, x, y *side, mem []byte) {
	clear(mem)
	counters := make([]*cq.Counter, 4)
	for i := range counters {
		var err error
		if counters[i], err = x.domain.OpenCounter(nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	one, local := []byte{1, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 1<<15)
	zero := make([]byte, 8)
	model := make([]growing, 20)
	for i := range model {
		g := &model[i]
		g.on, g.done, g.threshold = r.IntN(4), r.IntN(4), uint64(r.IntN(8))
		size := [...]int{8, 200, 9000, 1 << 14}[r.IntN(4)]
		w := Work{On: Threshold{counters[g.on], g.threshold}, Done: counters[g.done], EP: x.ep}
		remote := []fi.RMAIOVec{{Addr: 1 << 15, Len: uint64(size), Key: 7}}
		sum := AtomicArgs{Op: fi.OpSum, Datatype: fi.Uint64, Operand: iovOf(one), Dest: x.addr[y],
			Remote: []fi.RMAIOVec{{Len: 8, Key: 7}}}
		switch r.IntN(6) {
		case 0: // to itself: the receive is work as well
			w.Recv = &RecvArgs{IOV: iovOf(local[:size]), Src: fi.AddrUnspec, Tagged: true, Tag: uint64(i)}
			x.send(SendArgs{IOV: iovOf(mem[:size]), Dest: x.addr[x], Tagged: true, Tag: uint64(i)}, y)
		case 1:
			w.RMA = &RMAArgs{IOV: iovOf(local[:size]), Remote: remote, Dest: x.addr[y], Read: true}
		case 2:
			w.RMA = &RMAArgs{IOV: iovOf(local[:size]), Remote: remote, Dest: x.addr[y]}
		case 3:
			w.Atomic, g.adds = &sum, 1
		case 4:
			sum.Kind, sum.Result = atomics.Fetch, iovOf(make([]byte, 8))
			w.Atomic, g.adds = &sum, 1
		case 5:
			sum.Kind, sum.Op = atomics.Compare, fi.OpCSwap
			sum.Operand, sum.Compare, sum.Result = iovOf(zero), iovOf(zero), iovOf(make([]byte, 8))
			w.Atomic = &sum
		}
		x.queue(w)
	}
	value := make([]uint64, 4)
	for i := range value {
		value[i] = uint64(r.IntN(4))
		counters[i].Add(value[i])
	}
	adds := uint64(0)
	for again := true; again; {
		again = false
		for i := range model {
			if g := &model[i]; !g.fired && value[g.on] >= g.threshold {
				g.fired, again = true, true
				value[g.done]++
				adds += g.adds
			}
		}
	}
	reached := func() bool {
		for i, c := range counters {
			if count(c) != value[i] || errorsOf(c) != 0 {
				return false
			}
		}
		return true
	}
	until(t, "the counters reach the model's", reached, x, y)
	if got := uint64(mem[0]); got != adds {
		t.Fatalf("%d additions, want %d", got, adds)
	}
	if err := x.domain.FlushWork(nil); err != nil {
		t.Fatal(err)
	}
	for i := range model { // messages whose receives never came
		x.recv(RecvArgs{IOV: iovOf(local), Src: fi.AddrUnspec, Tagged: true, Tag: uint64(i), Context: 1}, y)
		if err := x.ep.Cancel(1); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]cq.Entry, 16)
	for {
		x.ep.Progress()
		n, err := x.cq.Read(buf)
		if errors.Is(err, fi.EAVAIL) {
			_, err = x.cq.ReadErr()
		}
		if n <= 0 && errors.Is(err, fi.EAGAIN) {
			break
		}
	}
	for _, c := range counters {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDeferredIsQuiet: deferred work leaves the endpoint's queue and counters
// alone, unless it asks for completions.
func TestDeferredIsQuiet(t *testing.T) {
	b := newBench(t, nil, triggerHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	on, done := x.counter(), x.counter()
	for i, flags := range []uint64{0, fi.Completion} {
		y.recv(RecvArgs{Src: fi.AddrUnspec, Tagged: true})
		x.queue(Work{On: Threshold{on, 1}, Done: done, EP: x.ep, Send: &SendArgs{Dest: x.addr[y], Tagged: true,
			Context: 5, Flags: flags}})
		on.Set(1)
		if count(done) != uint64(i+1) {
			t.Fatalf("flags %#x: counted %d", flags, count(done))
		}
		var got [2]cq.Entry
		n, _ := x.cq.Read(got[:])
		if max(n, 0) != i || n == 1 && got[0].Context != 5 {
			t.Fatalf("flags %#x: %d completions, %+v", flags, n, got[0])
		}
		settle(t, y, x)
		on.Set(0)
	}
}

// TestBlockedWork fills a peer's ring by triggered messages: what finds no room
// is sent later, in order, and what goes to another peer does not wait for it.
func TestBlockedWork(t *testing.T) {
	b := newBench(t, nil, triggerHints())
	x, y, z := b.side(t), b.side(t), b.side(t)
	x.know(y, z)
	on, done := x.counter(), x.counter()
	const messages = 5000
	for i := range messages {
		x.queue(Work{On: Threshold{on, uint64(messages - i)}, Done: done, EP: x.ep,
			Send: &SendArgs{Dest: x.addr[y], Tagged: true, Tag: uint64(messages - i)}})
	}
	x.queue(Work{On: Threshold{on, messages}, Done: done, EP: x.ep, Send: &SendArgs{Dest: x.addr[z], Tagged: true}})
	on.Add(messages)
	if n := count(done); n == 0 || n == messages+1 {
		t.Fatalf("%d messages went out at once: the ring was to be full", n)
	}
	z.recv(RecvArgs{Src: fi.AddrUnspec, Tagged: true})
	settle(t, z) // y makes no progress
	for i := range messages {
		y.recv(RecvArgs{Src: fi.AddrUnspec, Tagged: true, Ignore: ^uint64(0)}, x)
		if e, _, ok := settle(t, y, x); !ok || e.Tag != uint64(i+1) {
			t.Fatalf("message %d has tag %d", i, e.Tag)
		}
	}
	until(t, "all are counted", func() bool { return count(done) == messages+1 }, x, y)
}

// TestTriggeredInject: the data of a triggered operation with fi.Inject is that
// of the moment of the call.
func TestTriggeredInject(t *testing.T) {
	b := newBench(t, nil, triggerHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	on := x.counter()
	data, got := []byte("then"), make([]byte, 4)
	y.recv(RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec, Tagged: true})
	err := x.ep.Send(&SendArgs{IOV: iovOf(data), Dest: x.addr[y], Tagged: true, Flags: fi.Inject | fi.Trigger,
		On: Threshold{on, 1}})
	if err != nil {
		t.Fatal(err)
	}
	copy(data, "late")
	on.Add(1)
	settle(t, y, x)
	if !bytes.Equal(got, []byte("then")) {
		t.Fatalf("got %q", got)
	}
}

// TestTriggeredCancel cancels a triggered send and a triggered receive.
func TestTriggeredCancel(t *testing.T) {
	b := newBench(t, nil, triggerHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	on := x.counter()
	err := x.ep.Send(&SendArgs{Dest: x.addr[y], Tagged: true, Context: 3, Flags: fi.Trigger, On: Threshold{on, 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.ep.PostRecv(&RecvArgs{Src: fi.AddrUnspec, Tagged: true, Context: 4, Flags: fi.Trigger,
		On: Threshold{on, 1}}); err != nil {
		t.Fatal(err)
	}
	for _, context := range []uint64{3, 4} {
		if err := x.ep.Cancel(context); err != nil {
			t.Fatal(err)
		}
		if _, e, ok := settle(t, x); ok || e.Err != fi.ECANCELED || e.Context != context {
			t.Fatalf("context %d: %+v", context, e)
		}
	}
	on.Add(1)
	if n, ready := x.domain.work.Len(), x.domain.work.Ready(); n != 0 || ready {
		t.Fatalf("%d operations are left, ready %v", n, ready)
	}
}

// TestDeferredFailure: an operation that the peer refuses counts as an error.
func TestDeferredFailure(t *testing.T) {
	b := newBench(t, nil, triggerHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	on, done := x.counter(), x.counter()
	x.queue(Work{On: Threshold{on, 0}, Done: done, EP: x.ep, RMA: &RMAArgs{
		IOV: iovOf(make([]byte, 8)), Remote: []fi.RMAIOVec{{Len: 8, Key: 99}}, Dest: x.addr[y]}})
	until(t, "the error is counted", func() bool { return errorsOf(done) == 1 }, x, y)
	if _, e, ok := settle(t, x); ok || e.Err == fi.Success {
		t.Fatalf("completion %+v", e)
	}
}

// TestDeferredRefused: bad work is refused when it is queued.
func TestDeferredRefused(t *testing.T) {
	b, other := newBench(t, nil, triggerHints()), newBench(t, nil, triggerHints())
	x, o := b.side(t), other.side(t)
	x.know(x)
	c, foreign := x.counter(), o.counter()
	send := func() *SendArgs { return &SendArgs{Dest: x.addr[x], Tagged: true} }
	for _, tc := range []struct {
		what string
		w    Work
		want fi.Errno
	}{
		{"no counter", Work{EP: x.ep, Send: send()}, fi.EINVAL},
		{"nothing to do", Work{On: Threshold{c, 1}}, fi.EINVAL},
		{"no operation", Work{On: Threshold{c, 1}, EP: x.ep}, fi.EINVAL},
		{"a foreign counter", Work{On: Threshold{foreign, 1}, EP: x.ep, Send: send()}, fi.EDOMAIN},
		{"a foreign completion counter", Work{On: Threshold{c, 1}, Done: foreign, EP: x.ep, Send: send()}, fi.EDOMAIN},
		{"a foreign endpoint", Work{On: Threshold{c, 1}, EP: o.ep, Send: send()}, fi.EDOMAIN},
		{"a counter counted", Work{On: Threshold{c, 1}, Done: c, Counter: c}, fi.EINVAL},
		{"an unknown address", Work{On: Threshold{c, 1}, EP: x.ep, Send: &SendArgs{Dest: 77}}, fi.EINVAL},
		{"flags", Work{On: Threshold{c, 1}, EP: x.ep, Send: &SendArgs{Dest: x.addr[x], Flags: fi.Peek}}, fi.EBADFLAGS},
		{"multi-receive", Work{On: Threshold{c, 1}, EP: x.ep, Recv: &RecvArgs{Flags: fi.MultiRecv}}, fi.ENOSYS},
		{"too long to inject", Work{On: Threshold{c, 1}, EP: x.ep, Send: &SendArgs{IOV: iovOf(make([]byte, 1<<20)),
			Dest: x.addr[x], Flags: fi.Inject}}, fi.EINVAL},
	} {
		wantErrno(t, x.domain.QueueWork(&tc.w), tc.want, tc.what)
	}
	wantErrno(t, x.domain.CancelWork(1), fi.ENOENT, "cancel what is not queued")
	wantErrno(t, x.domain.FlushWork(foreign), fi.EDOMAIN, "flush of a foreign counter")
	s := send()
	s.Flags = fi.Trigger
	wantErrno(t, x.ep.Send(s), fi.EINVAL, "a triggered send without counter")
	x.queue(Work{On: Threshold{c, 1}, EP: x.ep, Send: send()})
	wantErrno(t, c.Close(), fi.EBUSY, "close of a counter that work waits for")
	if err := x.domain.FlushWork(c); err != nil {
		t.Fatal(err)
	}
}

// TestCloseWithWork closes an endpoint that has work in every state.
func TestCloseWithWork(t *testing.T) {
	b := newBench(t, nil, triggerHints())
	x, y, z := b.side(t), b.side(t), b.side(t)
	x.know(y)
	z.know(y)
	on, done := z.counter(), z.counter()
	for i := range 2000 { // waiting, blocked and posted
		x.queue(Work{On: Threshold{on, uint64(i / 1500)}, Done: done, EP: x.ep, Send: &SendArgs{Dest: x.addr[y],
			Tagged: true}})
	}
	x.queue(Work{On: Threshold{on, 0}, Done: done, EP: x.ep, Recv: &RecvArgs{Src: fi.AddrUnspec}})
	x.close()
	if n := b.domain.work.Len(); n != 0 {
		t.Fatalf("%d operations are left", n)
	}
	z.queue(Work{On: Threshold{on, 5}, Done: on, EP: z.ep, RMA: &RMAArgs{Dest: z.addr[y]}})
	on.Add(5)
	until(t, "other work goes on", func() bool { return count(on) == 6 }, y, z)
}

// TestWorkOfManyThreads queues work and counts in several threads at once.
func TestWorkOfManyThreads(t *testing.T) {
	b := newBench(t, nil, triggerHints())
	x, y := b.side(t), b.side(t)
	x.know(y)
	on, done, second := x.counter(), x.counter(), x.counter()
	const threads, each = 4, 500
	var wg sync.WaitGroup
	for n := range threads {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 5))
			for range each {
				w := Work{On: Threshold{on, r.Uint64N(threads*each + 1)}, Done: done, EP: x.ep,
					Send: &SendArgs{Dest: x.addr[y]}}
				if err := x.domain.QueueWork(&w); err != nil {
					t.Error(err)
				}
				w = Work{On: Threshold{done, r.Uint64N(threads*each + 1)}, Counter: second, Value: 1, Add: true}
				if err := x.domain.QueueWork(&w); err != nil {
					t.Error(err)
				}
				on.Add(1)
				x.ep.Progress()
			}
		})
	}
	received := 0
	wg.Go(func() {
		buf := make([]cq.Entry, 64)
		posted := 0
		for end := time.Now().Add(60 * time.Second); received < threads*each && time.Now().Before(end); {
			if posted < received+64 && y.ep.PostRecv(&RecvArgs{Src: fi.AddrUnspec}) == nil {
				posted++
			}
			y.ep.Progress()
			if n, _ := y.cq.Read(buf); n > 0 {
				received += n
			}
			if count(on) == threads*each {
				x.ep.Progress()
			}
		}
	})
	wg.Wait()
	if received != threads*each || count(done) != threads*each || count(second) != threads*each {
		t.Fatalf("%d received, %d and %d counted, want %d", received, count(done), count(second), threads*each)
	}
}
