package provider

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/matched"
)

// Regions of a domain of matched endpoints with fi.MREndpoint. Peers reach each through the endpoint that it is bound
// to, by list entries of the endpoint's device: from Enable to Close.

// matchedMR is what such a region has, under MR.bindMu.
type matchedMR struct {
	ep     *MatchedEndpoint // that it is bound to, nil: none
	counts bool             // readers of the region's counter make progress at it
	region *matched.Region  // nil: peers do not reach it
}

// atEndpoints reports whether regions of the domain are those of matched endpoints.
func (d *Domain) atEndpoints() bool { return d.Matches() && d.info.Domain.MRMode&fi.MREndpoint != 0 }

// choosesKeys reports whether the device chooses the keys of the domain's regions, when they are enabled.
func (d *Domain) choosesKeys() bool { return d.atEndpoints() && d.info.Domain.MRMode&fi.MRProvKey != 0 }

// keyBytes is how long keys are that the application chooses.
func (d *Domain) keyBytes() uint64 { return d.info.Domain.MRKeySize }

// checkKey refuses a key that is too long for the domain's regions, of a region that peers are to reach. Errors:
// fi.EKEYREJECTED.
func (m *MR) checkKey() error {
	if n := m.domain.keyBytes(); m.domain.atEndpoints() && m.region.Remote() && n < 8 && m.key>>(8*n) != 0 {
		return refuse(log.MR, fi.EKEYREJECTED, "register memory: key %#x is longer than %d bytes", m.key, n)
	}
	return nil
}

// BindMatched ties the region to an endpoint, which stays open as long. Errors: as of BindEP, and fi.EOPBADSTATE
// after Enable.
func (m *MR) BindMatched(e *MatchedEndpoint, flags uint64) error {
	return m.bindEP(func() *Domain { return e.domain }, flags, func() error {
		if err := e.refs.Acquire(); err != nil {
			return err
		}
		m.matched.ep = e
		return nil
	})
}

// expose lets peers reach the region through its endpoint. Errors: fi.EOPBADSTATE for one that is not enabled, and what
// keeps the device from registering the memory; fi.EINVAL for a region with events of an endpoint without. A region
// that the device may have all the same stays until it can be closed. The caller has bindMu.
func (m *MR) expose() error {
	if !m.region.Remote() {
		return nil
	}
	if err := m.conceal(); err != nil {
		return refuse(log.MR, fi.ErrnoOf(err), "enable a memory region: the device may have it still: %v", err)
	}
	e := m.matched.ep
	t, err := e.enabled()
	if err != nil {
		return refuse(log.MR, fi.EOPBADSTATE, "enable a memory region: its endpoint is not enabled")
	}
	a := matched.RegionAttr{Key: m.key, Access: m.region.RemoteAccess(), Choose: m.domain.choosesKeys(),
		Notify: e.bound.rxCQ != nil, Context: m.context, Events: m.events}
	a.Written = m.writtenBy(e)
	if (m.events || a.Written != nil) && e.info.Caps&fi.RMAEvent == 0 {
		return refuse(log.MR, fi.EINVAL, "enable a memory region with events: its endpoint is without FI_RMA_EVENT")
	}
	if m.region.Length != 0 {
		a.Addr = uint64(m.region.Memory.Parts[0].Base)
		if a.Memory, err = m.registerWith(e); err != nil {
			return refuse(log.MR, matched.Errno(err), "enable a memory region: %v", err)
		}
	}
	e.gate.Share()
	m.matched.region, err = t.Expose(&a)
	e.gate.Unshare()
	if err != nil {
		return err
	}
	if err := m.count(e); err != nil {
		return errors.Join(err, m.conceal())
	}
	m.key = m.matched.region.Key()
	return nil
}

// conceal ends what peers reach, if there is anything. The caller has bindMu.
func (m *MR) conceal() error {
	if m.matched.region == nil {
		return nil
	}
	e := m.matched.ep
	e.gate.Share()
	err := m.matched.region.Close()
	e.gate.Unshare()
	if err != nil {
		return err
	}
	m.matched.region = nil
	return nil
}

// count has readers of the region's counter make progress at an endpoint. The caller has bindMu.
func (m *MR) count(e *MatchedEndpoint) error {
	c := m.region.Counter.Load()
	if c == nil {
		return nil
	}
	if err := c.Attach(e.hot); err != nil {
		return err
	}
	if err := c.AddSource(e.wakes); err != nil {
		return errors.Join(err, c.Detach(e.hot))
	}
	m.matched.counts = true
	return nil
}

// countNot takes that back.
func (m *MR) countNot(e *MatchedEndpoint) {
	c := m.region.Counter.Load()
	_ = c.RemoveSource(e.wakes) // it is there
	_ = c.Detach(e.hot)         // the same
}

// writtenBy returns what counts a write of a peer's that reaches the region through an endpoint; nil: nothing does.
func (m *MR) writtenBy(e *MatchedEndpoint) func(bytes uint64) {
	own, all := m.region.Counter.Load(), e.bound.remoteWriteCntr.Load()
	switch {
	case all == nil && own == nil:
		return nil
	case all == nil:
		return own.Done
	case own == nil:
		return all.Done
	}
	return func(bytes uint64) {
		own.Done(bytes)
		all.Done(bytes)
	}
}

// registerWith registers the region's memory with the device of an endpoint.
func (m *MR) registerWith(e *MatchedEndpoint) (hw.Memory, error) {
	device, err := e.domain.device.Domain()
	if err != nil {
		return nil, err
	}
	r := hw.Region{Addr: m.region.HW().Addr, Len: int(m.region.Length)}
	if m.region.Rights&fi.RemoteWrite != 0 {
		r.Access = hw.LocalWrite
	}
	return device.Register(r)
}

// leaveEndpoint ends what expose and BindMatched have begun. A device that does not let go of the memory keeps its
// registration.
func (m *MR) leaveEndpoint() {
	m.bindMu.Lock()
	defer m.bindMu.Unlock()
	own := &m.matched
	if own.ep == nil {
		return
	}
	if err := m.conceal(); err != nil {
		log.Warnf(log.MR, "close a memory region: %v", err)
	}
	if own.counts {
		m.countNot(own.ep)
	}
	own.ep.refs.Release()
	*own = matchedMR{}
}
