package provider

import (
	"sync"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/refs"
	"github.com/weft-fabric/weft/provider/internal/region"
)

// MR is a memory region: memory of the process that the application has
// registered, for peers to access under its key. weft needs no registration
// for the memory of its own side. Its methods may be called from any thread.
type MR struct {
	domain  *Domain
	refs    refs.Count
	context uint64 // of the registration, immutable
	key     uint64 // immutable, but that a device chooses when the region is enabled: bindMu
	events  bool   // the application asks for FI_RMA_EVENT; immutable
	region  region.Region[MR]

	bindMu  sync.Mutex // control operations only
	ep      *Endpoint  // that it is bound to, nil: none; bindMu
	enabled bool       // peers may ask for it; bindMu
	matched matchedMR  // the same of a matched endpoint
}

// RegMR registers memory, at once; see [MR.Complete] for applications that expect
// it to take time. The addresses need not be mapped, as long as nothing
// is transferred there.
//
// The key is the requested one, or chosen at random if the domain was opened
// with fi.MRBasic or fi.MRProvKey. It is unique among the domain's regions with remote
// rights; for others the requested key is kept, but means nothing. In a domain of endpoints of
// the CXI protocol peers reach the region from [MR.Enable] on. With fi.MRSingleUse the key is
// unused once a peer's operation on the region is done.
//
// As with other providers, a region may have no bytes, and what attr has beside is not
// read: bits of attr.Access that are no rights, attr.Offset.
//
// In a domain opened with fi.HMEM attr says what kind of memory it is: the
// process's own, that of a GPU (fi.HMEMCUDA), or with fi.MRDMABuf a dma-buf. Others
// have memory of their own only, and the kind is not read.
//
// In a domain with authorisation keys in address vectors attr.AV has those of the
// region, and attr.Src restricts it to one address, or with fi.AuthKey to one key, if
// the domain has fi.DirectedRecv. In one of matched endpoints a region is reached by all keys of its endpoint.
//
// Errors: fi.EBADFLAGS for flags (there is no persistent memory) but fi.MRSingleUse, fi.RMAEvent,
// which every region can do, fi.AuthKey and those about the kind of memory with fi.HMEM; fi.ENOSYS
// for a kind that weft does not know or that this host does not have, and for several parts in a domain of matched
// endpoints; fi.EINVAL for no or too many parts, one that wraps around the address
// space, an authorisation key that is too long, memory that is not of
// the kind, a range beyond a dma-buf, and an address vector without keys; fi.ENOKEY if the
// requested key is in use; fi.EKEYREJECTED if it is fi.KeyNotAvail or longer than the domain's keys; what the system
// says about a dma-buf.
func (d *Domain) RegMR(attr *fi.MRAttr, flags uint64) (*MR, error) {
	if attr == nil {
		return nil, fi.EINVAL
	}
	o := d.regionOptions()
	if err := o.Check(attr, flags); err != nil {
		return nil, refuse(log.MR, fi.ErrnoOf(err), "register memory: %v", err)
	}
	auth, err := authkey.New(attr.AuthKey, attr.AuthKeySize, d.auth)
	if err != nil {
		return nil, refuse(log.MR, fi.EINVAL, "register memory: %v", err)
	}
	scope, err := d.newScope(attr, flags)
	if err != nil {
		return nil, refuse(log.MR, fi.ErrnoOf(err), "register memory: %v", err)
	}
	m, err := d.regMR(attr, flags, auth, scope)
	if err != nil {
		scope.End()
	}
	return m, err
}

// regMR registers memory with checked attributes, for callers that have a key or are in a scope.
func (d *Domain) regMR(attr *fi.MRAttr, flags uint64, auth authkey.Key, scope *region.Scope) (*MR, error) {
	m := &MR{domain: d, events: flags&fi.RMAEvent != 0, context: uint64(attr.Context), key: attr.RequestedKey}
	m.region.Owner, m.region.Auth, m.region.Scope = m, auth, scope
	o := d.regionOptions()
	if err := m.region.Init(attr, flags, &o); err != nil {
		return nil, refuse(log.MR, fi.ErrnoOf(err), "register device memory: %v", err)
	}
	if err := d.refs.Acquire(); err != nil {
		m.region.Memory.Leave(d.cfg.PeerTimeout)
		return nil, err
	}
	d.regions.Describe(&m.region)
	var err error
	switch {
	case d.choosesKeys(): // when it is enabled
	case d.atEndpoints():
		err = m.take(false)
	default:
		err = m.open()
	}
	if err != nil {
		d.regions.Remove(&m.region)
		d.refs.Release()
		m.region.Memory.Leave(d.cfg.PeerTimeout)
		return nil, err
	}
	return m, nil
}

// take gives the region its key, a random one or the one that was requested.
func (m *MR) take(random bool) error {
	if err := m.checkKey(); err != nil {
		return err
	}
	key, err := m.domain.regions.Add(&m.region, m.key, random)
	if err != nil {
		return refuse(log.MR, fi.ErrnoOf(err), "register memory with key %#x: %v", m.key, err)
	}
	m.key = key
	return nil
}

// regionOptions are what the domain's regions have in common.
func (d *Domain) regionOptions() region.Options {
	return region.Options{Keyed: d.Keyed(), Device: d.hmem(), Matched: d.Matches(),
		Addressed: d.info.Domain.MRMode&(fi.MRBasic|fi.MRVirtAddr) != 0, PeerTimeout: d.cfg.PeerTimeout}
}

// open gives the region its key and lets peers ask for it.
func (m *MR) open() error {
	if err := m.take(m.domain.info.Domain.MRMode&(fi.MRBasic|fi.MRProvKey) != 0); err != nil {
		return err
	}
	m.region.Publish(&m.domain.published, m.key)
	if m.region.Remote() {
		m.domain.mappings.Offer(m.key)
	}
	m.enabled = true
	return nil
}

// Key returns the region's key: fi.KeyNotAvail of a matched endpoint's that peers do not reach, or not before Enable.
func (m *MR) Key() uint64 {
	m.bindMu.Lock()
	defer m.bindMu.Unlock()
	if !m.enabled || m.domain.atEndpoints() && !m.region.Remote() {
		return fi.KeyNotAvail
	}
	return m.key
}

// Desc returns the region's descriptor. Transfers need it for memory of a
// device only. It is never 0.
func (m *MR) Desc() uint64 { return m.region.Desc() }

// BindCounter counts what peers write into the region (FI_RMA_EVENT), for
// flags fi.RemoteWrite. A reader of the counter makes progress of the domain's
// endpoints, any of which peers may write through. Errors: fi.EBADFLAGS for
// other flags, fi.EINVAL for a second counter, and without FI_RMA_EVENT in a domain
// of FI_THREAD_COMPLETION whose endpoints one thread at a time uses, fi.EOPBADSTATE
// for a region of a matched endpoint that is enabled, or what stopped the system from
// giving descriptors to a counter that can be slept on.
func (m *MR) BindCounter(c *cq.Counter, flags uint64) error {
	if flags != fi.RemoteWrite {
		return refuse(log.MR, fi.EBADFLAGS, "bind counter to a memory region: flags %#x", flags)
	}
	if !m.domain.queues.Has(c) {
		return fi.EDOMAIN
	}
	if exclusive, _ := m.domain.exclusive(); exclusive && m.domain.threading() == fi.ThreadCompletion {
		return refuse(log.MR, fi.EINVAL, "bind counter to a memory region: the domain has FI_THREAD_COMPLETION and "+
			"not FI_RMA_EVENT")
	}
	m.bindMu.Lock()
	defer m.bindMu.Unlock()
	if m.domain.Matches() && m.enabled {
		return refuse(log.MR, fi.EOPBADSTATE, "bind counter to a memory region: it is enabled")
	}
	if m.region.Counter.Load() != nil {
		return refuse(log.MR, fi.EINVAL, "bind counter to a memory region: one is bound already")
	}
	if err := m.domain.drives.Drive(c); err != nil {
		return fi.ErrnoOf(err)
	}
	c.Retain()
	m.region.Counter.Store(c)
	m.region.Withdraw()
	return nil
}

// BindEP ties the region to an endpoint, which stays open as long. weft's regions belong to the domain: peers reach it
// through the domain's other endpoints, too, and from the start. Errors: fi.EBADFLAGS unless flags is 0, fi.EDOMAIN,
// fi.EINVAL for a second endpoint.
func (m *MR) BindEP(e *Endpoint, flags uint64) error {
	return m.bindEP(func() *Domain { return e.base.domain }, flags, func() error {
		if err := e.base.refs.Acquire(); err != nil {
			return err
		}
		m.ep = e
		return nil
	})
}

// bindEP has bind tie the region to an endpoint, of the domain that of returns.
func (m *MR) bindEP(of func() *Domain, flags uint64, bind func() error) error {
	const what = "bind endpoint to a memory region: "
	m.bindMu.Lock()
	defer m.bindMu.Unlock()
	switch {
	case flags != 0:
		return refuse(log.MR, fi.EBADFLAGS, what+"flags %#x", flags)
	case of() != m.domain:
		return refuse(log.MR, fi.EDOMAIN, what+"it is another domain's")
	case m.ep != nil || m.matched.ep != nil:
		return refuse(log.MR, fi.EINVAL, what+"one is bound already")
	case m.enabled && m.domain.Matches():
		return refuse(log.MR, fi.EOPBADSTATE, what+"it is enabled")
	}
	return bind()
}

// Complete reports the registration as complete if the domain has an event
// queue for registrations. The caller calls it once, when the application can
// find the region; fid is the address of the C object, which the event names.
func (m *MR) Complete(fid uintptr) {
	m.domain.mu.Lock()
	defer m.domain.mu.Unlock()
	if q := m.domain.mrEvents; q != nil {
		q.Post(eq.Completion(fi.MRComplete, fid, m.context, 0))
	}
}

// Enable lets peers reach the region, in a domain of endpoints of the CXI protocol; in others they do from the start.
// Errors: fi.EINVAL without an endpoint, and those about keys of RegMR.
func (m *MR) Enable() error {
	m.bindMu.Lock()
	defer m.bindMu.Unlock()
	switch {
	case m.enabled:
		return nil
	case m.matched.ep == nil:
		return refuse(log.MR, fi.EINVAL, "enable a memory region: no endpoint is bound to it")
	}
	err := m.expose()
	m.enabled = err == nil
	return err
}

// Close takes the registration back. When it returns no peer accesses the
// memory any more; transfers of this side that use it go on.
func (m *MR) Close() error {
	if err := m.refs.Close(); err != nil {
		return err
	}
	m.leaveEndpoint() // its key may be another region's afterwards
	m.domain.regions.Remove(&m.region)
	m.region.Withdraw()
	m.region.Gate.Shut()
	m.domain.device.Forget(&m.region.Memory)
	m.region.Memory.Leave(m.domain.cfg.PeerTimeout)
	m.region.Scope.End()
	if c := m.region.Counter.Load(); c != nil {
		c.Release()
	}
	if m.ep != nil {
		m.ep.base.refs.Release()
	}
	m.domain.refs.Release()
	return nil
}
