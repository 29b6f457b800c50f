package provider

import (
	"maps"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// protocol is a part of an endpoint with messages and pending work of its own. Its methods are for the holder of the
// progress lease, except Requested: an implementation of this package has the endpoint as leasedEP.
type protocol interface {
	// Handlers are those of its messages.
	Handlers() map[hw.AMID]hw.Handler
	// Busy reports whether Pump has something to do.
	Busy() bool
	// Pump goes on with what waits, as far as there is room.
	Pump()
	// Requested reports whether another thread has left something for Pump. Any thread.
	Requested() bool
	// SourceLost drops what a source that is gone would have to bring.
	SourceLost(src hw.Source)
	// PeerLost ends with status what waits for the peer of a link, of that number, that is gone.
	PeerLost(number uint32, status fi.Errno)
}

// openProtocols gives an endpoint that is about to be enabled its protocols, in the order in which progress pumps them.
func (e *leasedEP) openProtocols() {
	e.ep.protocols = protocols{twoSided{&e.sent, e}, &e.rendezvous, targeted{e}, &e.initiated}
	if e.ep.base.conn != nil {
		e.ep.protocols = append(e.ep.protocols, &connected{e.ep.base.conn, e})
	}
	if e.collective != nil {
		e.ep.protocols = append(e.ep.protocols, e.collective)
	}
	e.ep.protocols = append(e.ep.protocols, notifications{leasedHost{e}})
}

// protocols are those of an endpoint, in the order in which progress goes through them.
type protocols []protocol

// requested reports whether another thread has left something for one of them.
func (ps protocols) requested() bool {
	for _, p := range ps {
		if p.Requested() {
			return true
		}
	}
	return false
}

// busy reports whether one of them has work that no ring shows.
func (ps protocols) busy() bool {
	for _, p := range ps {
		if p.Busy() {
			return true
		}
	}
	return false
}

// pump goes on with what waits in them.
func (ps protocols) pump() {
	for _, p := range ps {
		p.Pump()
	}
}

// setHandlers gives a transport the handlers of all messages.
func (e *leasedEP) setHandlers(transport *transport) {
	for _, p := range e.ep.protocols {
		for id, h := range p.Handlers() {
			if transport.Number == 0 {
				h = e.acquainting(h)
			}
			if e.ep.base.conn != nil {
				h = (&connected{e.ep.base.conn, e}).only(h)
			}
			transport.SetHandler(id, e.handler(transport, h))
		}
	}
	transport.OnPeerEvent(peerEvents(transport, e.onPeer))
}

// targeted is the one-sided protocol at the target, and what initiator and target say of regions.
type targeted struct{ e *leasedEP }

func (o targeted) Handlers() map[hw.AMID]hw.Handler {
	all := o.e.target.Handlers()
	maps.Copy(all, rkey.Handlers(keyHost{leasedHost(o)}))
	all[wire.AMAccessed] = o.e.onAccessed
	return all
}

func (o targeted) Busy() bool { return o.e.target.Helps() || o.e.target.Replying() }

func (o targeted) Pump() {
	o.e.target.Help()
	o.e.target.Reply()
}

// Requested reports false: peers alone ask for something.
func (o targeted) Requested() bool { return false }

// SourceLost drops the help for a source's operations.
func (o targeted) SourceLost(src hw.Source) { o.e.target.SourceLost(src) }

// PeerLost does nothing: what waits ends with its source.
func (o targeted) PeerLost(uint32, fi.Errno) {}

// leasedHost is what protocols that work under the lease need of the endpoint in common.
type leasedHost struct{ e *leasedEP }

// Owns reports whether a source is the peer of a link.
func (h leasedHost) Owns(src hw.Source, link uint32) bool { return h.e.ownsLink(src, link) }

// Malformed counts and logs a message that a peer should not have sent.
func (h leasedHost) Malformed(src hw.Source, format string, args ...any) {
	h.e.malformed(src, format, args...)
}

// Count adds to a counter of the lease holder's.
func (h leasedHost) Count(counter int, n uint64) { h.e.ep.base.stats.Rx(counter, n) }

// malformed counts a message that a peer should not have sent, and logs why.
func (e *leasedEP) malformed(src hw.Source, format string, args ...any) {
	e.malformedHere++
	log.Warnf(log.EPData, "from %s: "+format, append([]any{e.rx.addressOf(e.senderOf(src))}, args...)...)
}
