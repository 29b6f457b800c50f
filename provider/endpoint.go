package provider

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/coll"
	"github.com/weft-fabric/weft/provider/internal/lease"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/messages"
	"github.com/weft-fabric/weft/provider/internal/note"
	"github.com/weft-fabric/weft/provider/internal/onesided"
	"github.com/weft-fabric/weft/provider/internal/pages"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/receive"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/tokens"
	"github.com/weft-fabric/weft/provider/names"
)

// States of an endpoint. Transitions: created → enabled → closed, created →
// closed, under Endpoint.mu.
const (
	stateCreated uint32 = iota
	stateEnabled
	stateClosed
)

// Endpoint is an endpoint: a reliable datagram one (FI_EP_RDM), a connected one
// (FI_EP_MSG), which has one peer (connection), or an unreliable datagram one
// (FI_EP_DGRAM), which is lossy.
//
// Send and PostRecv may be called by any number of threads, as far as the
// domain's threading level allows. The fields below mu are set before the
// endpoint is enabled and do not change after it, unless their comments say so. What belongs to the lease
// holder is said at the field.
type Endpoint struct {
	base initiator // the layers below
	collectives

	endpointName
	engine *background // by which a progress thread drives it, nil: none does

	// protocols are what progress goes through; immutable from Enable on.
	protocols protocols
	notes     note.Notes
	process   tokens.Process // of its tokens

	// leased is what the progress lease of rx guards from Enable on, beside rx. Stored before and by Enable.
	leased lease.Part[leasedEP, leasedRx]
}

// attributes are what an endpoint is opened with. Immutable, but msgOrder, which is so from Enable on.
type attributes struct {
	domain      *Domain
	info        *fi.Info
	format      fi.AddrFormat
	auth        authkey.Key
	incarnation uint64 // in tokens: random, so that another endpoint of the same name has another
	msgOrder    uint64 // that is asked for
	// scalable is the endpoint that this is a context of, nil for an endpoint
	// of its own; context is the number of the context's interface.
	scalable *Scalable
	context  uint8
}

// leasedEP is an endpoint as the holder of its receive context's progress lease has it.
type leasedEP struct {
	ep       Endpoint
	rx       *leasedRx
	reported peers.Reported // addresses of identities
	// peersNamed is the generation of av that the addresses of queued messages are of.
	peersNamed uint64
	senders    links.Leased
	batchPeak  uint64 // arrivals
	// malformedHere counts messages that only this layer found malformed.
	malformedHere uint64
	received      receive.Endpoint
	rendezvous    rendezvous.Protocol
	collective    *coll.Protocol // nil: there are none
	target        onesided.Target[MR]
	answers       onesided.Answers
	sent          messages.Protocol
	initiated     rma.Protocol

	regionIOV [info.MRIOVLimit]fi.IOVec
}

// OpenEndpoint makes an endpoint and binds its name: info's source address, or
// an ephemeral port of the first local address. The handle of a connected
// endpoint's info may be the *ConnReq that it is to accept, or a *Passive whose
// address it takes over. Errors: fi.EINVAL (also for attributes that weft does
// not offer), fi.EADDRINUSE, fi.EADDRNOTAVAIL.
func (d *Domain) OpenEndpoint(info *fi.Info) (*Endpoint, error) {
	if info == nil {
		return nil, fi.EINVAL
	}
	if err := d.matchesNot("endpoint"); err != nil {
		return nil, err
	}
	full, err := d.complete(info)
	if err != nil {
		return nil, err
	}
	e := newEndpoint(d, full)
	if err := d.refs.Acquire(); err != nil {
		return nil, err
	}
	if err := e.openName(); err != nil {
		d.refs.Release()
		return nil, refuse(log.EPCtrl, fi.ErrnoOf(err), "open endpoint: %v", err)
	}
	if e.base.allocateHot() != nil {
		e.socket.Close()
		e.base.closeConn()
		d.refs.Release()
		return nil, fi.ENOMEM
	}
	return e, nil
}

// openName gives the endpoint what its type needs, and its name.
func (e *Endpoint) openName() error {
	switch e.base.info.EP.Type {
	case fi.EPRDM, fi.EPUnspec:
		return e.bindName(e.base.info.SrcAddr)
	case fi.EPDgram:
		e.base.chosen.lossy = true
		return e.bindName(e.base.info.SrcAddr)
	case fi.EPMsg:
		return e.openConn()
	}
	return fmt.Errorf("endpoint type %d: %w", e.base.info.EP.Type, fi.EINVAL)
}

// newEndpoint makes an endpoint without resources.
func newEndpoint(d *Domain, full *fi.Info) *Endpoint {
	l := &leasedEP{ep: Endpoint{base: initiator{peering: peering{
		binder: binder{attributes: attributes{
			domain: d, info: full, format: full.AddrFormat, auth: authkey.Key(full.EP.AuthKey),
			incarnation: rand.Uint64(),
		}},
		chosen: options{minMulti: receive.DefaultMinMulti}, born: time.Now(),
	}}}}
	l.initTarget()
	l.answers.Init(answersHost{leasedHost{l}}, &l.ep.base.pendings)
	l.rendezvous.Init(rendezvousHost{leasedHost{l}}, d.cfg)
	l.received.Init(receiveHost{leasedHost{l}})
	l.initMessages()
	l.initRMA()
	e := &l.ep
	e.leased = lease.PartOf(&lease.Guarded[leasedRx]{}, l)
	e.notes.Init(noteEndpoint{e}, d.cfg.NoteBytes)
	e.base.lists.Init(listEndpoint{commonEP{e}, rma.ByDevice(&e.base.rmas)}, d.cfg)
	e.base.opened.Init(tokenEP{commonEP{e}})
	if pages.Allowed() {
		e.base.accesses.Init(uint64(d.cfg.HugeAfter), hot.AccessMin)
	}
	e.base.links.Init(linksHost{e}, d.cfg)
	l.senders.Init(&e.base.links)
	return e
}

// Hot is the table of plain words that the data plane and C read. It lives until Close.
func (e *Endpoint) Hot() *hot.EP { return e.base.hot }

// HotRx is the receive context's table, nil before Enable.
func (e *Endpoint) HotRx() *hot.Rx {
	if e.base.rx == nil {
		return nil
	}
	return e.base.rx.hot
}

// SetHandles sets the handles by which C calls back: the endpoint's, and the
// receive context's, which is used if the endpoint has one of its own. To be
// called before Enable.
func (e *Endpoint) SetHandles(ep uint64) { e.base.handle = ep; e.base.hot.Handle = ep }

// Info is the endpoint's, with every default filled in.
func (e *attributes) Info() *fi.Info { return e.info }

// Name is the endpoint's name in its address format.
func (e *Endpoint) Name() ([]byte, error) {
	if e.base.scalable != nil {
		return e.base.scalable.Name()
	}
	e.base.mu.Lock()
	defer e.base.mu.Unlock()
	if e.base.conn != nil && e.base.conn.Request() != nil {
		return names.Encode(e.base.format, e.base.conn.Request().Local())
	}
	e.another = nil
	return names.Encode(e.base.format, e.base.name)
}

// SetName binds the endpoint to another address before it is enabled. Errors:
// fi.EOPBADSTATE after Enable, fi.EINVAL, fi.EADDRINUSE, fi.EADDRNOTAVAIL.
func (e *Endpoint) SetName(raw []byte) error {
	e.base.mu.Lock()
	defer e.base.mu.Unlock()
	if e.base.state.Load() != stateCreated {
		return fi.EOPBADSTATE
	}
	if e.base.scalable != nil || e.base.conn != nil && e.base.conn.Request() != nil {
		return fi.EINVAL
	}
	return e.bindName(raw)
}

// Progress makes progress on the endpoint, if no other thread does.
func (e *Endpoint) Progress() {
	if e.base.rx != nil {
		e.base.rx.advanceAll()
	}
}

// PostRecv posts a receive. Errors as of posting: fi.EOPBADSTATE, fi.EAGAIN,
// fi.EBADFLAGS, fi.EINVAL, fi.ETOOSMALL, fi.ENOCQ (see Deaf).
func (e *Endpoint) PostRecv(a *RecvArgs) error {
	if e.base.state.Load() != stateEnabled {
		return fi.EOPBADSTATE
	}
	if e.Deaf() {
		return fi.ENOCQ
	}
	return e.base.rx.PostRecv(a)
}

// Cancel asks for the end of the receive that was posted with context. If it
// still waits when progress sees the request, it completes with fi.ECANCELED.
// So does a triggered operation that still waits for its counter, and a post of a list
// of which elements are left to be posted, when those that are posted have ended, and a notification of which
// nothing is sent yet.
func (e *Endpoint) Cancel(context uint64) error {
	if e.base.state.Load() != stateEnabled {
		return fi.EOPBADSTATE
	}
	if e.base.lists.Cancel(context) {
		e.base.domain.work.PostReady()
		return nil
	}
	if e.notes.Out.Cancel(context) {
		return nil
	}
	return e.base.rx.cancelContext(e, context)
}

// Close ends the endpoint. Operations in flight are dropped without a
// completion, as fi_endpoint(3) says; messages that are complete, and that receivers read from a copy here, are given
// time for that (messages.Sender.Settle), in which progress is made as by a poll. Errors: fi.EBUSY while it has
// aliases, and while another process, which may be stopped, is at a copy from or to memory of a device here: then the
// endpoint stays open, and operations of that kind are canceled.
func (e *Endpoint) Close() error {
	e.base.mu.Lock()
	defer e.base.mu.Unlock()
	if err := e.base.refs.Close(); err != nil {
		return err
	}
	if e.base.state.Load() == stateEnabled {
		e.base.sends.Settle(e.Progress, e.base.rx.owner == nil, flushTime)
		if n := e.base.lists.Rest(rendezvous.AbandonTime); n != 0 {
			e.base.refs.Reopen()
			return refuse(log.EPCtrl, fi.EBUSY, "close endpoint: after %v another process is still at %d copies",
				rendezvous.AbandonTime, n)
		}
	}
	if e.base.conn != nil {
		e.base.conn.Stop()
	}
	if e.base.state.Swap(stateClosed) == stateEnabled {
		e.endLists()
		e.base.domain.work.Leave(e)
		if e.base.bound.srx == nil {
			e.base.domain.work.Leave(e.base.rx)
		}
		e.disable()
	}
	if e.base.conn != nil {
		e.base.conn.HangUp()
	}
	for i := len(e.base.bound.undo.binds) - 1; i >= 0; i-- {
		e.base.bound.undo.binds[i]()
	}
	e.base.hot = nil
	e.base.table.Close()
	e.base.closeConn()
	if e.base.scalable != nil {
		e.base.scalable.closed(e)
		return nil
	}
	e.socket.Close()
	e.base.domain.refs.Release()
	return nil
}

// WakePeer rings the doorbell of the peer with this number in a hot line.
func (e *Endpoint) WakePeer(peer uint32) { e.base.transports.iface.WakePeer(peer) }

// Domain is the domain that the endpoint belongs to.
func (e *attributes) Domain() *Domain { return e.domain }
