package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/pending"
	"github.com/weft-fabric/weft/provider/wire"
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
	e.protocols = protocols{messages{e}, &e.help, oneSided{e}}
	if e.conn != nil {
		e.protocols = append(e.protocols, &connected{e.conn, e})
	}
	if e.collective != nil {
		e.protocols = append(e.protocols, e.collective)
	}
	e.protocols = append(e.protocols, notifications{e})
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

// setHandlers gives a port the handlers of all messages.
func (e *leasedEP) setHandlers(port *port) {
	for _, p := range e.protocols {
		for id, h := range p.Handlers() {
			if port.number == 0 {
				h = e.acquainting(h)
			}
			if e.conn != nil {
				h = (&connected{e.conn, e}).only(h)
			}
			port.SetHandler(id, e.handler(port, h))
		}
	}
	port.OnPeerEvent(port.peerEvent(e.onPeer))
}

// messages is the two-sided protocol: eager messages and rendezvous.
type messages struct{ e *leasedEP }

func (m messages) Handlers() map[hw.AMID]hw.Handler {
	return map[hw.AMID]hw.Handler{
		wire.AMMsg:     m.e.onEager(0),
		wire.AMMsgData: m.e.onEager(msgData),
		wire.AMTag:     m.e.onEager(msgTagged),
		wire.AMTagData: m.e.onEager(msgTagged | msgData),
		wire.AMRTS:     m.e.onRTS,
		wire.AMSync:    m.e.onSync,
		wire.AMAck:     m.e.onAck,
		wire.AMCTS:     m.e.onCTS,
		wire.AMFrag:    m.e.onFrag,
	}
}

func (m messages) Busy() bool           { return len(m.e.streams) != 0 || m.e.requests.lost.Load() }
func (m messages) Requested() bool      { return m.e.requests.lost.Load() }
func (m messages) SourceLost(hw.Source) {}

func (m messages) Pump() {
	if m.e.requests.lost.Swap(false) {
		m.e.lostRendezvous()
	}
	m.e.streams.Step(m.e.pumpStream)
}

func (m messages) PeerLost(number uint32, status fi.Errno) {
	e := m.e
	e.requests.Range(func(id uint64, req *txRequest) {
		live := uint32(id >> 32)
		if req.Live.Load() == live && req.Link == number && req.Live.CompareAndSwap(live, 0) {
			e.stopStream(id)
			e.finishTx(req, id, status)
		}
	})
}

// rendezvousHelp is the sender's share of rendezvous: chunks that it writes itself (rendezvous_assist.go), and puts by
// a device (rendezvous_assist_device.go).
type rendezvousHelp struct {
	*leasedEP
	assists pending.List[assist] // rendezvous of others that this side helps with
	putters map[uint64]*putter   // by request, that this side helps with over a device
	putting []*putter            // of those that have something to do
}

func (e *rendezvousHelp) Handlers() map[hw.AMID]hw.Handler {
	return map[hw.AMID]hw.Handler{
		wire.AMAssist:  e.onAssist,
		wire.AMLanding: e.onLanding,
		wire.AMPut:     e.onPut,
		wire.AMHelped:  e.onHelped,
	}
}

func (e *rendezvousHelp) Busy() bool { return len(e.assists)+len(e.putting) != 0 }

func (e *rendezvousHelp) Pump() {
	e.assists.Step(e.stepAssist)
	e.stepPutters()
}

func (e *rendezvousHelp) Requested() bool           { return false }
func (e *rendezvousHelp) SourceLost(hw.Source)      {}
func (e *rendezvousHelp) PeerLost(uint32, fi.Errno) {} // stepAssist and stepPutters find that the request has ended

// oneSided is the one-sided protocol, at initiator and target.
type oneSided struct{ e *leasedEP }

func (o oneSided) Handlers() map[hw.AMID]hw.Handler {
	return map[hw.AMID]hw.Handler{
		wire.AMWrite:     o.e.target.onWrite,
		wire.AMRead:      o.e.target.onRead,
		wire.AMNotify:    o.e.target.onNotify,
		wire.AMAtomic:    o.e.target.onAtomic,
		wire.AMRMADone:   o.e.onRMADone,
		wire.AMReadData:  o.e.onReadData,
		wire.AMKeyAsk:    o.e.onKeyAsk,
		wire.AMKeyAnswer: o.e.onKeyAnswer,
		wire.AMShare:     o.e.target.onShare,
		wire.AMAccessed:  o.e.onAccessed,
	}
}

func (o oneSided) Busy() bool { return len(o.e.target.helps) != 0 || o.e.rmaBusy() }

func (o oneSided) Pump() {
	o.e.target.helps.Step(o.e.target.stepHelp)
	o.e.pumpRMAs()
}

func (o oneSided) Requested() bool {
	return o.e.rmaQueued.Load() != 0 || o.e.shares.waiting.Load() != 0 || o.e.pendings.lost.Load()
}

func (o oneSided) SourceLost(hw.Source) {}
