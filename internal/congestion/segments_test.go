package congestion

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

func newFlow(t *testing.T, algorithm Algorithm, seg SegmentConfig) *Flow {
	t.Helper()
	cfg := seg.PathConfig(0)
	cfg.Algorithm = algorithm
	path, err := NewPath(cfg, rand.NewPCG(1, 2), nil)
	if err != nil {
		t.Fatal(err)
	}
	flow, err := NewFlow(seg, path)
	if err != nil {
		t.Fatal(err)
	}
	return flow
}

// posted is a segment under way.
type posted struct {
	op  *Operation
	seg Segment
}

func take(l *Flow, now Time) (all []posted) {
	for op, seg, ok := l.Next(now); ok; op, seg, ok = l.Next(now) {
		all = append(all, posted{op, seg})
	}
	return all
}

// TestFlowWindow posts up to the window, and the rest as completions come.
func TestFlowWindow(t *testing.T) {
	const total = 10<<20 + 12345
	l := newFlow(t, Fixed, DefaultSegmentConfig())
	var op Operation
	if l.Start(&op, total) {
		t.Fatal("10 MiB are completed at once")
	}
	now := Time(1)
	flight := take(l, now)
	if len(flight) != 4 {
		t.Fatalf("%d segments in a window of 4", len(flight))
	}
	covered := make(map[int64]int64)
	for completed := false; !completed; {
		if len(flight) == 0 {
			t.Fatal("nothing in flight and not completed")
		}
		now += 1000
		p := flight[len(flight)/2] // completions come in no order
		flight = append(flight[:len(flight)/2], flight[len(flight)/2+1:]...)
		covered[p.seg.Offset] = p.seg.Length
		completed = l.Done(now, p.op, p.seg, 0)
		flight = append(flight, take(l, now)...)
		if l.Path().Inflight() > 4<<20+1<<20 {
			t.Fatalf("%d bytes in flight", l.Path().Inflight())
		}
	}
	end := int64(0)
	for end < total {
		n := covered[end]
		if n <= 0 || n > 1<<20 {
			t.Fatalf("a segment of %d bytes at %d", n, end)
		}
		end += n
	}
	if end != total || op.Done() != total || op.Err() != nil || len(flight) != 0 {
		t.Errorf("ends at %d, done %d, %v, %d in flight", end, op.Done(), op.Err(), len(flight))
	}
	if _, ok := l.Wake(); ok {
		t.Error("an idle flow wants to be woken")
	}
}

// TestFlowTurns: operations take turns, so that a long one does not starve
// others, and one of no bytes is completed at once.
func TestFlowTurns(t *testing.T) {
	l := newFlow(t, Fixed, DefaultSegmentConfig())
	var long, short, none Operation
	l.Start(&long, 1<<30)
	l.Start(&short, 1<<20)
	if !l.Start(&none, 0) || !none.Ended() {
		t.Error("an operation of no bytes is not completed")
	}
	flight := take(l, 1)
	for i := range 100 {
		if len(flight) == 0 {
			t.Fatal("stuck")
		}
		p := flight[0]
		flight = flight[1:]
		if l.Done(Time(1000*i+1000), p.op, p.seg, 0) {
			if p.op != &short || i > 12 {
				t.Fatalf("after %d completions %v completed", i, p.op.total)
			}
			return
		}
		flight = append(flight, take(l, Time(1000*i+1000))...)
	}
	t.Error("the short operation does not complete beside the long one")
}

// TestFlowUnpost: what the interface refused comes again, and first.
func TestFlowUnpost(t *testing.T) {
	l := newFlow(t, Fixed, DefaultSegmentConfig())
	var one, two Operation
	l.Start(&one, 300<<10) // one segment
	l.Start(&two, 1<<20)
	op, seg, _ := l.Next(1)
	l.Unpost(op, seg)
	if l.Path().Inflight() != 0 {
		t.Errorf("%d bytes in flight", l.Path().Inflight())
	}
	again, seg2, ok := l.Next(2)
	if !ok || again != op || seg2.Offset != seg.Offset || seg2.Length != seg.Length {
		t.Errorf("%+v, then %+v", seg, seg2)
	}
	if next, _, _ := l.Next(2); next != &two {
		t.Error("the other operation has lost its turn")
	}
}

// TestFlowFail: a failed segment stops the operation, which is completed when
// the others have completed, with the first error.
func TestFlowFail(t *testing.T) {
	l := newFlow(t, Fixed, DefaultSegmentConfig())
	var op, other Operation
	l.Start(&op, 1<<30)
	flight := take(l, 1)
	first := errors.New("first")
	if l.Fail(&op, flight[1].seg, first) || l.Fail(&op, flight[0].seg, errors.New("second")) {
		t.Error("completed with segments in flight")
	}
	if more := take(l, 2); len(more) != 0 {
		t.Errorf("%d segments of a failed operation", len(more))
	}
	l.Start(&other, 100)
	if more := take(l, 2); len(more) != 1 || more[0].op != &other {
		t.Errorf("an operation behind a failed one is stuck")
	}
	if l.Done(3, &op, flight[2].seg, 0) || !l.Done(4, &op, flight[3].seg, 0) {
		t.Error("not completed with its last completion")
	}
	if !errors.Is(op.Err(), first) || l.Path().Inflight() != 100 {
		t.Errorf("%v, %d bytes in flight", op.Err(), l.Path().Inflight())
	}
}

// TestSegmentSize follows the window within its bounds.
func TestSegmentSize(t *testing.T) {
	l := newFlow(t, AIMD, DefaultSegmentConfig())
	if l.SegmentSize() != 256<<10 {
		t.Errorf("at first %d", l.SegmentSize())
	}
	for i := range 10 {
		l.path.control.OnLoss(Time(i+1)*1000, &Loss{Bytes: 1, Sent: Time(i+1) * 1000})
	}
	if l.SegmentSize() != 128<<10 {
		t.Errorf("with a window of two segments %d", l.SegmentSize())
	}
	l.path.control.OnTimeout(1e6)
	if l.SegmentSize() != 64<<10 {
		t.Errorf("with a window of one %d", l.SegmentSize())
	}
	for i := range 100 {
		l.path.control.OnAck(Time(2e6+i), &Sample{Bytes: 1 << 20, Inflight: 1 << 30})
	}
	if size := l.SegmentSize(); size <= 256<<10 || size > 1<<20 || size%4096 != 0 {
		t.Errorf("with a window of %d: %d", l.path.control.Window(), size)
	}
	if size := l.segmentSize(100e3); size < 200e3 || size%100e3 != 0 {
		t.Errorf("of grains of 100,000 bytes %d", size)
	}
	if size := l.segmentSize(2 << 20); size != l.SegmentSize() {
		t.Errorf("of grains above what fits %d", size)
	}
	for _, bad := range []SegmentConfig{{Size: 1, Min: 2, Max: 3}, {Size: 4, Min: 2, Max: 3}, {},
		{Size: 1, Min: 1, Max: 1 << 31}} {
		if _, err := NewFlow(bad, l.path); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// TestSizes: on an idle link of unknown rate segments of all sizes look alike
// once the sizes were seen, and a queue shows in each.
func TestSizes(t *testing.T) {
	cfg := DefaultSegmentConfig().PathConfig(0)
	e := NewEstimator(&cfg)
	cost := func(size int64) time.Duration { return 10*us + airtime(size, 1e9) }
	now := Time(0)
	var idle time.Duration
	for i := range 100 {
		size := int64(64<<10) << (i % 5)
		now += 1e6
		got := e.Add(now, cost(size), size)
		if i == 0 {
			idle = got
		}
		if got != idle {
			t.Fatalf("%d bytes on an idle link: %v, and %v before", size, got, idle)
		}
	}
	for i := range 5 {
		size := int64(64<<10) << i
		if got := e.Add(now, cost(size)+500*us, size); got != idle+500*us {
			t.Errorf("%d bytes behind a queue of 500 us: %v", size, got-idle)
		}
	}
	e.Forget()
	if got := e.Add(now, time.Second, 1<<20); got != time.Second {
		t.Errorf("after Forget %v", got)
	}
}

// TestFlowFloor posts up to the floor when the window has gone down to nothing,
// and whole segments.
func TestFlowFloor(t *testing.T) {
	cfg := SegmentConfig{Size: 1000, Min: 100, Max: 5000, Floor: 4000}
	l := newFlow(t, AIMD, cfg)
	var op Operation
	l.Start(&op, 1<<20)
	for now := Time(1); now < 10; now++ {
		l.Path().OnTimeout(now)
	}
	if w := l.Path().Control().Window(); w >= cfg.Floor {
		t.Fatalf("window of %d after timeouts", w)
	}
	flight := take(l, 100)
	if sum := l.Path().Inflight(); sum != cfg.Floor || len(flight) != 4 {
		t.Errorf("%d bytes in %d segments in flight", sum, len(flight))
	}
	if _, later := l.Wake(); later {
		t.Error("waits for time, not for a completion")
	}
	l.Done(200, flight[0].op, flight[0].seg, 0)
	if at, later := l.Wake(); !later || at > 200 || len(take(l, 200)) != 1 {
		t.Error("a completion lets no segment out")
	}
	if (SegmentConfig{Size: 1, Min: 1, Max: 1, Floor: -1}).Validate() == nil {
		t.Error("a negative floor is valid")
	}
}

// TestSegmentTook takes off how late a completion was notified, and leaves the window's sample something.
func TestSegmentTook(t *testing.T) {
	l := newFlow(t, Fixed, DefaultSegmentConfig())
	var op Operation
	l.Start(&op, 1<<20)
	sent := Time(1000)
	flight := take(l, sent)
	notified := sent.Add(7 * time.Millisecond)
	for _, c := range []struct{ late, want time.Duration }{
		{0, 0}, {-time.Second, 0}, {5 * time.Millisecond, 2 * time.Millisecond}, {7 * time.Millisecond, 1},
		{time.Hour, 1},
	} {
		if got := flight[0].seg.Took(notified, c.late); got != c.want {
			t.Errorf("notified %v late: it took %v, want %v", c.late, got, c.want)
		}
	}
	for _, c := range []struct{ late, want time.Duration }{{5 * time.Millisecond, 2 * time.Millisecond},
		{0, 7 * time.Millisecond}} {
		l := newFlow(t, Fixed, DefaultSegmentConfig())
		l.Start(&op, 1<<20)
		p := take(l, sent)[0]
		l.Done(notified, p.op, p.seg, p.seg.Took(notified, c.late))
		if got := l.Path().RTT().SRTT(); got != c.want {
			t.Errorf("notified %v late: the estimator has %v, want %v", c.late, got, c.want)
		}
	}
}
