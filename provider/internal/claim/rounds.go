package claim

import "sync/atomic"

// Rounds is what an opener knows of its rounds with one helper. The zero value is that of a helper which has been
// offered nothing. One thread at a time uses it.
type Rounds struct {
	// count is the helper's when all chunks that it took are complete. Read from the words when a round begins and
	// none runs.
	count   uint32
	round   uint16 // the last
	offers  uint16 // made, modulo 2^16
	running uint8
	open    bool // the last has chunks that are not taken
	refused bool
}

// Refuse has no more rounds begin: the helper or the kernel does not let the two share operations.
func (r *Rounds) Refuse() { r.refused = true }

// Refused reports whether operations are not shared with this helper.
func (r *Rounds) Refused() bool { return r.refused }

// Offers is how many rounds have begun and were not canceled, modulo 2^16.
func (r *Rounds) Offers() uint16 { return r.offers }

// Ready reports whether another round may begin as far as earlier ones go.
func (r *Rounds) Ready() bool { return !r.open && r.running < MaxRounds }

// Unseen is how many offers the helper has not polled, if it is one that counts them.
func (r *Rounds) Unseen(w *Words) int { return w.unseen(r.offers) }

// Begin begins a round of n chunks, 1 to MaxChunks: the helper may take some as soon as it knows of it. It reports
// false when that cannot be now, or when operations are not shared with this helper.
func (r *Rounds) Begin(w *Words, n uint64) (round uint64, ok bool) {
	count, failed := w.Done()
	r.refused = r.refused || failed
	if r.refused || !r.Ready() {
		return 0, false
	}
	if r.running == 0 {
		r.count = count
	}
	if r.round++; r.round == 0 {
		r.round = 1
	}
	r.open = true
	r.running++
	r.offers++
	atomic.StoreUint64(&w[0], first(uint64(r.round), 0, n))
	return uint64(r.round), true
}

// Cancel takes a round back whose offer did not go out.
func (r *Rounds) Cancel() {
	r.open = false
	r.running--
	r.offers--
}

// Taken closes the open round, of which all chunks are taken, a number of them by the helper. It returns what the
// helper's count is when these are complete.
func (r *Rounds) Taken(helper uint64) (needs uint32) {
	r.open = false
	r.count += uint32(helper)
	return r.count
}

// Delegate expects the helper to take the one chunk of the open round, which stays open until Close or Reclaim. It
// returns what the helper's count is when the chunk is complete.
func (r *Rounds) Delegate() (needs uint32) {
	r.count++
	return r.count
}

// Close closes the open round: the helper has taken what is delegated to it, or is gone.
func (r *Rounds) Close() { r.open = false }

// Reclaim ends the open round, whose one chunk was delegated and has been taken by the opener.
func (r *Rounds) Reclaim() {
	r.open = false
	r.running--
	r.count--
}

// End ends a round that is not open: the helper has completed its chunks, or is gone.
func (r *Rounds) End() { r.running-- }
