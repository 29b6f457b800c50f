package congestion

import "time"

// slew finds that the two clocks of a path drift apart faster than crystals do, because a program sets one of them by
// its rate (adjtime, and chrony by up to 8 %). A receiver's clock that falls behind makes the way there seem faster and
// the way back slower, so a queue on the way there that stands seems to be one of the way back. A clock that gets ahead
// needs no answer: it makes the way there seem slower.
//
// The leasts of both ways in a block of time are compared with those of the block before. A clock changes both by the
// same, and goes on doing so. A queue that comes or goes changes one of them, and two queues that change places do so
// once: slewRow blocks in a row have to show a clock. A rate is not seen where queues change by a slewAlike'th part or
// more of what the clocks drift apart in a block; so much of a queue may be taken for one of the other way as they
// drift apart in onewayWindow.
//
// A slew of less than slewBlock is over before it is found, chrony's of an offset of 20 ms, for instance. It hides as
// much of a queue on the way there as the clocks have drifted apart, until the flow's next drain, which shows both
// leasts by the clocks as they are then. After onewayWindow, and a quarter by which the filter may be off, the leasts
// of before count no more.
type slew struct {
	before, block leasts
	row           int  // comparisons in a row that show a clock
	until         Time // the clocks count as drifting until then
}

// leasts are the least delays of both ways in a block of time. Each contains the constant of the clocks, negated in
// that of the way back.
type leasts struct {
	begun       Time // 0: there is none
	there, back time.Duration
}

// slewBlock is how long a block is at least, and slewMost how far the clocks of bad crystals drift apart from one
// block's begin on, as a part of that time. Where blocks follow each other that is twice the time between the leasts.
const (
	slewBlock = onewayWindow / 4
	slewMost  = 100e-6
	slewAlike = 4
	slewRow   = 2
)

// add takes in the delays of both ways and reports whether the clocks drift apart, or have in the last onewayWindow,
// from which the least delays are.
func (s *slew) add(now Time, there, back time.Duration) bool {
	b := &s.block
	if b.begun == 0 || now.Sub(b.begun) >= slewBlock {
		s.compare(now)
		s.before, *b = *b, leasts{now, there, back}
	}
	b.there, b.back = min(b.there, there), min(b.back, back)
	return now < s.until
}

// compare compares a block that ends with the one before.
func (s *slew) compare(now Time) {
	if s.before.begun == 0 {
		return
	}
	most := time.Duration(slewMost * float64(now.Sub(s.before.begun)))
	faster, slower := s.before.there-s.block.there, s.block.back-s.before.back
	shift := min(faster, slower)
	if shift <= most || max(faster, slower)-shift >= shift/slewAlike {
		s.row = 0
		return
	}
	if s.row++; s.row >= slewRow {
		s.until = now.Add(onewayWindow)
	}
}
