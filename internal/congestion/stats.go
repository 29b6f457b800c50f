package congestion

import (
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/order"
)

// Stats is what is known about one peer. Any number of threads report to it
// (holders of a connection to the peer, the prober), any number read it, and
// none waits for another. It fills three cache lines and, as an element of a
// [Table], shares none. The zero value is ready for use.
//
// A writer that takes the owner bit computes the next record into the copy that
// readers do not read, and publishes it. A writer that finds the bit taken
// adds its report to what waits; the owner, or the next writer, takes it in as so
// many samples of their mean. A thread that is descheduled in the middle holds
// no other up: readers go on with the published copy, writers add.
type Stats struct {
	// state is generation<<1 | owner bit; the generation's lowest bit names
	// the published copy. W0: a writer takes the bit by compare-and-swap. W2:
	// the owner gives it back with the next generation, a release store. R0
	// and R2: readers load it before and after the copy, acquire.
	state atomic.Uint64

	// waiting is count<<waitingSum | sum of RTTs in units of waitingUnit.
	// Added to by writers, taken by the owner with a swap. least and most come
	// first (W3), so that the owner (O3: waiting, then these) finds them to
	// hold what it took.
	waiting atomic.Uint64

	// lost counts losses that wait. Added to by writers, taken by the owner
	// with a swap.
	lost atomic.Uint64

	// least is the complement of the least RTT reported while another thread
	// was the owner, most the greatest; 0 without. Raised by writers with
	// compare-and-swap, loaded by the owner, never taken back.
	least, most atomic.Uint64

	// window is the latest one that waits. Stored by writers, loaded by the
	// owner; which of two is the latest does not matter.
	window atomic.Uint64

	// dropped counts reports that waiting had no room for. Added to by any
	// writer, read by anyone; it stands alone.
	dropped atomic.Uint64

	_ uint64

	// copies: the owner writes the one that is not published (W1, release
	// stores, so that they stay behind the W2 before), readers load the other
	// (R1, acquire loads, so that R2 stays behind). A reader that R1 gave a
	// word of a later record finds another state at R2.
	copies [2]record
}

// record is one copy, a cache line.
type record struct {
	srtt, rttvar, least, most, samples, lost, window, last uint64
}

// Snapshot is what was known about a peer at one instant.
type Snapshot struct {
	SRTT, RTTVAR time.Duration // RFC 6298, 0 without samples
	Min, Max     time.Duration // of all samples, 0 without
	Samples      uint64        // RTTs taken in
	Lost         uint64        // packets and probes without answer
	Window       int64         // congestion window in bytes, 0 if none was reported
	Updated      Time          // of the latest report, 0 if there is none
}

// Loss returns the share of packets lost, 0 to 1. It counts samples as packets
// that arrived.
func (s *Snapshot) Loss() float64 {
	if s.Lost == 0 {
		return 0
	}
	return float64(s.Lost) / float64(s.Lost+s.Samples)
}

// What waits: the bits of the sum, its unit, and how much is too much, so that
// writers that add at the same time cannot overflow it. The sum has room for
// 8000 s, a thousand times a second in which the owner does not run.
const (
	waitingSum  = 40
	waitingUnit = 16 * time.Nanosecond
	waitingFull = 1 << (waitingSum - 1)
	longestRTT  = 64 * time.Second
)

// Add reports an RTT, which must be positive and counts as 64 s at most, and the
// window in bytes, 0 if the caller knows none. It takes RFC 6298's gains.
func (s *Stats) Add(now Time, rtt time.Duration, window int64) {
	r := uint64(min(max(rtt, 1), longestRTT))
	if next, state, ok := s.own(); ok {
		next.take(1, r, r, r, uint64(max(window, 0)))
		s.end(now, state, &next)
		return
	}
	raise(&s.least, ^r) // W3
	raise(&s.most, r)
	if window > 0 {
		s.window.Store(uint64(window))
	}
	if w := s.waiting.Load(); w&(1<<waitingSum-1) >= waitingFull || w>>63 != 0 {
		s.dropped.Add(1)
		return
	}
	s.waiting.Add(1<<waitingSum | uint64((time.Duration(r)+waitingUnit/2)/waitingUnit))
	s.collect(now)
}

// Lose reports a packet or probe without answer.
func (s *Stats) Lose(now Time) {
	if next, state, ok := s.own(); ok {
		next.lost++
		s.end(now, state, &next)
		return
	}
	s.lost.Add(1)
	s.collect(now)
}

// own tries to become the owner, and returns the published record.
func (s *Stats) own() (next record, state uint64, ok bool) {
	state = s.state.Load()
	if state&1 != 0 || !s.state.CompareAndSwap(state, state|1) { // W0
		return record{}, 0, false
	}
	return s.copies[state>>1&1], state, true
}

// collect takes in what waits if the owner has gone meanwhile.
func (s *Stats) collect(now Time) {
	if next, state, ok := s.own(); ok {
		s.end(now, state, &next)
	}
}

// raise makes a word at least v.
func raise(word *atomic.Uint64, v uint64) {
	for old := word.Load(); old < v; old = word.Load() {
		if word.CompareAndSwap(old, v) {
			return
		}
	}
}

// end takes in what waits, publishes next and gives the owner bit back. A
// report that comes after it has read them waits for the next writer.
func (s *Stats) end(now Time, state uint64, next *record) {
	if s.waiting.Load() != 0 {
		w := s.waiting.Swap(0) // O3
		count := w >> waitingSum
		mean := w & (1<<waitingSum - 1) * uint64(waitingUnit) / max(count, 1)
		least, most := ^s.least.Load(), s.most.Load()
		next.take(count, min(max(mean, least), most), least, most, s.window.Load())
	}
	if s.lost.Load() != 0 {
		next.lost += s.lost.Swap(0)
	}
	next.last = max(next.last, uint64(now))
	next.store(&s.copies[^state>>1&1]) // W1
	s.publish(state + 2)
}

// converged is how many equal samples make an average of them: of the old
// SRTT, (7/8)^32 or 1.4 % are left.
const converged = 32

// take computes count samples of one RTT into the record; least and most bound
// them.
func (r *record) take(count, rtt, least, most, window uint64) {
	if r.samples == 0 {
		r.srtt, r.rttvar, r.least, r.most = rtt, rtt/2, rtt, rtt
	} else {
		for range min(count, converged) {
			diff := int64(rtt - r.srtt)
			dev := max(diff, -diff) - int64(r.rttvar)
			r.srtt += uint64(diff / 8)
			r.rttvar += uint64(dev / 4)
		}
	}
	r.least, r.most = min(r.least, least), max(r.most, most)
	r.samples += count
	if window != 0 {
		r.window = window
	}
}

// store writes the record to a copy that no reader trusts.
func (r *record) store(to *record) {
	order.Store64(&to.srtt, r.srtt)
	order.Store64(&to.rttvar, r.rttvar)
	order.Store64(&to.least, r.least)
	order.Store64(&to.most, r.most)
	order.Store64(&to.samples, r.samples)
	order.Store64(&to.lost, r.lost)
	order.Store64(&to.window, r.window)
	order.Store64(&to.last, r.last)
}

// Read returns one consistent snapshot. It tries again only if a record was
// published while it read.
func (s *Stats) Read() Snapshot {
	for {
		state := s.state.Load() // R0
		from := &s.copies[state>>1&1]
		snapshot := Snapshot{ // R1
			SRTT:    time.Duration(atomic.LoadUint64(&from.srtt)),
			RTTVAR:  time.Duration(atomic.LoadUint64(&from.rttvar)),
			Min:     time.Duration(atomic.LoadUint64(&from.least)),
			Max:     time.Duration(atomic.LoadUint64(&from.most)),
			Samples: atomic.LoadUint64(&from.samples),
			Lost:    atomic.LoadUint64(&from.lost),
			Window:  int64(atomic.LoadUint64(&from.window)),
			Updated: Time(atomic.LoadUint64(&from.last)),
		}
		if s.state.Load()>>1 == state>>1 { // R2
			return snapshot
		}
	}
}

// Dropped returns how many reports found no room, because one thread did not run
// for seconds in the middle of a report.
func (s *Stats) Dropped() uint64 { return s.dropped.Load() }

// Table holds the statistics of peers numbered from 0.
type Table struct {
	peers []*Stats
}

// NewTable returns a table of n peers, which takes 200 bytes for each.
func NewTable(n int) *Table {
	all, t := make([]Stats, n), &Table{peers: make([]*Stats, n)}
	for i := range all {
		t.peers[i] = &all[i]
	}
	return t
}

// TableOf returns a table of peers with statistics to which others report as well. It
// keeps the slice.
func TableOf(peers []*Stats) *Table { return &Table{peers: peers} }

// Len returns how many peers the table has.
func (t *Table) Len() int { return len(t.peers) }

// Peer returns the statistics of a peer in [0, Len).
func (t *Table) Peer(i int) *Stats { return t.peers[i] }
