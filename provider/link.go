package provider

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/tables"
	"github.com/weft-fabric/weft/provider/names"
)

// How an endpoint reaches its peers is package links'. Here is the endpoint as links have it.

// Paths to peers over interfaces, for the files of this package.
type (
	link      = links.Link
	path      = links.Path
	transport = links.Transport
	sender    = links.Sender
)

// linksHost is an endpoint as its links have it.
type linksHost struct{ e *Endpoint }

// Disconnected reports whether there was a connection, which has ended.
func (h linksHost) Disconnected() bool { return h.e.base.conn.disconnected() }

// Closed reports whether the endpoint closes or has closed.
func (h linksHost) Closed() bool { return h.e.base.state.Load() == stateClosed }

// SeekEnds has the next progress check for peers that are gone.
func (h linksHost) SeekEnds() { h.e.base.rx.seekEnds() }

// Connected prepares the path that a link gets, and counts it.
func (h linksHost) Connected(p *rma.Path) {
	h.e.base.rmas.Connected(p)
	h.e.base.stats.Shared(stats.SharedConnects, 1)
}

// Here reports whether a name is one of this host.
func (h linksHost) Here(n names.Name) bool { return h.e.base.domain.local.Has(n) }

// Made has the addresses of senders found anew that no address vector has: a link names one.
func (h linksHost) Made() { forgetStrangers(&h.e.base.peering) }

// Line is where the data plane counts for the peer of a link that gets a number.
func (h linksHost) Line(number uint32) *dataplane.Link {
	return h.e.base.sends.Line(number)
}

// linkOf returns the link of an address of the endpoint's AV and holds it for
// the caller, which releases it. fi.EINVAL for an address that is not in it, fi.ENOMEM;
// of a connected endpoint fi.ENOTCONN or fi.ESHUTDOWN.
func (e *initiator) linkOf(addr fi.Addr) (*link, error) {
	if e.conn != nil {
		if err := e.conn.Ready(); err != nil {
			return nil, err
		}
	}
	return e.links.Of(addr)
}

// broken is what a post returns of which nothing went out because of err. A path that is lost is not the
// peer's end yet, or the peer has begun anew: the next post learns which.
func (e *peering) broken(err error) error {
	if !errors.Is(err, fi.ECONNRESET) {
		return err
	}
	e.rx.seekEnds()
	return fi.EAGAIN
}

// dropAddress is called when an address is removed from the AV.
func (e *peering) dropAddress(addr fi.Addr) {
	e.links.DropAddress(addr)
	e.sourceAddrs.Drop(addr)
	e.driven.sourceAddrs.Drop(addr)
}

// forgetStrangers is called after an insertion into the address vector, after a link is made, and when the names of a
// peer have changed: any of these may give senders addresses.
func forgetStrangers(e *peering) {
	e.sourceAddrs.DropStrangers()
	e.driven.sourceAddrs.DropStrangers()
}

// directoryNow is what the addresses of an endpoint's senders are found by now.
func (e *peering) directoryNow() tables.Directory {
	return tables.Directory{Generation: e.bound.av.Generation(), Links: e.links.Made()}
}

// sweepLinks removes the links that nothing leads to.
func (e *leasedEP) sweepLinks() {
	e.senders.Sweep(func(yield func(*link) bool) {
		for to := range e.rx.out.Destinations() {
			if !yield(to.link) {
				return
			}
		}
	})
}
