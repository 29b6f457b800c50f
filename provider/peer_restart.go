package provider

import (
	"errors"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/peers"
)

// A peer may end and begin anew under its name before its end is noticed, or lose a connection that is
// well from here. A path to its name then leads to the process that is gone, while messages come from its successor.
// What is answered over such a path is lost, without a sign.
//
//	the transport has connections that carry both ways  → answers, and reads, go over the source's own (backPath)
//	else: a source is met, and its name has a path      → that leads to a live process, or peers are checked
//	                                                      before anything goes by names (greet, checkPeers)
//	a path is lost, and the source is not               → answers and reads wait for another (connectBack)
//	the source itself is lost                           → its answers are dropped: a successor's requests have the
//	                                                      same numbers

// greet is called when a source is met.
func (e *leasedEP) greet(src hw.Source, s sender) {
	if p, _ := e.ep.transportOf(src); p.answer != nil {
		return
	}
	l := e.ep.linkByName(e.rx.addressOf(s))
	if l == nil {
		return
	}
	if p := l.path.Load(); p != nil && (p.Err() != nil || errors.Is(p.Check(), hw.ErrPeerDead)) {
		e.rx.recheck = true
	}
}

// linkByName returns the link to a peer's interface, nil if there is none.
func (e *linkTable) linkByName(a peers.Address) *link {
	return e.links.Find(a)
}

// checkPeers has the transports report peers that are gone.
func (r *receiving) checkPeers() {
	r.recheck = false
	r.base.ends.Store(false)
	for _, e := range r.eps {
		for _, p := range e.ep.transports {
			p.CheckPeers()
		}
	}
}

// seekEnds has the next progress check for peers that are gone: one is, and its end is not reported. Any thread.
func (r *rxContext) seekEnds() {
	r.ends.Store(true)
	r.callGo()
	r.ring()
}

// lives reports whether a sender is still behind a source.
func (e *leasedEP) lives(src hw.Source, s sender) bool {
	k, ok := e.known(src)
	return ok && k == s
}

// backPath returns the path over a source's own connection, fi.EAGAIN if that is lost, which will be reported. l is the
// link to the sender, whose path it is unless both have connected, or the link's leads to its predecessor.
func (e *leasedEP) backPath(l *link, p *transport, own hw.Source) (*path, error) {
	ep := p.answer(own)
	if ep == nil {
		return nil, fi.EAGAIN
	}
	if at, err := e.ep.connect(l); err == nil && at.Endpoint == ep {
		return at, nil // nearly always
	}
	for int(own) >= len(p.backs) {
		p.backs = append(p.backs, nil)
	}
	b := p.backs[own]
	if b == nil {
		b = newPath(ep, p)
		b.peer, b.Back = l.to, true
		p.backs[own] = b
	}
	return b, nil
}

// dropBack ends what goes over the path of a source that is gone.
func (e *leasedEP) dropBack(src hw.Source) {
	p, own := e.ep.transportOf(src)
	if int(own) < len(p.backs) && p.backs[own] != nil {
		e.initiated.Drop(&p.backs[own].Path, fi.ECONNRESET)
		p.backs[own] = nil
	}
}

// connectBack is connect to the sender behind a source. While that one lives a path that is lost is not the end:
// fi.EAGAIN, until it has not answered for the connect timeout. One that is not reached is gone: fi.ECONNRESET.
func (e *leasedEP) connectBack(src hw.Source, s sender) (*path, error) {
	l := e.linkBack(s)
	if p, own := e.ep.transportOf(src); p.answer != nil {
		if !e.lives(src, s) {
			return nil, fi.ECONNRESET
		}
		return e.backPath(l, p, own)
	}
	if e.rx.recheck {
		return nil, fi.EAGAIN
	}
	p, err := e.ep.connect(l)
	if errors.Is(err, fi.ECONNRESET) && e.lives(src, s) && !e.ep.silent(l) {
		err = fi.EAGAIN
	}
	if errors.Is(err, fi.EHOSTUNREACH) {
		err = fi.ECONNRESET // it has sent, so it was there
	}
	return p, err
}

// silent reports whether a link has not come up for the connect timeout.
func (e *attributes) silent(l *link) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attempts.Silent(time.Now(), e.domain.cfg.ConnectTimeout)
}

// dropAnswers forgets what waits to be sent to a source that is gone.
func (e *leasedEP) dropAnswers(src hw.Source) {
	e.rx.out.Drop(func(to *destination) bool { return to.ep == e && to.link == nil && to.src == src })
	e.target.DropReplies(src)
}
