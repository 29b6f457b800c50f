package exchange

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// second is the unit of rates in a time.
const second = float64(time.Second)

// OnWord takes in a peer's word. It returns false if it cannot be true, which drops it:
// it acknowledges what was not sent.
func (e *Engine) OnWord(now congestion.Time, from int, w Word) bool {
	i, p := int32(from), e.known.find(int32(from))
	if p == nil {
		return e.unasked(w)
	}
	if w.Got < 0 || w.Got > p.sent || w.Got > 0 && p.total <= e.cfg.Short || !e.relays.arrivedAt(i, &w) {
		e.report.Forged++
		return false
	}
	if p.over || p.lost {
		return true // late
	}
	p.busy = w.Busy
	e.relays.heard = now
	e.hear(i, p)
	p.watch(now, w.Idle)
	p.rest, p.rested = w.Rest, w.Rested
	if p.slow && !e.lags(p) { // its target ends no sooner
		p.slow = false
		e.resumePair(i)
	}
	ended := false
	for p.flying > 0 && p.flight[0].end <= w.Got {
		e.ack(now, p)
		ended = true
	}
	if w.Invite {
		e.report.Credits++
		p.invited = true
	}
	switch {
	case ended || e.relays.arrivedAll(i, p):
		e.ended(now, i, p)
	case e.waiting.has(i):
		e.waiting.set(i, e.key(i))
	}
	e.relays.start(now, i)
	if p.invited && e.waiting.has(i) && !e.full() {
		if e.overdue(e.ages.head()) {
			i = e.choose()
		} else {
			e.unwait(i)
		}
		e.begin(now, i)
	}
	e.fill(now)
	return true
}

// unasked takes in a word of a peer that was sent nothing to answer. It returns false if that cannot be true.
func (e *Engine) unasked(w Word) bool {
	if !w.Unasked() {
		e.report.Forged++
		return false
	}
	return true
}

// delivered takes in that the link has delivered bytes.
func (e *Engine) delivered(bytes int64) {
	e.acked += bytes
	e.carried += bytes
	e.taken += uint64(bytes)
}

// ack takes in the end of a pair's oldest chunk on its way.
func (e *Engine) ack(now congestion.Time, p *peer) {
	f := p.flight[0]
	copy(p.flight[:], p.flight[1:p.flying])
	if p.flying--; p.flying == 0 {
		e.known.putAir(p)
	}
	bytes := f.end - p.acked
	p.acked = f.end
	if p.near {
		return
	}
	if p.flying == 0 {
		e.active--
	}
	e.flying--
	e.delivered(bytes)
	e.ackedAt = now
	took := max(now.Sub(f.at), 1)
	share := float64(p.acked-f.acked) * second / float64(took)
	all := float64(e.carried-f.all) * second / float64(max(now.Sub(f.began), 1))
	if f.burst == e.pace.number && !e.pausing(now) || e.pooled.rate == 0 {
		e.pooled.take(all, now.Sub(f.began), took)
	}
	e.rate = max(e.pooled.rate, e.rate-e.rate/512)
	e.chunk = min(max(int64(e.rate*longestChunk.Seconds()), e.cfg.Chunk/16, 1), e.cfg.Chunk)
	e.setShare(p, min(share, e.rate))
	e.rated(now, p, &f, share)
	e.measure(p, took, f.length)
}

// measure takes in how long a chunk took.
func (e *Engine) measure(p *peer, took time.Duration, length int64) {
	if length < e.chunk/2 || length > 2*e.chunk {
		return // a rest, which takes less, or all of it
	}
	if p.base == 0 || took < p.base {
		p.base = took
	} else {
		p.base += (took - p.base) / 64
	}
	queue := took - p.base
	off := queue - p.queue
	p.queue += off / 4
	p.dev += (max(off, -off) - p.dev) / 4
	off = p.queue - e.queue
	e.queue += off / 16
	e.dev += (max(off, -off) - e.dev) / 16
}

// ended goes on after chunks of a pair have ended.
func (e *Engine) ended(now congestion.Time, i int32, p *peer) {
	if e.begun.has(i) {
		p.news = now
		e.begun.renew(i)
	}
	switch {
	case e.relays.arrivedAll(i, p):
		if r := e.relays.pairOf(i); r != nil {
			e.relays.closePair(r)
		}
		e.learn(now, p)
		e.sentAll(i, p)
	case p.near:
		if p.left() != 0 && !e.nears.has(i) {
			e.nears.push(i)
		}
	case p.left() == 0:
		e.discount(i) // the next pair may begin while the last chunk is on its way
	case e.waiting.has(i):
		e.waiting.set(i, e.key(i))
	case e.overdue(e.ages.head()) || !e.keeps(i):
		e.emits.remove(i)
		e.discount(i)
		e.wait(i)
		p.stats.Deferrals++
		e.report.Deferrals++
	case !e.emits.has(i):
		e.emits.push(i)
	}
}

// Wake returns when Tick is to be called if nothing comes before, or false.
func (e *Engine) Wake() (congestion.Time, bool) {
	at, ok := e.in.wake()
	if pause, is := e.wakePace(); is && (!ok || pause < at) {
		at, ok = pause, true
	}
	if out, is := e.wakeOut(); is && (!ok || out < at) {
		at, ok = out, true
	}
	if relay, is := e.relays.wake(); is && (!ok || relay < at) {
		at, ok = relay, true
	}
	return at, ok
}

// wakeOut is when the own link may have room for another pair, if one waits: when it has sent everything or, if
// nothing is known of its rate, when a pair has been silent for too long.
func (e *Engine) wakeOut() (congestion.Time, bool) {
	switch i := e.begun.head(); {
	case i < 0 || e.waiting.len() == 0 || e.full():
		return 0, false
	case e.rate == 0:
		return e.silent(i), true
	}
	return max(e.drained, e.pace.until), e.emits.count == 0
}

// silent is when a pair has been without an acknowledgement for so long that it cannot
// be the own link that holds it back, nor a pause.
func (e *Engine) silent(i int32) congestion.Time {
	return max(e.at(i).news, e.pace.until).Add(max(2*e.airtime(int64(e.flying)*e.chunk+e.others.flying), e.patient()))
}

// patient is the least time for which an acknowledgement is waited for.
func (e *Engine) patient() time.Duration { return max(10*e.cfg.Backoff, time.Millisecond) }

// Tick takes in that time has passed.
func (e *Engine) Tick(now congestion.Time) {
	e.in.tick(now)
	e.relays.tick(now)
	for n := e.begun.count; n > 0 && e.waiting.len() != 0; n-- {
		i := e.begun.head()
		if e.silent(i) > now {
			break
		}
		p := e.at(i)
		p.news = now
		e.setShare(p, p.share/2)
		e.begun.renew(i)
		if e.rate == 0 {
			e.free = true
		}
	}
	e.fill(now)
}
