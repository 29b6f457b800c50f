package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/info"
	"github.com/weft-fabric/weft/provider/refs"
)

// SharedTx is a shared transmit context (fi_stx_context): transmit attributes
// that several endpoints have in common.
type SharedTx struct {
	domain *Domain
	attr   fi.TxAttr  // immutable
	refs   refs.Count // users: bound endpoints
}

// OpenSharedTx opens a shared transmit context. A nil attr means the domain's
// attributes, and so does each size that is 0. Errors: fi.EINVAL for more than
// [GetInfo] offers (sizes, capabilities, order), fi.EBADFLAGS for
// operation flags that cannot be defaults.
func (d *Domain) OpenSharedTx(attr *fi.TxAttr) (*SharedTx, error) {
	if err := d.matchesNot("shared transmit context"); err != nil {
		return nil, err
	}
	s := &SharedTx{domain: d}
	if d.info.Tx != nil {
		s.attr = *d.info.Tx
	}
	if attr != nil {
		if err := d.checkTx("open shared transmit context: ", attr, d.info.Caps); err != nil {
			return nil, err
		}
		s.attr = completeTx(*attr, s.attr)
	}
	if err := d.refs.Acquire(); err != nil {
		return nil, err
	}
	return s, nil
}

// checkTx checks the attributes of a transmit context that can have caps.
func (d *Domain) checkTx(what string, a *fi.TxAttr, caps uint64) error {
	injectMax := uint64(d.cfg.InjectSize)
	switch {
	case a.OpFlags&^info.TxOpFlags != 0:
		return refuse(log.EPCtrl, fi.EBADFLAGS, what+"operation flags %#x", a.OpFlags&^info.TxOpFlags)
	case a.Caps&^caps != 0:
		return refuse(log.EPCtrl, fi.EINVAL, what+"capabilities %#x are not offered", a.Caps&^caps)
	case a.MsgOrder&^info.MsgOrder != 0:
		return refuse(log.EPCtrl, fi.EINVAL, what+"message order %#x", a.MsgOrder&^info.MsgOrder)
	case a.CompOrder != fi.OrderNone:
		return refuse(log.EPCtrl, fi.EINVAL, what+"completion order %#x", a.CompOrder)
	case a.Size > info.MaxCtxSize:
		return refuse(log.EPCtrl, fi.EINVAL, what+"size %d, at most %d", a.Size, info.MaxCtxSize)
	case a.InjectSize > injectMax:
		return refuse(log.EPCtrl, fi.EINVAL, what+"inject size %d, at most %d", a.InjectSize, injectMax)
	case a.IOVLimit > info.IOVLimit:
		return refuse(log.EPCtrl, fi.EINVAL, what+"iov limit %d, at most %d", a.IOVLimit, info.IOVLimit)
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

// Attr returns the context's attributes. They must not be changed.
func (s *SharedTx) Attr() *fi.TxAttr { return &s.attr }

// Close closes the context. fi.EBUSY while endpoints are bound to it.
func (s *SharedTx) Close() error {
	if err := s.refs.Close(); err != nil {
		return err
	}
	s.domain.refs.Release()
	return nil
}
