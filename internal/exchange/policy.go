package exchange

import (
	"fmt"
	"math/bits"
	"time"
)

// Policy is how the peer of the next chunk is chosen. All use the queueing delay
// of a path: what a chunk takes beyond the least that one took lately.
type Policy uint8

// The policies.
const (
	// Adaptive begins those first that take longest and keeps to a pair until its
	// slice has been sent. A pair whose delay is above a threshold that follows
	// the delays of all pairs gives way, if it has time: if at its rate it would
	// end before half of what this member has left.
	Adaptive Policy = iota
	// Greedy gives each chunk to the peer with the least delay.
	Greedy
	// Threshold passes over peers whose delay is above Config.Threshold and
	// Config.Factor deviations, unless the own link would idle.
	Threshold
	// Balanced keeps to the shifted order, unless the delays of two peers differ by
	// more than the chunks between them take. The delay of a pair that has no time to wait
	// does not count. If its path is slow, too, it does not give way, and, if it has no time
	// when it begins to wait, is the next to begin; unless as many pairs have begun as may.
	Balanced
	policies
)

var policyNames = [...]string{"adaptive", "greedy", "threshold", "balanced"}

// String returns the name that [ParsePolicy] reads.
func (p Policy) String() string {
	if p >= policies {
		return fmt.Sprintf("Policy(%d)", uint8(p))
	}
	return policyNames[p]
}

// ParsePolicy reads the name of a policy: adaptive, greedy, threshold or balanced.
func ParsePolicy(name string) (Policy, error) {
	for i, n := range policyNames {
		if n == name {
			return Policy(i), nil
		}
	}
	return 0, fmt.Errorf("policy %q is none of %v", name, policyNames)
}

// Bits of keys, from the least: the peer's place in the order, a measure of the policy, and
// classes. The least key is chosen.
const (
	placeBits   = 24
	measureBits = 36
	mostMeasure = 1<<measureBits - 1
	uninvited   = 1 << (placeBits + measureBits)
	congested   = 2 * uninvited
	known       = 4 * uninvited
)

// key is what a peer that waits is chosen by.
func (e *Engine) key(i int32) uint64 {
	p := e.at(i)
	key := uint64(i)
	switch e.cfg.Policy {
	case Greedy:
		key |= clampMeasure(int64(p.queue/time.Microsecond)) << placeBits
	case Balanced:
		key |= clampMeasure(e.placed(i)) << placeBits
	case Threshold:
		if e.above(p) {
			key |= congested
		}
		key |= (mostMeasure - clampMeasure(p.left()/e.chunk)) << placeBits
	default:
		key |= (mostMeasure - clampMeasure(p.left()/e.chunk<<e.slowness(p))) << placeBits
		if p.rate != 0 {
			key |= known
		}
		if e.yields(p) {
			key |= congested
		}
		if !p.invited {
			key |= uninvited
		}
	}
	return key
}

func clampMeasure(v int64) uint64 { return uint64(min(max(v, 0), mostMeasure)) }

// placed is a peer's measure under Balanced: how many microseconds of chunks are before
// it in the order, and its delay, which counts for as much as Window places, and not for
// a pair that is known to have no time to wait; 0 if it is to go on, or begin, before all others.
func (e *Engine) placed(i int32) int64 {
	p := e.at(i)
	if e.urgent(p) {
		return 0
	}
	chunk := e.airtime(e.chunk)
	delay := p.queue
	if p.rate > 0 && !e.hasTime(p) {
		delay = 0
	}
	if e.cfg.Window > 0 {
		delay = min(delay, time.Duration(e.cfg.Window)*chunk)
	}
	return 1 + int64((time.Duration(i)*chunk+delay)/time.Microsecond)
}

// urgent reports whether a pair goes on, or begins, before all others under Balanced: its path is slow, it has no time
// to give way, and others may begin beside it.
func (e *Engine) urgent(p *peer) bool { return e.slowness(p) > 0 && !e.hasTime(p) && !e.full() }

// slowness is by how many halvings a path is slower than its part of the own link, which it would share with the other
// pairs that have chunks on their way; half of that is not slow. Until a chunk of the pair has arrived its rate is of
// the operation before, in which as many pairs shared the link as had a place in it: were that taken for the rate of a
// pair alone, what chance did to it would break the shifted order.
func (e *Engine) slowness(p *peer) int {
	pairs := e.active + e.others.active
	if p.flying == 0 {
		pairs++
	}
	if p.acked == 0 {
		pairs = max(pairs, e.relays.width)
	}
	part := p.rate * float64(pairs)
	if part <= 0 || e.rate < 2*part {
		return 0
	}
	return min(bits.Len64(uint64(e.rate/part))-1, 10)
}

// above reports whether a peer's delay is above the threshold that was set.
func (e *Engine) above(p *peer) bool {
	return p.busy || p.queue > e.cfg.Threshold+time.Duration(e.cfg.Factor*float64(p.dev))
}

// yields reports whether a pair gives way to others under Adaptive: its delay is above that of all pairs, and it has
// time.
func (e *Engine) yields(p *peer) bool {
	if !p.busy && p.queue <= max(e.cfg.Threshold, e.queue+time.Duration(e.cfg.Factor*float64(e.dev))) {
		return false
	}
	return e.hasTime(p)
}

// hasTime reports whether a pair would end before half of what this member has left does, if it goes on at its rate.
func (e *Engine) hasTime(p *peer) bool {
	return p.rate > 0 && e.rate > 0 && float64(p.left())/p.rate < float64(e.left+e.others.left)/e.rate/2
}

// keeps reports whether a pair whose chunk has ended goes on with its next one. If not, all
// that wait are compared with it.
func (e *Engine) keeps(i int32) bool {
	if e.waiting.len() == 0 {
		return true
	}
	p := e.at(i)
	_, least := e.waiting.least()
	switch e.cfg.Policy {
	case Greedy:
		return e.key(i) <= least
	case Balanced:
		return e.urgent(p) || e.key(i) <= least
	case Threshold:
		return !e.above(p) || least&congested != 0
	default:
		if least&known == 0 {
			return false // a peer that has not had a chunk yet
		}
		return !e.yields(p) || least&congested != 0
	}
}
