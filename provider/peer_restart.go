package provider

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// A peer may end and begin anew under its name before its end is noticed, or lose a connection that is
// well from here. A path to its name then leads to the process that is gone, while messages come from its successor.
// What is answered over such a path is lost, without a sign.
//
//	the transport has connections that carry both ways  → answers, and reads, go over the source's own (BackPath)
//	else: a source is met, and its name has a path      → that leads to a live process, or peers are checked
//	                                                      before anything goes by names (greet, checkPeers)
//	a path is lost, and the source is not               → answers and reads wait for another (connectBack)
//	the source itself is lost                           → its answers are dropped: a successor's requests have the
//	                                                      same numbers

// greet is called when a source is met.
func (e *leasedEP) greet(src hw.Source, s sender) {
	if p, _ := e.ep.base.links.Transports().Of(src); p.Answer != nil {
		return
	}
	l := e.ep.base.links.Find(e.rx.addressOf(s))
	if l == nil {
		return
	}
	if p := l.Path(); p != nil && (p.Err() != nil || errors.Is(p.Check(), hw.ErrPeerDead)) {
		e.rx.recheck = true
	}
}

// checkPeers has the transports report peers that are gone.
func (r *receiving) checkPeers() {
	r.recheck = false
	r.base.ends.Store(false)
	for _, e := range r.eps {
		for _, p := range e.ep.base.links.Transports() {
			p.CheckPeers()
		}
	}
}

// seekEnds has the next progress check for peers that are gone: one is, and its end is not reported. Any thread.
func (r *rxContext) seekEnds() {
	r.ends.Store(true)
	r.notifyPoll()
	r.ring()
}

// lives reports whether a sender is still behind a source.
func (e *leasedEP) lives(src hw.Source, s sender) bool {
	k, ok := e.senders.Known(src)
	return ok && k == s
}

// dropBack ends what goes over the path of a source that is gone.
func (e *leasedEP) dropBack(src hw.Source) {
	if p := e.senders.TakeBack(src); p != nil {
		e.initiated.Drop(&p.Path, fi.ECONNRESET)
	}
}

// connectBack is connect to the sender behind a source. While that one lives a path that is lost is not the end:
// fi.EAGAIN, until it has not answered for the connect timeout. One that is not reached is gone: fi.ECONNRESET.
func (e *leasedEP) connectBack(src hw.Source, s sender) (*path, error) {
	l := e.linkBack(s)
	if p, _ := e.ep.base.links.Transports().Of(src); p.Answer != nil {
		if !e.lives(src, s) {
			return nil, fi.ECONNRESET
		}
		return e.senders.BackPath(l, src)
	}
	if e.rx.recheck {
		return nil, fi.EAGAIN
	}
	p, err := e.ep.base.links.Connect(l)
	if errors.Is(err, fi.ECONNRESET) && e.lives(src, s) && !l.Silent(e.ep.base.domain.cfg.ConnectTimeout) {
		err = fi.EAGAIN
	}
	if errors.Is(err, fi.EHOSTUNREACH) {
		err = fi.ECONNRESET // it has sent, so it was there
	}
	return p, err
}

// dropAnswers forgets what waits to be sent to a source that is gone.
func (e *leasedEP) dropAnswers(src hw.Source) {
	e.rx.out.Drop(func(to *destination) bool { return to.ep == e && to.link == nil && to.src == src })
	e.target.DropReplies(src)
}
