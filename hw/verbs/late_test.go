package verbs

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/internal/drive"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv/null"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
	"github.com/weft-fabric/weft/internal/mem"
)

// ticks are of the stand-in device's clock.
func ticks(d time.Duration) uint64 { return uint64(d.Milliseconds()) * null.ClockKHz }

// memoryBench is a bench with a connection for one-sided operations, whose completions have stamps or not.
func memoryBench(t testing.TB, stamps bool) *bench {
	t.Helper()
	const depth = 64
	b := newBench(t)
	b.d.ctx = null.Device(true)
	b.d.attr.Clock = b.d.ctx.Clock()
	cq := null.CQ(1)
	if stamps {
		var err error
		if cq, err = b.d.ctx.NewCQ(depth, nil, true); err != nil || !cq.Stamped {
			t.Fatalf("stamped %v: %v", cq.Stamped, err)
		}
	}
	b.e.msg.cq.cq, b.sendCQs[0].cq = cq, cq
	if err := b.rx.transport.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.rx.openTransport(); err != nil { // of the new queue
		t.Fatal(err)
	}
	b.rx.transport.SetPeer(0, b.e.c)
	memory, err := mem.Map(transport.BlockBytes(depth), 0)
	if err != nil {
		t.Fatal(err)
	}
	q := &b.e.mem.queue
	q.lay(memory, depth, 0)
	q.ID = queueID(classMemory, 0)
	q.reports(b.e.msg.cq)
	q.use(null.QP())
	b.e.mem.state.Store(memoryReady)
	q.start()
	return b
}

// put posts an operation that c counts, and returns the position.
func (b *bench) put(t *testing.T, c *hw.Completion) uint64 {
	t.Helper()
	op, en, pos, err := b.e.place(&transfer{q: &b.e.mem.queue}, ibv.OpWrite)
	if err != nil {
		t.Fatal(err)
	}
	op.Pieces, en.comp = 0, c
	b.e.mem.queue.signal(pos)
	b.e.mem.queue.publish(pos)
	return pos
}

// completes has the operation at a position end.
func (b *bench) completes(pos uint64) {
	null.Complete(1, ibv.Done{ID: queueID(classMemory, 0) | pos})
}

// TestLate has completions lie in their queue.
func TestLate(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		plain    bool   // without stamps
		at, then uint64 // the clock when it ended, and when it is dealt with
		want     time.Duration
	}{
		"5 ms":           {at: 1000, then: 1000 + ticks(5*ms), want: 5 * ms},
		"at once":        {at: 1000, then: 1000, want: 0},
		"without stamps": {plain: true, at: 1000, then: 1000 + ticks(5*ms)},
		"begins anew":    {at: null.ClockMask - 9, then: ticks(7*ms) - 10, want: 7 * ms},
		"of later":       {at: 1000 + ticks(5*ms), then: 1000},
		"too long ago":   {at: 1000, then: 1000 + ticks(2*time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			b := memoryBench(t, !c.plain)
			n := 0
			comp := hw.Completion{Func: func(*hw.Completion) { n++ }}
			comp.Expect(1)
			pos := b.put(t, &comp)
			null.SetClock(c.at)
			b.completes(pos)
			null.SetClock(c.then)
			start := time.Now()
			b.Progress(8)
			if n != 1 {
				t.Fatalf("completed %d times", n)
			}
			passed := time.Since(start) // that between reading the clock and saying counts
			if unknown := c.want == 0 && c.at != c.then; unknown && comp.Late != 0 || comp.Late < c.want ||
				comp.Late > c.want+passed {
				t.Errorf("%v late, want %v and %v at most", comp.Late, c.want, passed)
			}
			comp.Expect(1)
			if comp.Late != 0 {
				t.Errorf("%v late before it has ended", comp.Late)
			}
		})
	}
}

// TestLateStaged has completions that C has taken lie there.
func TestLateStaged(t *testing.T) {
	b := memoryBench(t, true)
	var comps [3]hw.Completion
	reads := null.ClockReads()
	for n := range comps {
		comps[n].Expect(1)
		null.SetClock(uint64(1+n) * ticks(time.Millisecond))
		b.completes(b.put(t, &comps[n]))
	}
	for range 8 {
		drive.Next(b.HotTransport())
	}
	if b.rx.transport.Staged() != 3 || null.ClockReads() != reads {
		t.Fatalf("%d staged, the clock was read %d times", b.rx.transport.Staged(), null.ClockReads()-reads)
	}
	null.SetClock(ticks(5 * time.Millisecond))
	b.Progress(8)
	for n := range comps {
		if want := time.Duration(4-n) * time.Millisecond; comps[n].Late < want {
			t.Errorf("operation %d: %v late, want %v", n, comps[n].Late, want)
		}
	}
	if n := null.ClockReads() - reads; n != 1 {
		t.Errorf("the clock was read %d times for a batch", n)
	}
}

// TestLateUnasked reads no clock for what nothing waits for, and none for messages.
func TestLateUnasked(t *testing.T) {
	b := memoryBench(t, true)
	reads := null.ClockReads()
	null.SetClock(1000)
	b.completes(b.put(t, nil))
	pos, ok := b.e.msg.postNothing(0, true)
	if !ok {
		t.Fatal("no place")
	}
	null.Complete(1, ibv.Done{ID: queueID(classMessage, 0) | pos})
	b.Progress(8)
	if !b.e.mem.queue.quiet() || !b.e.msg.quiet() || null.ClockReads() != reads {
		t.Errorf("%s, %s, the clock was read %d times", b.e.mem.queue.state(), b.e.msg.state(), null.ClockReads()-reads)
	}
}

// TestLateNoClock: stamps say nothing where the clock cannot be read, or counts too few bits.
func TestLateNoClock(t *testing.T) {
	if c := null.Device(true).Clock(); c != (ibv.Clock{Mask: null.ClockMask, KHz: null.ClockKHz}) {
		t.Errorf("%+v", c)
	}
	x := null.Device(false)
	if c := x.Clock(); c != (ibv.Clock{}) {
		t.Errorf("a clock that cannot be read: %+v", c)
	}
	if _, ok := x.Now(); ok {
		t.Error("it can be read")
	}
	// No clock; one that wraps within a millisecond.
	for _, c := range []ibv.Clock{{}, {Mask: 1<<20 - 1, KHz: 1 << 30}} {
		if d, ok := between(c, 10, 5); ok {
			t.Errorf("%+v: %v", c, d)
		}
	}
}
