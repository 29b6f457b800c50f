package congestion

// rounds counts round trips by what was delivered: a round ends when a packet
// is acknowledged that left after the round began. It keeps what was lost and
// marked in the round.
type rounds struct {
	number    int64
	end       int64 // delivered count that ends the round
	delivered int64 // bytes of the round so far
	marked    int64
	lost      int64

	// judged counts the bytes delivered since losses were last judged, with
	// lost the bytes lost.
	judged int64

	// markedShare is of the round before. lostShare is of the rounds before
	// that together carried lossSpan units, in the round in which there were
	// as many, and 0 otherwise.
	lostShare, markedShare float64

	// spanned says that losses were judged at the end of the round before.
	spanned bool
}

// lossSpan is how many units must have been sent for a share of losses to mean
// anything: of a window of a few units one is a large part.
const lossSpan = 32

// ack takes in an acknowledgement and reports whether it began a new round.
func (r *rounds) ack(s *Sample, unit int64) bool {
	r.delivered += s.Bytes
	r.judged += s.Bytes
	r.marked += s.Marked
	if s.PriorDelivered < r.end {
		return false
	}
	r.number++
	r.end = s.Delivered
	r.markedShare = float64(r.marked) / float64(max(r.delivered, 1))
	r.delivered, r.marked = 0, 0
	r.lostShare, r.spanned = 0, r.judged+r.lost >= lossSpan*unit
	if all := r.judged + r.lost; r.spanned {
		r.lostShare = float64(r.lost) / float64(all)
		r.judged, r.lost = 0, 0
	}
	return true
}

// losing reports whether losses will be too many if they go on like this.
func (r *rounds) losing(unit int64) bool {
	return r.lost >= 2*unit && float64(r.lost) > lossTolerance*float64(r.judged+r.lost)
}
