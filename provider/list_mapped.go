package provider

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/wire"
	"github.com/weft-fabric/weft/provider/token"
)

// Mappings by which lists (package list) copy elements with memory of a device, here or at a peer on this host: what
// says which regions there are mappings of, the side that maps, and the owner's.

// whyNotMapped says why elements with memory of a device do not go by WayIPC to the region, "" if they do as
// far as the token says. local is an address on this side.
func (r *Remote) whyNotMapped(local uint64) string {
	cfg := r.ep.domain.cfg
	switch {
	case !cfg.TokenWays.IPC:
		return turnedOff
	case cfg.HMEMMapSize == 0:
		return "turned off by FI_WEFT_HMEM_MAP_SIZE"
	case r.ep.orderedRMA():
		return "the endpoint keeps one-sided operations in order"
	case r.ep.p2p.Load() == fi.HMEMP2PDisabled:
		return "the endpoint may not map memory of devices"
	}
	there, here, why := r.process()
	switch {
	case why != "":
		return why
	case there.PIDNS != here.PIDNS || there.NetNS != here.NetNS:
		return "the owner is in another namespace"
	case there.PID == here.Self.PID:
		return ""
	case r.about.Kind == token.Host && hmem.OnDevice(local) && cfg.Service != config.No:
		return "" // the owner maps it
	case r.about.Kind == token.Host:
		return "the memory there is host memory"
	}
	if _, ok := r.devicePart(); !ok && !r.byKey {
		return "the owner has not offered its memory to be mapped"
	}
	return ""
}

// process returns which process the owner is, and which this one, or why they share no memory.
func (r *Remote) process() (there token.IPC, here proc.Host, why string) {
	body, _ := r.about.Find(token.PartIPC)
	there, ok := token.ParseIPC(body)
	here, err := proc.This()
	switch {
	case r.ep.apart:
		return there, here, "the endpoint shares no memory with peers"
	case !ok || err != nil:
		return there, here, "the owner shares no memory with peers"
	case there.BootID != here.BootID:
		return there, here, "the owner is on another host"
	}
	return there, here, ""
}

// mappedRegions are regions of one owner, by key, as one post of a list reaches them.
type mappedRegions struct {
	regions map[uint64]*mappedRegion
	batch   cuda.Batch
	read    bool
}

// mapRegions reaches regions. near is memory whose context is to be used.
func mapRegions(regions []list.Region, read bool, near uint64) *mappedRegions {
	s := &mappedRegions{regions: map[uint64]*mappedRegion{}, read: read}
	for _, r := range regions {
		if key := r.About().Key; s.regions[key] == nil { // two remotes of one token have one
			s.regions[key] = r.(*Remote).mapRegion(read, near)
		}
	}
	return s
}

// Reach is how the region of a key is reached.
func (s *mappedRegions) Reach(key uint64) list.Reach {
	switch m := s.regions[key]; {
	case m.err == nil && m.own == nil && m.use == nil:
		return list.Reach{By: list.ByOwner, Owner: list.Owner{
			PID: m.pid, Incarnation: m.ask.Incarnation, Key: m.ask.Key, Rights: m.ask.Rights,
		}}
	case m.err == nil:
		return list.Reach{By: list.ByCopy}
	case errors.Is(m.err, fi.EIO):
		return list.Reach{By: list.ByNone, Err: m.err}
	}
	return list.Reach{By: list.ByMessage}
}

// Copy copies an element, or begins to.
func (s *mappedRegions) Copy(el *dataplane.Element) error {
	return s.regions[el.Key].copy(&s.batch, el, s.read)
}

// Wait waits for copies that are begun.
func (s *mappedRegions) Wait() error { return s.batch.Wait() }

// Failed is the outcome of an element in the region of a key that has failed.
func (s *mappedRegions) Failed(key uint64, driver bool) fi.Errno {
	for _, m := range s.regions {
		if driver && m.use != nil && m.err == nil {
			m.use.Fail() // any of them
		}
	}
	if m := s.regions[key]; m.own == nil {
		return driverError(proc.Process{PID: uint32(m.pid)})
	}
	return fi.EIO
}

// End ends the accesses.
func (s *mappedRegions) End() {
	for _, m := range s.regions {
		m.end()
	}
}

// mappedRegion is a peer's region, as one post of a list reaches it.
type mappedRegion struct {
	base   uint64      // by which elements name the first byte
	own    *peerRegion // of this process, its gate entered; or nil and
	use    *cuda.Use   // of another one's allocation; or nil and the owner copies
	offset uint64      // of base in the region or the allocation
	err    error       // it cannot be reached so; wraps fi.EIO: nor otherwise

	pid int                // of the owner
	ask wire.RegionRequest // what it is asked by
}

// end ends the accesses.
func (m *mappedRegion) end() {
	if m.own != nil {
		m.own.Gate.Leave()
	}
	if m.use != nil {
		m.use.Release()
	}
}

// copy copies an element, or begins to.
func (m *mappedRegion) copy(batch *cuda.Batch, el *dataplane.Element, read bool) error {
	at := el.Remote - m.base + m.offset
	if m.own != nil {
		remote := uint64(m.own.Memory.Parts[0].Base) + at
		if read {
			return hmem.Copy(batch, el.Local, remote, el.Len)
		}
		return hmem.Copy(batch, remote, el.Local, el.Len)
	}
	return m.use.Mapping().(*hmem.Mapping).Copy(batch, el.Local, at, el.Len, read)
}

// mapRegion reaches the region, which may be there no more. near is memory whose context is to be
// used.
func (r *Remote) mapRegion(read bool, near uint64) *mappedRegion {
	rights := fi.RemoteWrite
	if read {
		rights = fi.RemoteRead
	}
	there, here, why := r.process()
	m := &mappedRegion{
		base: r.about.Base, pid: int(there.PID),
		ask: wire.RegionRequest{
			Incarnation: r.about.Incarnation, Key: r.about.Key, Rights: rights,
			Addr: r.about.Base, Length: r.about.Length,
		},
	}
	switch {
	case why != "":
		m.err = errors.New(why)
	case there.PID == here.Self.PID:
		var status proxy.Status
		if m.own, status = regionOfToken(r.about.Incarnation, r.about.Key, rights); status != proxy.StatusOK {
			m.err = fmt.Errorf("region %#x: %v", r.about.Key, status)
		} else if !m.own.Covers(r.about.Base, r.about.Length) {
			m.err = fmt.Errorf("region %#x has not %d bytes at %#x", r.about.Key, r.about.Length, r.about.Base)
		} else {
			m.offset = r.about.Base - m.own.Base
		}
	case r.about.Kind == token.Host:
		m.err = r.ep.domain.importer.Enter() // its connections end with the domain
	default:
		m.err = m.mapFrom(r, near)
	}
	if m.err != nil {
		log.Infof(log.EPData, "elements of lists in device memory go as messages: %v", m.err)
	}
	return m
}

// mapFrom asks the owner where the region is, and maps that.
func (m *mappedRegion) mapFrom(r *Remote, near uint64) error {
	pid, rights := m.pid, m.ask.Rights
	body, err := hmem.Ask(pid, proxy.KindRegion, m.ask.Append(nil))
	if s := (*proxy.StatusError)(nil); errors.As(err, &s) && s.Status == proxy.StatusStale {
		return fmt.Errorf("region %#x is of memory that was freed: %w", r.about.Key, fi.EIO)
	}
	if err != nil {
		return err
	}
	var answer wire.RegionAnswer
	if !answer.Parse(body) {
		return fmt.Errorf("process %d answers %d bytes about a region", pid, len(body))
	}
	a := cuda.Foreign{PID: pid, Token: answer.Token, Buffer: answer.Buffer}
	if part, ok := r.devicePart(); ok && (part.Offset != answer.Offset || part.Buffer != answer.Buffer) {
		return fmt.Errorf("region %#x is at %d of memory %d, the token says at %d of %d: %w", r.about.Key,
			answer.Offset, answer.Buffer, part.Offset, part.Buffer, fi.EIO)
	}
	d := r.ep.domain
	use, err := d.importer.Acquire(a, d.ipcLimits(), near, r.ep.info.Caps&fi.HMEM != 0 && cuda.Load() == nil)
	if err != nil {
		return err
	}
	f := use.Mapping().(*hmem.Mapping)
	m.offset = answer.Offset
	if m.offset > f.Size() || r.about.Length > f.Size()-m.offset || rights == fi.RemoteWrite && !f.Writable() {
		use.Release()
		return fmt.Errorf("process %d offers %d bytes at %d of %d", pid, r.about.Length, m.offset, f.Size())
	}
	m.use = use
	return nil
}

// answerRegion says to another process how to map a region, or why it cannot.
func answerRegion(r *proxy.Request) {
	var q wire.RegionRequest
	if !q.Parse(r.Body) {
		r.Reply(proxy.StatusBad, nil)
		return
	}
	m, status := regionOfToken(q.Incarnation, q.Key, q.Rights)
	if m == nil {
		r.Reply(status, nil)
		return
	}
	defer m.Gate.Leave()
	addr := m.At(q.Addr)
	if !hmem.OnDevice(uint64(m.Memory.Parts[0].Base)) || !m.Covers(q.Addr, q.Length) {
		r.Reply(proxy.StatusRefused, nil)
		return
	}
	buffer := hmem.BufferOf(addr, q.Length)
	if m.Memory.Shares[0].Buffer() != buffer {
		log.Warnf(log.MR, "process %d asks for region %#x, whose memory was freed", r.PID, q.Key)
		r.Reply(proxy.StatusStale, nil)
		return
	}
	handle, offset, ok := m.Owner.domain.shareFor(addr, q.Length)
	if !ok {
		m.Hide()
		r.Reply(proxy.StatusRefused, nil)
		return
	}
	answer := wire.RegionAnswer{Token: handle, Buffer: buffer, Offset: offset}
	r.Reply(proxy.StatusOK, answer.Append(nil))
}

// devicePart is what a token says of where the region is for processes that map its memory. False: they cannot.
func (m *MR) devicePart() (token.Part, bool) {
	if len(m.region.Memory.Shares) != 1 || !m.region.InOnePart() {
		return token.Part{}, false
	}
	s, typ := m.region.Memory.Shares[0], token.PartCUDA
	if m.region.Memory.DMABuf != nil {
		typ = token.PartDMABuf
	}
	_, offset, ok := m.domain.shareFor(uint64(m.region.Memory.Parts[0].Base), m.region.Length)
	if !ok {
		return token.Part{}, false
	}
	d := token.Device{Allocation: cuda.Pointer(s.Base()), Offset: offset, Buffer: s.Buffer()}
	return token.Part{Type: typ, Body: d.Append(nil)}, true
}

// devicePart is what the token says of where in an allocation the region is. False: it does not.
func (r *Remote) devicePart() (token.Device, bool) {
	for _, typ := range [...]uint16{token.PartCUDA, token.PartDMABuf} {
		if body, ok := r.about.Find(typ); ok {
			return token.ParseDevice(body)
		}
	}
	return token.Device{}, false
}

// regionOfToken returns a region of this process that others may access without its taking part, and enters its gate.
// Else the status says why not.
func regionOfToken(incarnation, key, rights uint64) (*peerRegion, proxy.Status) {
	e := endpointOf(incarnation)
	if e == nil {
		return nil, proxy.StatusNone
	}
	m := e.domain.regions.Enter(key)
	if m == nil {
		return nil, proxy.StatusNone
	}
	if m.Rights&rights != rights || rights == 0 || !m.InOnePart() || m.Single || !m.OpenToAll("") ||
		m.Counter.Load() != nil || e.counted() || e.apart || e.p2p.Load() == fi.HMEMP2PDisabled {
		m.Gate.Leave()
		return nil, proxy.StatusRefused
	}
	return m, proxy.StatusOK
}

// endpointOf returns the process's enabled endpoint of an incarnation, nil if there is none.
func endpointOf(incarnation uint64) *Endpoint {
	e, _ := enabled.Find(func(e *Endpoint) bool { return e.incarnation == incarnation })
	return e
}
