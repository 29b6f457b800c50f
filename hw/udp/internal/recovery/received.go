package recovery

import (
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
)

// Verdict says what Received thinks of a packet number.
type Verdict int

// Verdicts.
const (
	New       Verdict = iota // take the packet
	Duplicate                // it came before: a copy by the network, or a replay
	Old                      // it may have come before; too much has come since
	Wild                     // beyond what an honest peer could have sent
)

// keep is how many ranges Received remembers.
const keep = 2 * wire.MaxRanges

// wildStep is how far a number may lead the largest so far.
const wildStep = 1 << 31

// Received knows which packet numbers have arrived. It is what is acknowledged,
// and the replay window: a number is taken at most once. Numbers below the
// oldest range that it has room for are refused; their content comes again
// under new numbers. The zero value has seen nothing. One owner at a time.
type Received struct {
	ranges [keep]wire.Range // descending, with gaps
	n      int
	full   bool   // ranges were forgotten: what is below the last one is Old
	floor  uint64 // the peer knows about all that is below
	epoch  uint32 // changes when a number comes that is not the largest so far
}

// Reported is what an acknowledgement has reported. Its sender keeps it, until the
// peer is known to have got it.
type Reported struct {
	end   uint64 // all below; 0: nothing
	epoch uint32
}

// Report is what an acknowledgement that is filled now reports; Any is true.
func (r *Received) Report() Reported { return Reported{r.Largest() + 1, r.epoch} }

// Known takes in that the peer got an acknowledgement. What it reported is not reported
// again; else numbers that were skipped or lost for good would fill all others.
func (r *Received) Known(t Reported) {
	if t.epoch == r.epoch { // else a number came late, and it may not have been reported
		r.floor = max(r.floor, t.end)
	}
}

// Check returns what Add would say, and changes nothing.
func (r *Received) Check(number uint64) Verdict {
	if r.n == 0 {
		if number > wildStep {
			return Wild
		}
		return New
	}
	if number > r.ranges[0].Last {
		if number-r.ranges[0].Last > wildStep {
			return Wild
		}
		return New
	}
	for i := range r.n {
		if number > r.ranges[i].Last {
			return New
		}
		if number >= r.ranges[i].First {
			return Duplicate
		}
	}
	if r.full {
		return Old
	}
	return New
}

// Add takes in a number for which Check said New. It returns true if the number
// is the largest so far.
func (r *Received) Add(number uint64) bool {
	if r.n > 0 && number < r.ranges[0].Last {
		r.epoch++
		r.floor = min(r.floor, number)
	}
	i := 0
	for i < r.n && number < r.ranges[i].First {
		i++
	}
	// number is above range i, or inside none of those that are left.
	switch {
	case i < r.n && number == r.ranges[i].Last+1:
		r.ranges[i].Last = number
		if i > 0 && r.ranges[i-1].First == number+1 {
			r.ranges[i-1].First = r.ranges[i].First
			r.remove(i)
		}
		return i == 0
	case i > 0 && r.ranges[i-1].First == number+1:
		r.ranges[i-1].First = number
		return false
	}
	if r.n == keep {
		r.full = true
		if i == keep {
			return false
		}
		r.n--
	}
	copy(r.ranges[i+1:r.n+1], r.ranges[i:r.n])
	r.ranges[i] = wire.Range{First: number, Last: number}
	r.n++
	return i == 0
}

// AddMany takes in the n numbers that follow the largest so far; Any is true.
func (r *Received) AddMany(n int) { r.ranges[0].Last += uint64(n) }

func (r *Received) remove(i int) {
	copy(r.ranges[i:r.n-1], r.ranges[i+1:r.n])
	r.n--
}

// Next is the number after the largest, 0 before the first.
func (r *Received) Next() uint64 {
	if r.n == 0 {
		return 0
	}
	return r.ranges[0].Last + 1
}

// Any reports whether a packet has arrived.
func (r *Received) Any() bool { return r.n > 0 }

// Largest is the largest number that has arrived; Any is true.
func (r *Received) Largest() uint64 { return r.ranges[0].Last }

// Gaps reports whether a number below the largest is missing.
func (r *Received) Gaps() bool { return r.n > 1 }

// Many reports whether acknowledgements have become long: it is time that the peer
// is known to have got one.
func (r *Received) Many() bool { return r.n > manyRanges && r.ranges[manyRanges].Last >= r.floor }

// manyRanges is how many ranges are many: an acknowledgement of about 100 bytes.
const manyRanges = 8

// Fill writes the newest ranges into a, but not those that the peer knows; Any is
// true.
func (r *Received) Fill(a *wire.Ack) {
	a.N = min(r.n, wire.MaxRanges)
	for i := range a.N {
		if i > 0 && r.ranges[i].Last < r.floor {
			a.N = i
			return
		}
		a.Ranges[i] = r.ranges[i]
		if first := r.ranges[i].Last - min(r.ranges[i].Last, 1<<32-1); a.Ranges[i].First < first {
			a.Ranges[i].First = first // longer than an Ack can say
			a.N = i + 1
			return
		}
	}
}
