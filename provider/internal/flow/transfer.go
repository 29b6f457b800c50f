package flow

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Transfer is a long operation that is cut into segments. It belongs to its flow from [Flow.Begin] until
// [Mover.End] has returned, and is used again then.
type Transfer struct {
	congestion.Operation
	ID     uint64   // the owner's, of its operation
	Status fi.Errno // why it fails; movers may set it while it is fi.Success
	Mover  Mover    // that of the next segments

	flow   *Flow
	flying []flight // posted as messages and not answered, in order
	part   flight   // the segment that is being sent as messages
	sent   uint64   // bytes of it
}

// flight is a segment of which left units are to be answered.
type flight struct {
	segment congestion.Segment
	left    uint64
}

// Mover does the work of one kind of transfers.
type Mover interface {
	// Post posts a segment. It reports whether the segment has ended already, and false for posted if there was no
	// room for all of it: it returns what one of [Transfer.Unpost], [Transfer.Fail], [Transfer.SendSegment] has
	// returned, or (true, true) after [Transfer.Ended], or (false, true).
	Post(t *Transfer, seg congestion.Segment) (ended, posted bool)
	// End ends the operation with t.Status. t is not to be used afterwards.
	End(t *Transfer)
	// Lost reports whether segments in flight end no more when the peer is gone.
	Lost() bool
}

// Sender is a mover that sends segments as messages.
type Sender interface {
	Mover
	// Send sends the next message of a segment, of which most bytes from at of the operation are left, and returns how
	// many bytes it has, most at most. The last message of a segment asks for an answer of one unit.
	// fi.EAGAIN: there is no room now. Other errors end the segment.
	Send(t *Transfer, at, most uint64) (n uint64, err error)
}

// spareTransfers is how many transfers a set keeps for use again.
const spareTransfers = 64

// Transfer returns a transfer, which is to begin.
func (s *Set) Transfer(id uint64, m Mover) *Transfer {
	var t *Transfer
	if n := len(s.spare); n != 0 {
		t, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		t = &Transfer{}
	}
	t.ID, t.Mover, t.Status = id, m, fi.Success
	return t
}

// Trim shortens the segment that is being posted to its first n bytes. The rest comes with the next one. n is positive
// and below seg.Length.
func (t *Transfer) Trim(seg *congestion.Segment, n int64) { t.flow.window.Trim(&t.Operation, seg, n) }

// Unpost takes a segment back that the transport has no room for.
func (t *Transfer) Unpost(seg congestion.Segment) (ended, posted bool) {
	t.flow.window.Unpost(&t.Operation, seg)
	return false, false
}

// Ended takes in that a segment has ended, with the transfer's status. late is how long before now it ended, as far as
// its completion says (hw.Completion). The caller calls [Flow.Pump] then, unless the segment has ended as it was
// posted.
func (t *Transfer) Ended(seg congestion.Segment, late time.Duration) {
	var ended bool
	if t.Status == fi.Success {
		now := t.flow.set.now()
		ended = t.flow.window.Done(now, &t.Operation, seg, seg.Took(now, late))
	} else {
		ended = t.flow.window.Fail(&t.Operation, seg, t.Status)
	}
	if ended {
		t.end()
	}
}

// Fail ends a segment that could not be posted.
func (t *Transfer) Fail(seg congestion.Segment, status fi.Errno) (ended, posted bool) {
	if t.Status == fi.Success {
		t.Status = status
	}
	t.Ended(seg, 0)
	return true, true
}

// end ends the operation.
func (t *Transfer) end() {
	f := t.flow
	f.all = slices.DeleteFunc(f.all, func(o *Transfer) bool { return o == t })
	t.Mover.End(t)
	*t = Transfer{flying: t.flying[:0]}
	if s := f.set; len(s.spare) < spareTransfers {
		s.spare = append(s.spare, t)
	}
}

// lose ends a transfer whose peer is gone, or has it end with what is in flight.
func (t *Transfer) lose(status fi.Errno) {
	if t.Status == fi.Success {
		t.Status = status
	}
	if t.flow.window.Abort(&t.Operation, t.Status) || t.Mover.Lost() {
		t.end()
	}
}

// SendSegment sends a segment as messages, now or when there is room. The transfer's mover is a [Sender].
func (t *Transfer) SendSegment(seg congestion.Segment) (ended, posted bool) {
	t.part, t.sent, t.flow.sending = flight{segment: seg}, 0, t
	return false, t.proceed()
}

// proceed sends the messages of a segment, as far as there is room, and reports whether it is done with it.
func (t *Transfer) proceed() bool {
	seg, sender := t.part.segment, t.Mover.(Sender)
	for t.sent < uint64(seg.Length) {
		n, err := sender.Send(t, uint64(seg.Offset)+t.sent, uint64(seg.Length)-t.sent)
		if errors.Is(err, fi.EAGAIN) {
			return false
		}
		if err != nil {
			t.flow.sending = nil
			t.Fail(seg, fi.ErrnoOf(err))
			return true
		}
		t.sent += n
	}
	t.flow.sending = nil
	t.Flies(seg, 1)
	return true
}

// Flies takes in that a segment was posted as a message for which as many units are to be answered.
func (t *Transfer) Flies(seg congestion.Segment, units uint64) {
	t.flying = append(t.flying, flight{seg, units})
}

// Flying reports whether segments that were posted as messages are not answered.
func (t *Transfer) Flying() bool { return len(t.flying) != 0 }

// Answered takes in an answer of the peer of a number of units: of the segment in flight in which byte at of the
// operation is, wire.NoPlace: of the first. Units beyond that segment's are of the next one. What it takes is
// subtracted from left. It reports false if no segment waits for the answer.
func (t *Transfer) Answered(at, units uint64, status fi.Errno, left *atomic.Uint64) bool {
	if status != fi.Success && t.Status == fi.Success {
		t.Status = status
	}
	f := t.flow
	for units > 0 {
		i := t.flightAt(at)
		if i < 0 {
			return false
		}
		fl := &t.flying[i]
		took := min(units, fl.left)
		units -= took
		left.Add(-took)
		if fl.left -= took; fl.left > 0 {
			continue
		}
		seg := fl.segment
		t.flying = append(t.flying[:i], t.flying[i+1:]...)
		last := len(t.flying) == 0
		t.Ended(seg, 0)
		if last {
			break // the transfer may have ended
		}
	}
	f.Pump()
	return true
}

// flightAt returns which segment in flight byte at of the operation is of: the first for wire.NoPlace; -1 for none.
func (t *Transfer) flightAt(at uint64) int {
	for i := range t.flying {
		s := &t.flying[i].segment
		if at == wire.NoPlace || at >= uint64(s.Offset) && at < uint64(s.Offset+s.Length) {
			return i
		}
	}
	return -1
}
