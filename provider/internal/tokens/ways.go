package tokens

import (
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/token"
)

// Why elements of lists do not take a way to a region, by what its token and the endpoint say.

// TurnedOff is why a way that is turned off is not taken.
const TurnedOff = "turned off by FI_WEFT_TOKEN_WAYS"

// whyNotIPC says why pieces do not go by WayIPC, "" if they do. p is how the owner is reached, if up.
func (r *Remote) whyNotIPC(p Path, up bool) string {
	switch {
	case !r.ep.Config().TokenWays.IPC:
		return TurnedOff
	case r.about.Kind != token.Host:
		return r.whyNotMapped(0)
	case r.ep.Ordered():
		return "the endpoint keeps one-sided operations in order"
	case r.ep.Apart():
		return "the endpoint shares no memory with peers"
	case !inReach(r):
		return "the owner shares no memory with peers"
	case up && p.Attaches:
		return ""
	case up && p.Here:
		return "the kernel does not let this process reach the peer's memory"
	case up:
		return "the peer is reached over " + p.Name
	}
	there, here, why := r.process()
	switch {
	case why != "":
		return why
	case there.NetNS != here.NetNS && !r.ep.Config().Across():
		return "the owner is in another network namespace"
	case !r.ep.Attaches():
		return "cross-memory attach is turned off or refused by the kernel"
	}
	return ""
}

// inReach reports whether other processes of its owner's host may reach a region, as far as is known.
func inReach(r *Remote) bool {
	_, named := r.about.Find(token.PartIPC)
	return named || r.set == nil
}

// whyNotRDMA says why pieces do not go by WayRDMA, "" if they do. p is how the owner is reached, if up.
func (r *Remote) whyNotRDMA(p Path, up bool) string {
	switch {
	case !r.ep.Config().TokenWays.RDMA:
		return TurnedOff
	case r.about.Kind != token.Host && len(r.about.Rails()) == 0:
		return "the memory there is " + r.about.Kind.String() + " memory, which is registered with no RDMA device"
	case r.ep.Ordered():
		return "the endpoint keeps one-sided operations in order"
	case !up && len(r.ep.Devices()) == 0:
		return "the endpoint has no RDMA device"
	case !up && !r.leads():
		return "nothing has gone to the owner yet: whether it has an RDMA device is not known"
	case !up:
		return ""
	case !p.Device:
		return "no RDMA device leads to the owner"
	}
	return ""
}

// whyNotMapped says why elements with memory of a device do not go by WayIPC to the region, "" if they do as
// far as the token says. local is an address on this side.
func (r *Remote) whyNotMapped(local uint64) string {
	cfg := r.ep.Config()
	switch {
	case !cfg.TokenWays.IPC:
		return TurnedOff
	case cfg.HMEMMapSize == 0:
		return "turned off by FI_WEFT_HMEM_MAP_SIZE"
	case r.ep.Ordered():
		return "the endpoint keeps one-sided operations in order"
	case !r.ep.Maps():
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
	if _, ok := r.about.Place(); !ok && r.set != nil {
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
	case r.ep.Apart():
		return there, here, "the endpoint shares no memory with peers"
	case !ok || err != nil:
		return there, here, "the owner shares no memory with peers"
	case there.BootID != here.BootID:
		return there, here, "the owner is on another host"
	}
	return there, here, ""
}

// Process is the owner's process, and whether that is this one, or why the owner shares no memory with this process.
func (r *Remote) Process() (pid int, own bool, why string) {
	there, here, why := r.process()
	return int(there.PID), there.PID == here.Self.PID, why
}
