package verbs

import (
	"time"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
)

// How late an operation's end is noticed: its completion may lie in its queue while this process does something
// else. The device stamps completions by its clock, and its clock is read when they are dealt with, so nothing need
// be known of how it runs beside the host's.

// mostLate bounds what is believed of stamps.
const mostLate = time.Second

// reading is what the device's clock said while a batch of completions is dealt with. It belongs to the lease
// holder; the zero value says that it was not read.
type reading struct {
	at    time.Time // when it was read
	ticks uint64
	ok    bool // it could be read
}

// late is how long ago the one-sided operation of a completion ended, 0 if that is unknown or not asked for. It reads
// the clock once for each batch. Lease.
func (i *Iface) late(q *queue, pos uint64, d *ibv.Done) time.Duration {
	if d.Stamp == 0 || d.ID>>62 != classMemory {
		return 0
	}
	if en := q.entry(pos); en.comp == nil {
		return 0
	}
	c := &i.rx.clock
	if c.at.IsZero() {
		c.ticks, c.ok = i.d.ctx.Now()
		c.at = time.Now()
	}
	if !c.ok {
		return 0
	}
	ago, ok := between(i.d.attr.Clock, d.Stamp, c.ticks)
	if !ok {
		return 0
	}
	return ago + time.Since(c.at) // completions of the batch came before it
}

// between is the time from a stamp to what the clock said later. False: the stamp is of later, or of more than
// mostLate before, or the clock counts so few bits that the order is unknown.
func between(c ibv.Clock, stamp, now uint64) (time.Duration, bool) {
	ticks := (now - stamp) & c.Mask
	if c.KHz == 0 || ticks > c.Mask/2 || ticks/c.KHz >= uint64(mostLate/time.Millisecond) {
		return 0, false
	}
	return time.Duration(float64(ticks) / float64(c.KHz) * float64(time.Millisecond)), true
}
