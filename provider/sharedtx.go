package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
)

// SharedTx is a shared transmit context (fi_stx_context): transmit attributes
// that several endpoints have in common. An endpoint that is bound to it keeps the
// attributes, so that it may be closed before its endpoints: SHMEM libraries do so.
type SharedTx struct {
	domain *Domain
	attr   fi.TxAttr   // immutable
	closed atomic.Bool // set by Close, read by binds; nothing else depends on its order
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

// Close closes the context, to which no further endpoint can be bound. Those that are bound send
// on. fi.EBADF for one that is closed already.
func (s *SharedTx) Close() error {
	if s.closed.Swap(true) {
		return fi.EBADF
	}
	s.domain.refs.Release()
	return nil
}

// open fails with fi.EBADF once the context is closed.
func (s *SharedTx) open() error {
	if s.closed.Load() {
		return fi.EBADF
	}
	return nil
}
