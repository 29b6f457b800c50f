package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/backends"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// OpenTx opens the transmit context with an index. attr may restrict the
// endpoint's capabilities and choose other sizes; nil takes the endpoint's
// attributes, and so do its zero fields. What the context has is written back.
// Errors: fi.EINVAL (no such index, attributes beyond the endpoint's or the
// limits), fi.EBADFLAGS, fi.EBUSY (the context is open), fi.ENOMEM.
func (s *Scalable) OpenTx(index int, attr *fi.TxAttr) (*Endpoint, error) {
	const what = "open transmit context: "
	own, err := s.contextInfo(what, true, s.info.Tx.Caps)
	if err != nil {
		return nil, err
	}
	own.Tx.Caps = own.Caps
	if attr != nil {
		asked := *attr
		asked.Caps &^= info.Elsewhere(true, s.info.Caps)
		if err := s.domain.checkTx(what, &asked, own.Caps); err != nil {
			return nil, err
		}
		*own.Tx = completeTx(asked, *own.Tx)
		own.Tx.Caps, _ = info.CtxCaps(true, own.Tx.Caps, own.Caps) // checked
		own.Caps = own.Tx.Caps
	}
	given := *own.Tx
	own.Rx = &fi.RxAttr{Size: 1, IOVLimit: wire.IOVLimit} // no receives are posted
	e, err := s.openContext(s.tx, index, peers.FirstTx, own)
	if err == nil && attr != nil {
		*attr = given
	}
	return e, err
}

// OpenRx opens the receive context with an index; the rest is as for OpenTx.
func (s *Scalable) OpenRx(index int, attr *fi.RxAttr) (*Endpoint, error) {
	const what = "open receive context: "
	own, err := s.contextInfo(what, false, s.info.Rx.Caps)
	if err != nil {
		return nil, err
	}
	own.Rx.Caps = own.Caps
	if attr != nil {
		asked := *attr
		asked.Caps &^= info.Elsewhere(false, s.info.Caps)
		if err := s.domain.checkRx(what, &asked, own.Caps); err != nil {
			return nil, err
		}
		*own.Rx = completeRx(asked, *own.Rx)
		own.Rx.Caps, _ = info.CtxCaps(false, own.Rx.Caps, own.Caps) // checked
		own.Caps = own.Rx.Caps
	}
	given := *own.Rx
	// it sends answers only
	own.Tx = &fi.TxAttr{Size: 1, InjectSize: s.info.Tx.InjectSize, IOVLimit: wire.IOVLimit,
		TClass: s.info.Tx.TClass}
	e, err := s.openContext(s.rx, index, 0, own)
	if err == nil && attr != nil {
		*attr = given
	}
	return e, err
}

// contextInfo returns a copy of the endpoint's description with the
// capabilities of a context: those of its attributes, or all that apply if caps
// is 0. fi.EINVAL if there are no contexts of that direction.
func (s *Scalable) contextInfo(what string, tx bool, caps uint64) (*fi.Info, error) {
	caps, ok := info.CtxCaps(tx, caps, s.info.Caps)
	if !ok || caps&anyCounter == 0 {
		return nil, refuse(log.EPCtrl, fi.EINVAL,
			what+"not a direction of the endpoint, whose capabilities are %#x", s.info.Caps)
	}
	own := s.info.Clone()
	own.Caps = caps
	return own, nil
}

// openContext opens a context; open says which of its kind are, first is the
// number of the first one's interface.
func (s *Scalable) openContext(open []bool, index, first int, full *fi.Info) (*Endpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const what = "open context %d: "
	switch {
	case index < 0 || index >= len(open):
		return nil, refuse(log.EPCtrl, fi.EINVAL, what+"the endpoint has %d of that kind", index, len(open))
	case open[index]:
		return nil, refuse(log.EPCtrl, fi.EBUSY, what+"it is open", index)
	}
	e := newEndpoint(s.domain, full)
	e.base.scalable, e.base.context = s, uint8(first+index)
	if err := s.refs.Acquire(); err != nil {
		return nil, err
	}
	if e.base.allocateHot() != nil {
		s.refs.Release()
		return nil, fi.ENOMEM
	}
	open[index] = true
	return e, nil
}

// share gives a context that is about to be enabled what it shares with the
// others.
func (s *Scalable) share(e *Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.socket, e.base.name, e.base.bound.av = s.socket, s.name, s.av
	if s.av == nil {
		return // it is not enabled
	}
	s.named = true
	if s.mapper == nil {
		s.mapper = backends.NewMapper(s.socket, s.domain.dscp(s.info))
	}
}

// closed takes a context back.
func (s *Scalable) closed(e *Endpoint) {
	s.mu.Lock()
	if e.base.context >= peers.FirstTx {
		s.tx[e.base.context-peers.FirstTx] = false
	} else {
		s.rx[e.base.context] = false
	}
	s.mu.Unlock()
	s.refs.Release()
}

// Flags of binds that a context of each direction takes. Those of counters are
// the directions.
const (
	txCtxCQ    = fi.Transmit | fi.SelectiveCompletion
	rxCtxCQ    = fi.Recv | fi.SelectiveCompletion
	txCtxCntr  = fi.Send | fi.Read | fi.Write
	rxCtxCntr  = fi.Recv | fi.RemoteRead | fi.RemoteWrite
	anyCQ      = txCtxCQ | rxCtxCQ
	anyCounter = txCtxCntr | rxCtxCntr
)

// bindFlags are the flags with which a completion queue and a counter can be
// bound.
func (e *attributes) bindFlags() (queue, counter uint64) {
	switch {
	case e.scalable == nil:
		return anyCQ, anyCounter
	case e.context >= peers.FirstTx:
		return txCtxCQ, txCtxCntr
	}
	return rxCtxCQ, rxCtxCntr
}

// receivesOnly reports whether the endpoint is a receive context.
func (e *attributes) receivesOnly() bool { return e.scalable != nil && e.context < peers.FirstTx }

// sendsOnly reports whether an endpoint is a transmit context.
func sendsOnly(e *peering) bool { return e.scalable != nil && e.context >= peers.FirstTx }

// checkRx checks the attributes of a receive context whose endpoint has caps.
func (d *Domain) checkRx(what string, a *fi.RxAttr, caps uint64) error {
	return checkContext(what, a.OpFlags&^info.RxOpFlags, a.Caps&^caps, a.MsgOrder, a.CompOrder, a.Size, a.IOVLimit)
}

// checkContext checks what the attributes of both kinds of contexts have. flags and caps are what is not offered.
func checkContext(what string, flags, caps, msgOrder, compOrder, size, iovLimit uint64) error {
	switch {
	case flags != 0:
		return refuse(log.EPCtrl, fi.EBADFLAGS, what+"operation flags %#x", flags)
	case caps != 0:
		return refuse(log.EPCtrl, fi.EINVAL, what+"capabilities %#x are not offered", caps)
	case msgOrder&^info.MsgOrder != 0:
		return refuse(log.EPCtrl, fi.EINVAL, what+"message order %#x", msgOrder&^info.MsgOrder)
	case compOrder != fi.OrderNone:
		return refuse(log.EPCtrl, fi.EINVAL, what+"completion order %#x", compOrder)
	case size > info.MaxCtxSize:
		return refuse(log.EPCtrl, fi.EINVAL, what+"size %d, at most %d", size, info.MaxCtxSize)
	case iovLimit > info.IOVLimit:
		return refuse(log.EPCtrl, fi.EINVAL, what+"iov limit %d, at most %d", iovLimit, info.IOVLimit)
	}
	return nil
}

// completeRx sets what a leaves out.
func completeRx(a, base fi.RxAttr) fi.RxAttr {
	a.Mode = 0 // what the application could do, and need not
	a.TotalBufferedRecv = base.TotalBufferedRecv
	orElse(&a.Caps, base.Caps)
	orElse(&a.Size, base.Size)
	orElse(&a.IOVLimit, base.IOVLimit)
	return a
}

// orElse sets a field that is 0.
func orElse(field *uint64, v uint64) {
	if *field == 0 {
		*field = v
	}
}

// checkTx checks the attributes of a transmit context that can have caps.
func (d *Domain) checkTx(what string, a *fi.TxAttr, caps uint64) error {
	injectMax := uint64(d.cfg.InjectSize)
	err := checkContext(what, a.OpFlags&^info.TxOpFlags, a.Caps&^caps, a.MsgOrder, a.CompOrder, a.Size, a.IOVLimit)
	switch {
	case err != nil:
		return err
	case a.InjectSize > injectMax:
		return refuse(log.EPCtrl, fi.EINVAL, what+"inject size %d, at most %d", a.InjectSize, injectMax)
	case a.RMAIOVLimit > info.IOVLimit:
		return refuse(log.EPCtrl, fi.EINVAL, what+"rma iov limit %d, at most %d", a.RMAIOVLimit, info.IOVLimit)
	}
	if _, ok := fi.DSCP(a.TClass); !ok {
		return refuse(log.EPCtrl, fi.EINVAL, what+"traffic class %#x", a.TClass)
	}
	return nil
}

// completeTx returns a with the values of the domain where it has none.
func completeTx(a, domain fi.TxAttr) fi.TxAttr {
	a.Mode = 0 // what the application could do, and need not
	orElse(&a.Caps, domain.Caps)
	orElse(&a.Size, domain.Size)
	orElse(&a.InjectSize, domain.InjectSize)
	orElse(&a.IOVLimit, domain.IOVLimit)
	orElse(&a.RMAIOVLimit, domain.RMAIOVLimit)
	if a.TClass == fi.TCUnspec {
		a.TClass = domain.TClass
	}
	return a
}
