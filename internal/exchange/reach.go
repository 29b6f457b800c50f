package exchange

// Early is how many chunks of a pair are on their way at most while others wait: one that is being
// sent, and one for the time that an acknowledgement takes. Where no peer waits there is nothing
// to choose, and all of a slice goes, in up to Deepest chunks, so that the link does not idle for a host that answers
// late; but not before something has come from the peer, because it keeps what comes before it has begun.
const (
	Early   = 2
	Deepest = 8
)

// sounds reports whether a peer is to be sent one chunk only, because nothing is known of
// its path.
func (e *Engine) sounds(p *peer) bool { return e.cfg.Policy == Adaptive && p.rate == 0 }

// reach is how many chunks of a pair may be on their way.
func (e *Engine) reach(p *peer) int8 {
	switch {
	case e.sounds(p) || p.relayed || p.slow:
		return 1
	case p.near && p.acked > 0:
		return Deepest
	case e.waiting.len() == 0 && e.cfg.Percent == 100 && e.trusts(p):
		return Deepest
	}
	return Early
}

// trusts reports whether all of a slice may be given to the transport: the peer has begun, so it does not keep what
// comes, and the end of the slice need not go through relays. It does not wait for an acknowledgement: where the link
// that this comes by queues, the own link would idle until then.
func (e *Engine) trusts(p *peer) bool {
	if p.acked == 0 {
		return p.heard && p.rate > 0 && !e.narrow(p)
	}
	return !e.wary(p)
}

// hear takes in that something has come from a peer, which may be sent more for it.
func (e *Engine) hear(i int32, p *peer) {
	if !p.heard {
		p.heard = true
		e.resumePair(i)
	}
}

// resume goes on with all pairs that have begun, as none waits any more.
func (e *Engine) resume() {
	for s := e.begun.first; s >= 0; s = e.begun.links[s].after {
		e.resumePair(e.known.ids[s])
	}
}

// resumePair goes on with a pair if it has begun and more of it may be on its way.
func (e *Engine) resumePair(i int32) {
	if p := e.at(i); e.begun.has(i) && p.left() != 0 && p.flying < e.reach(p) && !e.emits.has(i) {
		e.emits.push(i)
	}
}
