package provider

import (
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/refs"
)

// SharedRx is a shared receive context (fi_srx_context): a queue of receives
// that several endpoints deliver into. A receive completes on the queue of the
// endpoint that its message arrived at.
type SharedRx struct {
	refs   refs.Count
	domain *Domain
	attr   fi.RxAttr
	rx     *rxContext
	mu     sync.Mutex // serialises SetOpt and Close; not on the data path
}

// OpenSharedRx makes a shared receive context. A nil attr takes the defaults.
// Errors: fi.EINVAL for attributes beyond the limits, fi.ENOMEM.
func (d *Domain) OpenSharedRx(attr *fi.RxAttr) (*SharedRx, error) {
	if err := d.matchesNot("shared receive context"); err != nil {
		return nil, err
	}
	full, err := d.defaults().CompleteRx(attr)
	if err != nil {
		return nil, refuse(log.EPCtrl, fi.EINVAL, "open shared receive context: %v", err)
	}
	rx, err := newRxContext(d, full, d.exclusiveShared())
	if err != nil {
		return nil, fi.ENOMEM
	}
	rx.offload = d.hybrid()
	if err := d.refs.Acquire(); err != nil {
		rx.close()
		return nil, err
	}
	return &SharedRx{domain: d, attr: *full, rx: rx}, nil
}

// Attr is the context's attributes with every default filled in.
func (s *SharedRx) Attr() fi.RxAttr { return s.attr }

// HotRx is the table of plain words that C reads. It lives until Close.
func (s *SharedRx) HotRx() *hot.Rx { return s.rx.hot }

// SetHandle sets the handle by which C calls back.
func (s *SharedRx) SetHandle(h uint64) { s.rx.setHandle(h) }

// Rx is what C's handle of the receive context names.
func (s *SharedRx) Rx() *RxContext { return s.rx }

// PostRecv posts a receive. Errors as of Endpoint.PostRecv.
func (s *SharedRx) PostRecv(a *RecvArgs) error { return s.rx.PostRecv(a) }

// Cancel is Endpoint.Cancel for a receive posted here.
func (s *SharedRx) Cancel(context uint64) error {
	return s.rx.cancelContext(nil, context)
}

// Close ends the context. Errors: fi.EBUSY while endpoints are bound to it.
func (s *SharedRx) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refs.Close(); err != nil {
		return err
	}
	s.domain.work.Leave(s.rx)
	s.rx.close()
	s.domain.refs.Release()
	return nil
}

// Domain is the domain that the context belongs to.
func (s *SharedRx) Domain() *Domain { return s.domain }
