package provider

import (
	"sync"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/backends"
	"github.com/weft-fabric/weft/provider/internal/refs"
	"github.com/weft-fabric/weft/provider/names"
)

// Scalable is a scalable endpoint (fi_endpoint(3)): one name and one address
// vector, and transmit and receive contexts that are opened one by one. Each
// context is an [Endpoint] with one direction, with an interface of its own
// beside the others (see address), so contexts share nothing on the data path.
//
// What is sent to the name without the index of a receive context reaches the
// first one.
type Scalable struct {
	refs   refs.Count // users: open contexts
	domain *Domain
	info   *fi.Info // complete, immutable

	// mu serialises opening, enabling and closing. It is not on the data path.
	mu      sync.Mutex
	socket  *names.Socket
	name    names.Name
	av      *AV
	enabled bool
	named   bool   // a context uses the name: it stays
	tx, rx  []bool // which contexts are open, by index

	enabledCtxs []*Endpoint // contexts that are enabled, in the order of their join
	silent      []*Endpoint // receive contexts of these without a queue
	serving     []served    // what makes progress of them

	mapper *backends.Mapper // nil until a context is enabled
}

// OpenScalable opens a scalable endpoint. The numbers of contexts are those of
// info.EP; 0 stands for 1. Errors: fi.EINVAL (another type than fi.EPRDM, more
// contexts than GetInfo offers, fi.SharedContext, attributes beyond the limits),
// and those of the name: fi.EADDRINUSE, fi.EADDRNOTAVAIL, fi.EACCES, fi.EMFILE.
func (d *Domain) OpenScalable(info *fi.Info) (*Scalable, error) {
	if err := d.matchesNot("scalable endpoint"); err != nil {
		return nil, err
	}
	const what = "open scalable endpoint: "
	if info == nil || info.EP != nil && info.EP.Type != fi.EPRDM && info.EP.Type != fi.EPUnspec {
		return nil, refuse(log.EPCtrl, fi.EINVAL, what+"not of type FI_EP_RDM")
	}
	full, err := d.complete(info)
	if err != nil {
		return nil, err
	}
	tx, rx := full.EP.TxCtxCnt, full.EP.RxCtxCnt
	if tx > maxContexts || rx > maxContexts {
		return nil, refuse(log.EPCtrl, fi.EINVAL, what+"%#x transmit and %#x receive contexts, at most %d",
			tx, rx, maxContexts)
	}
	s := &Scalable{domain: d, info: full, tx: make([]bool, max(tx, 1)), rx: make([]bool, max(rx, 1))}
	if err := d.refs.Acquire(); err != nil {
		return nil, err
	}
	if s.socket, s.name, err = d.bindName(full.AddrFormat, full.SrcAddr); err != nil {
		d.refs.Release()
		return nil, err
	}
	return s, nil
}

// maxContexts is the most contexts of one direction.
const maxContexts = info.MaxCtx

// Info returns what the endpoint was opened with, completed.
func (s *Scalable) Info() *fi.Info { return s.info }

// Name returns the endpoint's address in its address format, which is that of
// its contexts too.
func (s *Scalable) Name() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return names.Encode(s.info.AddrFormat, s.name)
}

// SetName gives the endpoint another address, before it or one of its contexts
// is enabled. Errors: fi.EOPBADSTATE, and those of the name.
func (s *Scalable) SetName(raw []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.enabled || s.named {
		return fi.EOPBADSTATE
	}
	socket, name, err := s.domain.bindName(s.info.AddrFormat, raw)
	if err != nil {
		return err
	}
	s.socket.Close()
	s.socket, s.name = socket, name
	return nil
}

// BindAV binds the address vector of all contexts. Errors: fi.EOPBADSTATE
// (the endpoint is enabled), fi.EDOMAIN, fi.EBADFLAGS, fi.EINVAL (one is bound
// already).
func (s *Scalable) BindAV(a *AV, flags uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	const what = "bind scalable endpoint: "
	switch {
	case s.enabled:
		return refuse(log.EPCtrl, fi.EOPBADSTATE, what+"it is enabled")
	case a.Owner() != s.domain:
		return refuse(log.EPCtrl, fi.EDOMAIN, what+"address vector of another domain")
	case flags != 0:
		return refuse(log.EPCtrl, fi.EBADFLAGS, what+"flags %#x", flags)
	case s.av != nil:
		return refuse(log.EPCtrl, fi.EINVAL, what+"it has an address vector")
	}
	if err := a.Acquire(); err != nil {
		return err
	}
	s.av = a
	return nil
}

// Enable ends the binding. Contexts are enabled for themselves, before or after
// it. Errors: fi.EOPBADSTATE (it is enabled), fi.ENOAV.
func (s *Scalable) Enable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.enabled:
		return fi.EOPBADSTATE
	case s.av == nil:
		return refuse(log.EPCtrl, fi.ENOAV, "enable scalable endpoint: no address vector")
	}
	s.enabled = true
	return nil
}

// Close closes the endpoint. fi.EBUSY while contexts are open.
func (s *Scalable) Close() error {
	if err := s.refs.Close(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.av != nil {
		s.av.Release()
	}
	if s.mapper != nil {
		if err := s.mapper.Close(); err != nil {
			log.Warnf(log.EPCtrl, "close the port mapper of %s: %v", s.name, err)
		}
	}
	s.socket.Close()
	s.domain.refs.Release()
	return nil
}
