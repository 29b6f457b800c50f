package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/info"
)

// SharedTx is a shared transmit context (fi_stx_context): transmit attributes
// that several endpoints have in common.
type SharedTx struct {
	domain *Domain
	attr   fi.TxAttr // immutable
	refs   refs      // users: bound endpoints
}

// OpenSharedTx opens a shared transmit context. A nil attr means the domain's
// attributes, and so does each size that is 0. Errors: fi.EINVAL for more than
// [GetInfo] offers (sizes, capabilities, order), fi.EBADFLAGS for
// operation flags that cannot be defaults.
func (d *Domain) OpenSharedTx(attr *fi.TxAttr) (*SharedTx, error) {
	s := &SharedTx{domain: d}
	if d.info.Tx != nil {
		s.attr = *d.info.Tx
	}
	if attr != nil {
		if err := d.checkSharedTx(attr); err != nil {
			return nil, err
		}
		s.attr = completeTx(*attr, s.attr)
	}
	if err := d.refs.acquire(); err != nil {
		return nil, err
	}
	return s, nil
}

func (d *Domain) checkSharedTx(a *fi.TxAttr) error {
	caps, injectMax := d.info.Caps, uint64(d.cfg.InjectSize)
	const what = "open shared transmit context: "
	switch {
	case a.OpFlags&^info.TxOpFlags != 0:
		return refuse(log.EPCtrl, fi.EBADFLAGS, what+"operation flags %#x", a.OpFlags&^info.TxOpFlags)
	case a.Caps&^caps != 0:
		return refuse(log.EPCtrl, fi.EINVAL, what+"capabilities %#x are not the domain's", a.Caps&^caps)
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
	case a.RMAIOVLimit != 0:
		return refuse(log.EPCtrl, fi.EINVAL, what+"rma iov limit %d without rma", a.RMAIOVLimit)
	}
	return nil
}

// completeTx returns a with the values of the domain where it has none.
func completeTx(a, domain fi.TxAttr) fi.TxAttr {
	set := func(p *uint64, v uint64) {
		if *p == 0 {
			*p = v
		}
	}
	a.Mode = 0 // what the application could do, and need not
	set(&a.Caps, domain.Caps)
	set(&a.Size, domain.Size)
	set(&a.InjectSize, domain.InjectSize)
	set(&a.IOVLimit, domain.IOVLimit)
	return a
}

// Attr returns the context's attributes. They must not be changed.
func (s *SharedTx) Attr() *fi.TxAttr { return &s.attr }

// Close closes the context. fi.EBUSY while endpoints are bound to it.
func (s *SharedTx) Close() error {
	if err := s.refs.close(); err != nil {
		return err
	}
	s.domain.refs.release()
	return nil
}
