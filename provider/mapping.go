package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/internal/mapping"
)

// Memory of other processes is mapped by package mapping. Here is this process as it answers others.

func init() { mapping.Serve(ownProcess{}) }

// ownProcess is this process as mappings have it.
type ownProcess struct{}

// Region returns a region of this process that others may access without its taking part, and enters its gate.
func (ownProcess) Region(incarnation, key, rights uint64) (mapping.Own, proxy.Status) {
	e := endpointOf(incarnation)
	if e == nil {
		return nil, proxy.StatusNone
	}
	m := e.base.domain.regions.Enter(key)
	if m == nil {
		return nil, proxy.StatusNone
	}
	if m.Rights&rights != rights || rights == 0 || !m.InOnePart() || m.Single || !m.OpenToAll("") ||
		m.Counter.Load() != nil || e.base.bound.counted() || e.base.chosen.apart ||
		e.base.chosen.p2p.Load() == fi.HMEMP2PDisabled {
		m.Gate.Leave()
		return nil, proxy.StatusRefused
	}
	return ownRegion{m}, proxy.StatusOK
}

// endpointOf returns the process's enabled endpoint of an incarnation, nil if there is none.
func endpointOf(incarnation uint64) *Endpoint {
	e, _ := enabled.Find(func(e *Endpoint) bool { return e.base.incarnation == incarnation })
	return e
}

// ownRegion is a region of this process, its gate entered, as mappings have it.
type ownRegion struct{ *peerRegion }

// First is where the region begins.
func (m ownRegion) First() uint64 { return uint64(m.Memory.Parts[0].Base) }

// Buffer is the driver's number of the memory when it was registered.
func (m ownRegion) Buffer() uint64 { return m.Memory.Shares[0].Buffer() }

// Domain is what its domain has of mappings.
func (m ownRegion) Domain() *mapping.Domain { return &m.Owner.domain.mappings }

// Leave leaves the gate.
func (m ownRegion) Leave() { m.Gate.Leave() }
