package mapping

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fi"
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

// The side that maps: peers' regions as one post of a list reaches them.

// Regions are regions of one owner, by key, as one post of a list reaches them.
type Regions struct {
	regions map[uint64]*region
	batch   cuda.Batch
	read    bool
}

// Map reaches regions of one owner, each a [Remote] too, for lists of an endpoint of the domain. device: the
// endpoint has memory of devices. near is memory whose context is to be used.
func (d *Domain) Map(regions []list.Region, device, read bool, near uint64) *Regions {
	s := &Regions{regions: map[uint64]*region{}, read: read}
	for _, r := range regions {
		if key := r.About().Key; s.regions[key] == nil { // two remotes of one token have one
			s.regions[key] = d.region(r.(Remote), device, read, near)
		}
	}
	return s
}

// Reach is how the region of a key is reached.
func (s *Regions) Reach(key uint64) list.Reach {
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
func (s *Regions) Copy(el *dataplane.Element) error {
	return s.regions[el.Key].copy(&s.batch, el, s.read)
}

// Wait waits for copies that are begun.
func (s *Regions) Wait() error { return s.batch.Wait() }

// Failed is the outcome of an element in the region of a key that has failed.
func (s *Regions) Failed(key uint64, driver bool) fi.Errno {
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
func (s *Regions) End() {
	for _, m := range s.regions {
		m.end()
	}
}

// region is a peer's region, as one post of a list reaches it.
type region struct {
	base   uint64    // by which elements name the first byte
	own    Own       // of this process; or nil and
	use    *cuda.Use // of another one's allocation; or nil and the owner copies
	offset uint64    // of base in the allocation
	err    error     // it cannot be reached so; wraps fi.EIO: nor otherwise

	pid int                // of the owner
	ask wire.RegionRequest // what it is asked by
}

// end ends the accesses.
func (m *region) end() {
	if m.own != nil {
		m.own.Leave()
	}
	if m.use != nil {
		m.use.Release()
	}
}

// copy copies an element, or begins to.
func (m *region) copy(batch *cuda.Batch, el *dataplane.Element, read bool) error {
	if m.own != nil {
		remote := m.own.At(el.Remote)
		if read {
			return hmem.Copy(batch, el.Local, remote, el.Len)
		}
		return hmem.Copy(batch, remote, el.Local, el.Len)
	}
	at := el.Remote - m.base + m.offset
	return m.use.Mapping().(*hmem.Mapping).Copy(batch, el.Local, at, el.Len, read)
}

// region reaches a region, which may be there no more.
func (d *Domain) region(r Remote, device, read bool, near uint64) *region {
	rights := fi.RemoteWrite
	if read {
		rights = fi.RemoteRead
	}
	t := r.Token()
	pid, own, why := r.Process()
	m := &region{
		base: t.Base, pid: pid,
		ask: wire.RegionRequest{
			Incarnation: t.Incarnation, Key: t.Key, Rights: rights, Addr: t.Base, Length: t.Length,
		},
	}
	switch {
	case why != "":
		m.err = errors.New(why)
	case own:
		m.err = m.enter(d.process)
	case t.Kind == token.Host:
		m.err = d.importer.Enter() // its connections end with the domain
	default:
		m.err = m.mapFrom(d, t, near, device)
	}
	if m.err != nil {
		log.Infof(log.EPData, "elements of lists in device memory go as messages: %v", m.err)
	}
	return m
}

// enter finds the region in this process.
func (m *region) enter(p Process) error {
	own, status := p.Region(m.ask.Incarnation, m.ask.Key, m.ask.Rights)
	if status != proxy.StatusOK {
		return fmt.Errorf("region %#x: %v", m.ask.Key, status)
	}
	m.own = own
	if !own.Covers(m.ask.Addr, m.ask.Length) {
		return fmt.Errorf("region %#x has not %d bytes at %#x", m.ask.Key, m.ask.Length, m.ask.Addr)
	}
	return nil
}

// mapFrom asks the owner where the region of a token is, and maps that.
func (m *region) mapFrom(d *Domain, t *token.Token, near uint64, device bool) error {
	pid, rights := m.pid, m.ask.Rights
	body, err := hmem.Ask(pid, proxy.KindRegion, m.ask.Append(nil))
	if s := (*proxy.StatusError)(nil); errors.As(err, &s) && s.Status == proxy.StatusStale {
		return fmt.Errorf("region %#x is of memory that was freed: %w", t.Key, fi.EIO)
	}
	if err != nil {
		return err
	}
	var answer wire.RegionAnswer
	if !answer.Parse(body) {
		return fmt.Errorf("process %d answers %d bytes about a region", pid, len(body))
	}
	a := cuda.Foreign{PID: pid, Token: answer.Token, Buffer: answer.Buffer}
	if part, ok := t.Place(); ok && (part.Offset != answer.Offset || part.Buffer != answer.Buffer) {
		return fmt.Errorf("region %#x is at %d of memory %d, the token says at %d of %d: %w", t.Key,
			answer.Offset, answer.Buffer, part.Offset, part.Buffer, fi.EIO)
	}
	use, err := d.importer.Acquire(a, d.limits(), near, device && cuda.Load() == nil)
	if err != nil {
		return err
	}
	f := use.Mapping().(*hmem.Mapping)
	m.offset = answer.Offset
	if m.offset > f.Size() || t.Length > f.Size()-m.offset || rights == fi.RemoteWrite && !f.Writable() {
		use.Release()
		return fmt.Errorf("process %d offers %d bytes at %d of %d", pid, t.Length, m.offset, f.Size())
	}
	m.use = use
	return nil
}

// driverError is the outcome of a copy that the driver of a device failed: the allocation may have gone with its
// owner's process, of which the driver says nothing.
func driverError(owner proc.Process) fi.Errno {
	if owner.Ending() {
		return fi.ECONNRESET
	}
	return fi.EIO
}
