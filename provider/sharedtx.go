package provider

import (
	"github.com/weft-fabric/weft/fi"
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
