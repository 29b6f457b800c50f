package exchange

import (
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// longestChunk is what a chunk takes at most on the own link: a choice that lasts longer is old
// before it ends. No chunk is shorter than a 16th of [Config.Chunk] for it.
const longestChunk = 4 * time.Millisecond

// idle is the share of the own link's rate below which it counts as idle.
const idle = 0.9

// peer is what the engine keeps of another member.
type peer struct {
	// What goes to it, in bytes from the slice's beginning.
	total, sent, acked int64
	tail               int64 // of total, that goes through relays

	step   int64            // bytes of a chunk if slow or relayed, 0: by the rate
	flight *[Deepest]flight // chunks on their way, the oldest first; nil: none
	flying int8

	invited bool // by a credit that has not been used
	busy    bool // says so itself: its link queues because of others
	counted bool // its share is in Engine.shares
	lost    bool
	near    bool  // is on this member's host
	away    bool  // is not needed and does not relay any more
	over    bool  // everything has been sent and acknowledged
	heard   bool  // something has come from it
	rested  bool  // rest is known
	idle    bool  // its own link idles, as it said
	relayed bool  // it has an entry in relays.pairs
	slow    bool  // its path was slow in the operation before, and has not been faster since
	alone   bool  // no member relays to it
	refused int32 // target, plus 1, to which it does not relay
	share   float64
	rate    float64         // bytes per second that the path was seen to deliver, 0: not known
	base    time.Duration   // least time of a chunk lately, 0: not known
	queue   time.Duration   // delay of the latest chunk above base, smoothed
	dev     time.Duration   // mean deviation of it
	since   uint64          // choice at which it began to wait
	news    congestion.Time // when it began, or a chunk of it was acknowledged, or its share was halved

	rounds rounds
	idling since           // from when on its target's link idles
	learnt congestion.Time // when it was last seen to be slow, 0: never

	rest    time.Duration // that its own link needs for what it has to receive, as it said
	stats   PeerReport
	carries carried
	in      inPeer
}

// flight is a chunk on its way.
type flight struct {
	end    int64 // of the chunk
	at     congestion.Time
	acked  int64           // of the pair when it was sent
	all    int64           // Engine.carried when it was sent
	began  congestion.Time // from when on all counts
	length int64
	burst  uint32
}

// left is what has not been sent and does not go through relays.
func (p *peer) left() int64 { return p.total - p.tail - p.sent }

// Engine decides for one member, in one operation at a time. It is not safe for
// concurrent use. What it has learnt of paths stays for the next operation.
type Engine struct {
	cfg    Config
	known  *records
	givers int // peers with bytes to be sent

	waiting heap // have data left and have not begun, or gave way
	ages    list // the same, the one that has waited longest first
	begun   list // pairs that have begun, the one without news for longest first
	emits   list // may send a chunk
	nears   list // the same, of this member's host
	words   list // are to be sent a word

	choices  uint64
	forcedAt uint64  // choice that was forced last
	shares   float64 // what the pairs that have begun deliver, bytes per second
	chunk    int64   // bytes of a chunk, at most what the link takes in longestChunk
	pooled   pooled  // what all deliver together
	rate     float64 // the most of that lately, bytes per second; 0: not known
	left     int64   // bytes not sent, but for those to members of the host, as in the next ones
	flying   int     // chunks on their way
	active   int     // peers that have some
	acked    int64
	carried  int64 // with what all of the host's members have sent, since any time
	ackedAt  congestion.Time
	queue    time.Duration // mean of all pairs' delays
	dev      time.Duration
	free     bool            // the link was idle when the timer ran out, and nothing is known of its rate
	together bool            // all pairs have begun, for the first time in this operation
	drained  congestion.Time // when the own link has sent everything, at the rate that it was seen to have
	trial    trial
	pace     pace

	in     inLink
	relays relays
	others sharing

	out          int64  // bytes to be sent
	given, taken uint64 // as in Use

	started congestion.Time
	outOver int
	failed  bool
	report  Report
}

// trial is the attempt to send to one peer more.
type trial struct {
	next uint64 // choice at which it is made, or judged
	gap  uint64 // choices between two
	rate float64
	on   bool
}

// Choices between two trials: the first ones, and at most.
const (
	trialFirst = 16
	trialMost  = 1024
	trialTakes = 4 * Early
)

// New returns an engine that has no operation. It returns an error if cfg is not
// valid.
func New(cfg Config) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n, known := cfg.Peers, newRecords(cfg.Peers)
	e := &Engine{
		cfg: cfg, known: known, waiting: newHeap(known), ages: newList(known), begun: newList(known),
		emits: newList(known), nears: newList(known), words: newList(known),
		in: inLink{waiting: newHeap(known), over: n}, outOver: n, chunk: cfg.Chunk,
	}
	e.in.e, e.relays.e = e, e
	return e, nil
}

// Patience is how many choices a peer that has data left waits before it is given
// one out of turn.
func (e *Engine) Patience() uint64 { return max(64, 8*uint64(e.givers)) }

// Start begins an operation. out and in have the bytes to send to and to receive
// from each peer. An empty slice is sent, and waited for, where the other direction has bytes. The operation before
// it is over.
func (e *Engine) Start(now congestion.Time, out, in []int64) {
	e.relays.stop()
	e.known.reserve(out, in)
	e.waiting.clear(len(e.known.recs))
	e.in.waiting.clear(len(e.known.recs))
	for _, l := range []*list{&e.ages, &e.begun, &e.emits, &e.nears, &e.words} {
		l.clear(len(e.known.recs))
	}
	e.choices, e.forcedAt, e.shares, e.left, e.flying = 0, 0, 0, 0, 0
	e.active, e.drained = 0, now
	e.acked, e.ackedAt, e.started, e.out, e.taken = 0, now, now, 0, e.given
	e.outOver, e.in.over, e.failed, e.free, e.together = 0, 0, false, false, false
	e.trial, e.pace = trial{next: trialFirst, gap: trialFirst}, pace{}
	e.relays.width, e.relays.most = e.relays.most, 0
	e.report = Report{}
	e.givers = 0
	e.in.start(now)
	for i := range out {
		e.known.marks[i] &^= markAway
		p := e.known.find(int32(i))
		if p == nil {
			continue
		}
		e.known.putAir(p)
		*p = peer{
			total: out[i], lost: p.lost, near: e.near(int32(i)), slow: e.knownSlow(now, p), learnt: p.learnt,
			rate: p.rate, base: p.base, queue: p.queue / 2, dev: p.dev, in: inPeer{want: in[i]},
		}
		e.report.Out, e.report.In = e.report.Out+out[i], e.report.In+in[i]
		if p.near {
			continue
		}
		if p.total != 0 {
			e.givers++
		}
		if e.cfg.Seen != nil && p.total > e.cfg.Short {
			if queue, dev, ok := e.cfg.Seen(i); ok {
				p.queue, p.dev = queue, dev
			}
		}
		e.left += p.total
		e.in.left += p.in.want
	}
	e.out, e.in.all = e.left, e.in.left
	for i := range out {
		e.enlist(int32(i))
	}
	e.fill(now)
}

// enlist takes in a peer at the start of an operation.
func (e *Engine) enlist(i int32) {
	p := e.known.find(i)
	if p == nil || p.total|p.in.want == 0 { // nothing goes either way
		if p != nil {
			p.over, p.in.over = true, true
		}
		e.outOver++
		e.in.over++
		return
	}
	switch {
	case p.lost:
		e.failed, p.over = true, true
		e.outOver++
		if !p.near {
			e.left -= p.total
		}
	case p.near:
		e.nears.push(i)
	case p.total <= e.cfg.Short:
		e.emits.push(i)
	default:
		e.wait(i)
	}
	e.in.expect(i)
}

// wait puts a peer among those that wait.
func (e *Engine) wait(i int32) {
	e.at(i).since = e.choices
	e.waiting.push(i, e.key(i))
	e.ages.push(i)
}

// unwait takes a peer out of those that wait.
func (e *Engine) unwait(i int32) {
	e.waiting.remove(i)
	e.ages.remove(i)
}

// Begun returns how many peers are being sent to.
func (e *Engine) Begun() int { return e.begun.count }

// Done reports whether everything has been sent, acknowledged and received.
func (e *Engine) Done() bool {
	return e.outOver == e.cfg.Peers && e.in.over == e.cfg.Peers && e.words.count == 0 && e.relays.done()
}

// Failed reports whether a peer was lost that the operation needs.
func (e *Engine) Failed() bool { return e.failed }

// airtime is what so many bytes take on the own link, 0 if its rate is not known.
func (e *Engine) airtime(bytes int64) time.Duration {
	if e.rate <= 0 {
		return 0
	}
	return time.Duration(float64(bytes) / e.rate * second)
}

// room reports whether the own link has room for one pair more.
func (e *Engine) room(now congestion.Time) bool {
	switch {
	case e.waiting.len() == 0:
		return false
	case e.begun.count == 0:
		return true
	case e.full():
		return false
	case e.empty(now):
		return true
	case e.free:
		e.free = false
		return true
	case e.unused():
		return true
	}
	return e.try()
}

// unused reports whether the pairs of all of the host's members deliver less than the link carries.
func (e *Engine) unused() bool { return e.shares+e.others.share < idle*e.rate }

// full reports whether no more peers may be sent to at a time, by all of the host's members.
func (e *Engine) full() bool { return e.cfg.Most > 0 && e.begun.count+e.others.pairs >= e.cfg.Most }

// empty reports whether the own link idles for sure: it has sent everything, so that all chunks that are on their way
// wait elsewhere, and there is nothing more for it.
func (e *Engine) empty(now congestion.Time) bool {
	return e.rate > 0 && e.emits.count == 0 && now >= e.drained && !e.pausing(now)
}

// try reports whether it is time to try one pair more, and judges the attempt before.
func (e *Engine) try() bool {
	t := &e.trial
	if e.rate == 0 || e.choices < t.next {
		return false
	}
	if t.on {
		t.on = false
		if e.rate > t.rate*1.05 {
			t.gap = trialFirst // the next one now
		} else {
			t.gap = min(2*t.gap, trialMost)
			t.next = e.choices + t.gap
			return false
		}
	}
	t.on, t.rate, t.next = true, e.rate, e.choices+trialTakes
	e.report.Trials++
	return true
}

// fill begins pairs while the own link has room.
func (e *Engine) fill(now congestion.Time) {
	for e.room(now) {
		e.begin(now, e.choose())
	}
	if !e.together && e.begun.count != 0 && e.waiting.len() == 0 {
		e.together = true
		e.resume()
	}
}

// choose takes a peer out of those that wait. There is one.
func (e *Engine) choose() int32 {
	first := e.ages.head()
	i, key := e.waiting.least()
	if e.overdue(first) && first != i {
		e.forcedAt = e.choices
		e.report.Forced++
		i = first
	} else if key&congested != 0 {
		e.report.Forced++ // the own link would idle
	}
	e.unwait(i)
	return i
}

// overdue reports whether a peer has waited for so long that it is due, and the choice
// before was not such a one.
func (e *Engine) overdue(i int32) bool {
	return i >= 0 && e.choices-e.at(i).since >= e.Patience() && e.choices >= e.forcedAt+2
}

// begin begins with a peer that does not wait.
func (e *Engine) begin(now congestion.Time, i int32) {
	p := e.at(i)
	share := e.rate
	if p.rate > 0 {
		share = min(share, p.rate)
	}
	if p.left() <= e.chunk || e.sounds(p) {
		share /= 2 // one chunk only does not fill the link until it is acknowledged
	}
	p.invited, p.stats.Began = false, p.stats.Began+1
	p.counted, p.share, p.news = true, share, now
	e.shares += share
	e.begun.push(i)
	e.report.Most = max(e.report.Most, e.begun.count)
	e.relays.most = max(e.relays.most, e.begun.count+e.others.pairs)
	if !e.emits.has(i) {
		e.emits.push(i)
	}
}

// discount takes a pair out of those that have begun.
func (e *Engine) discount(i int32) {
	p := e.at(i)
	if p.counted {
		p.counted = false
		e.shares -= p.share
		e.begun.remove(i)
		if e.begun.count == 0 {
			e.shares = 0 // without what rounding left
		}
	}
}

// setShare changes what a pair counts with.
func (e *Engine) setShare(p *peer, share float64) {
	if p.counted {
		e.shares += share - p.share
		p.share = share
	}
}
