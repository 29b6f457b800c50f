package verbs

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv/null"
)

// chainBench is a bench with memory here and there, as if the device knew it.
type chainBench struct {
	*bench
	local []hw.Segment
	key   hw.RemoteKey
	ended int // puts
	fault error
}

func newChainBench(t testing.TB) *chainBench {
	b := &chainBench{bench: memoryBench(t, false)}
	b.d.attr.MaxSGE, b.d.info.MaxMessage = ibv.MaxSGE, 1<<20
	b.e.ready.Store(true)
	d, _ := nullDomain(t, false)
	r := hw.Region{Addr: named(1 << 20), Len: 4096, Access: hw.RemoteWrite}
	m, err := d.Register(r)
	if err != nil {
		t.Fatal(err)
	}
	if b.key, err = unpackKey(m.(*Memory).PackKey(nil)); err != nil {
		t.Fatal(err)
	}
	b.local = []hw.Segment{{Addr: r.Addr, Len: 64, Memory: m}}
	return b
}

// putOne posts a put after which more follow, or not. False: there is no room.
func (b *chainBench) putOne(t *testing.T, more bool) bool {
	t.Helper()
	c := &hw.Completion{More: more, Func: func(c *hw.Completion) {
		b.ended++
		b.fault = errors.Join(b.fault, c.Err())
	}}
	c.Expect(1)
	_, err := b.e.PutZcopy(b.local, 0, b.key, c)
	if err != nil && !errors.Is(err, hw.ErrNoResource) {
		t.Fatal(err)
	}
	return err == nil
}

// device has the stand-in end what it has taken, as far as that is signaled, and makes progress.
func (b *chainBench) device() {
	q := b.e.mem.started()
	for pos := q.Head.Load(); pos < q.Posted; pos++ {
		if q.op(pos).Flags&ibv.Signaled != 0 {
			b.completes(pos)
		}
	}
	b.Progress(64)
}

// TestChain counts what a device gets for puts that follow each other, beside as many single ones: as many work
// requests, but a doorbell for 32 of them, and a completion for a quarter of the queue.
func TestChain(t *testing.T) {
	const puts = 512
	for _, c := range []struct {
		chained                   bool
		requests, bells, signaled uint64 // at most
	}{{false, puts, puts, puts}, {true, puts + 2, puts/32 + 16, puts/16 + 2}} {
		b := newChainBench(t)
		requests, bells, signaled := null.Taken(), null.Doorbells(), null.Signaled()
		for n := 0; n < puts; {
			if b.putOne(t, c.chained && n < puts-1) {
				n++
			} else {
				b.device()
			}
		}
		for range 4 {
			b.device()
		}
		requests, bells, signaled = null.Taken()-requests, null.Doorbells()-bells, null.Signaled()-signaled
		t.Logf("chained %v: %d work requests, %d doorbells, %d completions", c.chained, requests, bells, signaled)
		if b.ended != puts || b.fault != nil {
			t.Errorf("chained %v: %d puts have ended, %v", c.chained, b.ended, b.fault)
		}
		if requests < puts || requests > c.requests || bells > c.bells || signaled > c.signaled {
			t.Errorf("chained %v: more than %d, %d, %d", c.chained, c.requests, c.bells, c.signaled)
		}
	}
}

// TestUncork: what was kept for a next one that does not come goes and ends.
func TestUncork(t *testing.T) {
	for _, puts := range []int{1, 2, 20} {
		b := newChainBench(t)
		for range puts {
			if !b.putOne(t, true) {
				t.Fatal("no room")
			}
		}
		if q := b.e.mem.started(); q.Posted != 1 {
			t.Errorf("%d of %d puts are posted: the first, as the device has nothing else", q.Posted, puts)
		}
		b.e.Uncork()
		for range 3 {
			b.device()
		}
		if b.ended != puts {
			t.Errorf("%d of %d puts have ended", b.ended, puts)
		}
	}
}

// TestUncorkWakes: a thread that sleeps learns that what it waits for has to be signaled, and is not woken for nothing.
func TestUncorkWakes(t *testing.T) {
	for _, c := range []struct {
		puts int
		more bool
		want bool
	}{{20, true, true}, {20, false, false}} {
		b := newChainBench(t)
		if err := b.bell.Enable(); err != nil {
			t.Fatal(err)
		}
		for n := range c.puts {
			if !b.putOne(t, c.more || n < c.puts-1) {
				t.Fatal("no room")
			}
		}
		b.bell.Drain() // as before a thread sleeps
		b.e.Uncork()
		fds := []unix.PollFd{{Fd: int32(b.bell.FD()), Events: unix.POLLIN}}
		rung, err := unix.Poll(fds, 0)
		if err != nil || (rung == 1) != c.want {
			t.Errorf("%+v: the bell has rung: %d, %v", c, rung, err)
		}
	}
}

// TestFlushMemory: a flush of memory reads behind what was written, once, and does not wait for messages.
func TestFlushMemory(t *testing.T) {
	b := newChainBench(t)
	b.e.msg.Claim(0) // a message that does not end
	flush := func(scope hw.FlushScope) (hw.Status, *bool) {
		ended := new(bool)
		c := &hw.Completion{Func: func(*hw.Completion) { *ended = true }}
		c.Expect(1)
		status, err := b.e.Flush(scope, c)
		if err != nil {
			t.Fatal(err)
		}
		return status, ended
	}
	if status, _ := flush(hw.FlushMemory); status != hw.Done {
		t.Error("a flush of nothing is under way")
	}
	b.putOne(t, true)
	before := null.Taken()
	status, ended := flush(hw.FlushMemory)
	for range 3 {
		b.device()
	}
	if status != hw.InProgress || !*ended || null.LastRequest(0).Opcode != ibv.OpRead || null.Taken() != before+1 {
		t.Errorf("status %d, ended %v, %d requests", status, *ended, null.Taken()-before)
	}
	before = null.Taken()
	if status, _ = flush(hw.FlushMemory); status != hw.Done || null.Taken() != before {
		t.Errorf("again: status %d, %d requests", status, null.Taken()-before)
	}
	if status, ended = flush(hw.FlushRemote); status != hw.InProgress || *ended {
		t.Error("a flush does not wait for messages")
	}
}

// BenchmarkPutCost is the cost of a put of 8 bytes that others follow, as the elements of a list do, to a device that
// does nothing: until it has it (ns/post, ns/best of the fastest 48), and until its end is taken in.
func BenchmarkPutCost(t *testing.B) {
	const batch = 48
	b := newChainBench(t)
	b.local[0].Len = 8
	var ends [batch]hw.Completion
	before := null.Doorbells()
	posting, best, n := time.Duration(0), time.Hour, 0
	t.ReportAllocs()
	for t.ResetTimer(); n < t.N; n += batch {
		start := time.Now()
		for i := range ends {
			c := &ends[i]
			c.Expect(1)
			c.More = i < batch-1
			if _, err := b.e.PutZcopy(b.local, uint64(i*16), b.key, c); err != nil {
				t.Fatal(err)
			}
		}
		took := time.Since(start)
		posting, best = posting+took, min(best, took)
		for b.e.mem.queue.Head.Load() != b.e.mem.queue.Tail.Load() {
			b.device()
		}
	}
	t.ReportMetric(float64(posting)/float64(n), "ns/post")
	t.ReportMetric(float64(best)/batch, "ns/best")
	t.ReportMetric(float64(null.Doorbells()-before)/float64(n), "doorbells/op")
}
