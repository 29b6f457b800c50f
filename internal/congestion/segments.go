package congestion

import (
	"fmt"
	"time"
)

// SegmentConfig is how long one-sided operations are cut.
type SegmentConfig struct {
	// Size is a segment's bytes while the window is as at the start. It grows
	// and shrinks with the window between Min and Max: a narrow window is
	// steered by small segments, a wide one carries large ones.
	// 1 <= Min <= Size <= Max <= 2^30. Min = Max gives a fixed size.
	Size, Min, Max int64

	// Floor is how many bytes may be in flight in any case, whatever window and
	// pace say: 0 to 2^40. It is for transports that hold packets back by
	// themselves, where a window of segments that falls because the hosts were
	// busy would only leave the link idle.
	Floor int64
}

// DefaultSegmentConfig returns segments of 256 KiB, from 64 KiB to 1 MiB.
func DefaultSegmentConfig() SegmentConfig {
	return SegmentConfig{Size: 256 << 10, Min: 64 << 10, Max: 1 << 20}
}

// PathConfig returns the configuration of a path for such segments: 4 of them
// at the start, 128 at most, timed by completions. linkRate is the interface's
// speed in bytes per second, 0 if unknown.
func (c SegmentConfig) PathConfig(linkRate int64) Config {
	cfg := DefaultConfig(c.Size)
	cfg.Initial, cfg.Max, cfg.Rate = 4, 128, linkRate
	return cfg
}

// Validate returns an error if the sizes are out of order or range.
func (c SegmentConfig) Validate() error {
	if c.Floor < 0 || c.Floor > 1<<40 {
		return fmt.Errorf("floor of %d bytes in flight is not between 0 and %d", c.Floor, int64(1)<<40)
	}
	if c.Min < 1 || c.Min > c.Size || c.Size > c.Max || c.Max > 1<<30 {
		return fmt.Errorf("segment sizes of least %d, usual %d, most %d are not in order between 1 and %d", c.Min,
			c.Size, c.Max, 1<<30)
	}
	return nil
}

// Segment is a part of an operation, which the caller keeps with the request
// that carries it until that completes. It holds no pointer.
type Segment struct {
	// Offset and Length say which bytes of the operation.
	Offset, Length int64

	// State belongs to the segment's own RTT sample.
	State PacketState
}

// Took is a segment's round-trip time, for [Flow.Done], if its completion came at now and it had ended late
// before. 0, which is not known, without late.
func (s *Segment) Took(now Time, late time.Duration) time.Duration {
	if late <= 0 {
		return 0
	}
	return max(now.Sub(s.State.Sent)-late, 1)
}

// Operation is a put, get or rendezvous read of any length. The zero value is
// one that was not started. It belongs to its flow until it is ended.
type Operation struct {
	// Owner is the caller's, to find what a segment belongs to.
	Owner any

	// Grain is the caller's: segments are multiples of so many bytes where the
	// sizes allow it. 0: of 4 KiB.
	Grain int64

	total, offset, done int64
	inflight            int
	err                 error
	listed              bool
	prev, next          *Operation
}

// Err returns the first error of a segment, nil without.
func (o *Operation) Err() error { return o.err }

// Done returns how many bytes are done.
func (o *Operation) Done() int64 { return o.done }

// Ended reports whether nothing is left to post or in flight: everything is done,
// or a segment failed.
func (o *Operation) Ended() bool {
	return o.inflight == 0 && (o.err != nil || o.offset == o.total)
}

// Flow cuts the operations to one peer into segments and releases them as the
// path's window and pace allow, one of each operation in turn. It posts nothing:
//
//	for op, seg, ok := flow.Next(now); ok; op, seg, ok = flow.Next(now) { post }
//
// is to be done after Start, after each completion, and at [Flow.Wake]. A
// completion is reported by Done or Fail and measures its own segment, whatever the
// order of completions. The operation is complete when these return true.
//
// A flow is not safe for concurrent use and allocates nothing.
type Flow struct {
	cfg   SegmentConfig
	path  *Path
	first int64      // the window at the start
	head  *Operation // a ring of operations with something left to post
}

// NewFlow returns a flow over path. It returns an error if cfg is not valid.
func NewFlow(cfg SegmentConfig, path *Path) (*Flow, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Flow{cfg: cfg, path: path, first: path.Control().Window()}, nil
}

// Path returns the flow's path.
func (f *Flow) Path() *Path { return f.path }

// Start takes in an operation of total bytes and reports whether it is ended
// already, which one of no bytes is. op must not be in a flow.
func (f *Flow) Start(op *Operation, total int64) (ended bool) {
	*op = Operation{Owner: op.Owner, Grain: op.Grain, total: max(total, 0)}
	if op.total == 0 {
		return true
	}
	f.enlist(op)
	return false
}

// enlist puts an operation at the end of the ring.
func (f *Flow) enlist(op *Operation) {
	op.listed = true
	if f.head == nil {
		op.prev, op.next = op, op
		f.head = op
		return
	}
	op.prev, op.next = f.head.prev, f.head
	op.prev.next, f.head.prev = op, op
}

// delist takes an operation out of the ring.
func (f *Flow) delist(op *Operation) {
	if !op.listed {
		return
	}
	if f.head == op {
		f.head = op.next
	}
	if f.head == op {
		f.head = nil
	}
	op.prev.next, op.next.prev = op.next, op.prev
	op.prev, op.next, op.listed = nil, nil, false
}

// Window returns how many bytes may be in flight.
func (f *Flow) Window() int64 { return max(f.path.Control().Window(), f.cfg.Floor) }

// may reports whether a segment may be posted now.
func (f *Flow) may(now Time) bool { return f.path.Inflight() < f.cfg.Floor || f.path.May(now) }

// SegmentSize returns the size of the next segment of an operation without a grain.
func (f *Flow) SegmentSize() int64 { return f.segmentSize(0) }

func (f *Flow) segmentSize(grain int64) int64 {
	const page = 4 << 10
	if grain <= 0 {
		grain = page
	}
	size := int64(float64(f.cfg.Size) * float64(f.Window()) / float64(f.first))
	size = min(max(size, f.cfg.Min), f.cfg.Max)
	if even := size - size%grain; even >= f.cfg.Min {
		return even
	}
	return size
}

// Next returns a segment to post now, or false if nothing is left to post or the
// path is full. If the post is refused, Unpost must follow at once.
func (f *Flow) Next(now Time) (*Operation, Segment, bool) {
	op := f.head
	if op == nil {
		if f.path.Open() {
			f.path.Limited()
		}
		return nil, Segment{}, false
	}
	if !f.may(now) {
		return nil, Segment{}, false
	}
	seg := Segment{Offset: op.offset, Length: f.segmentSize(op.Grain)}
	// A rest of less than a quarter more goes with the last segment.
	if left := op.total - op.offset; left <= seg.Length+seg.Length/4 && left <= f.cfg.Max {
		seg.Length = left
	}
	seg.State = f.path.OnSend(now, seg.Length)
	op.offset += seg.Length
	op.inflight++
	f.head = op.next
	if op.offset == op.total {
		f.delist(op)
	}
	return op, seg, true
}

// Wake returns when Next may have a segment without a completion before: when
// the pace allows it. It returns false if only a completion or Start can change
// anything.
func (f *Flow) Wake() (Time, bool) {
	if f.head == nil || f.path.Inflight() >= f.cfg.Floor && !f.path.Open() {
		return 0, false
	}
	return f.path.Next(), true
}

// Unpost takes back the segment that Next just returned, because the interface
// had no room for it. It will come again.
func (f *Flow) Unpost(op *Operation, seg Segment) {
	f.path.Discard(seg.Length)
	op.inflight--
	op.offset = seg.Offset
	f.delist(op)
	if op.err != nil {
		return
	}
	f.enlist(op)
	f.head = op // its turn again
}

// Trim shortens the segment that Next just returned to its first n bytes,
// because the interface takes no more in one piece. The rest comes with the next
// one. n is positive and below seg.Length.
func (f *Flow) Trim(op *Operation, seg *Segment, n int64) {
	f.path.Discard(seg.Length - n)
	seg.Length = n
	op.offset = seg.Offset + n
	if op.err == nil && !op.listed {
		f.enlist(op)
	}
}

// Done reports that a segment of op completed. rtt is what it took by the
// interface's time stamps, or 0: then now counts. It returns whether op is
// ended.
func (f *Flow) Done(now Time, op *Operation, seg Segment, rtt time.Duration) (ended bool) {
	if rtt <= 0 {
		rtt = now.Sub(seg.State.Sent)
	}
	f.path.OnAck(now, &seg.State, seg.Length, false)
	f.path.EndAck(now, rtt)
	op.inflight--
	op.done += seg.Length
	return op.Ended()
}

// Fail reports that a segment of op failed. Nothing more of op is posted; it is
// ended, with the first error, when what is in flight has completed. An
// error says nothing about congestion.
func (f *Flow) Fail(op *Operation, seg Segment, err error) (ended bool) {
	f.path.Discard(seg.Length)
	op.inflight--
	return f.Abort(op, err)
}

// Abort stops an operation: nothing more of it is posted. It returns whether it
// is ended; if not, what is in flight must complete first.
func (f *Flow) Abort(op *Operation, err error) (ended bool) {
	if op.err == nil {
		op.err = err
	}
	f.delist(op)
	return op.Ended()
}
