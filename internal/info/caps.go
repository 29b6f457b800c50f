package info

import "github.com/weft-fabric/weft/fi"

// Class says when fi_getinfo returns a capability.
type Class int

// Classes of capabilities (fi_getinfo(3), "Capabilities").
const (
	// Primary capabilities are returned if asked for, or if the application
	// asks for none at all.
	Primary Class = iota
	// Modifier capabilities restrict Msg and Tagged, or RMA and Atomic, to
	// directions. They are returned with them; some alone mean only those
	// directions.
	Modifier
	// SecondaryFree capabilities cost nothing and are always returned.
	SecondaryFree
	// Demanded capabilities are primary ones that change what an application has to do, or
	// what it pays for. They are returned if asked for.
	Demanded
	// SecondaryAsked capabilities widen what an endpoint talks to, or cost
	// something when they are used. They are returned as primary ones are.
	SecondaryAsked
	// SecondaryCostly capabilities cost something on the data path, used or not.
	// They are returned if asked for, and to callers without hints.
	SecondaryCostly
)

// Capability is one advertised capability bit.
type Capability struct {
	Bit   uint64
	Name  string
	Class Class
	// Tx, Rx and Domain say which attributes the bit applies to
	// (fi_endpoint(3), fi_domain(3)).
	Tx, Rx, Domain bool
	// Reason says what stands behind the claim.
	Reason string
}

// capabilities is everything that weft advertises: a capability that is not in it is refused. It is immutable after
// package initialisation.
var capabilities = []Capability{
	{fi.Msg, "FI_MSG", Primary, true, true, false,
		"untagged sends and receives of every form"},
	{fi.Tagged, "FI_TAGGED", Primary, true, true, false,
		"tagged sends and receives of every form, 64 tag bits with any mask"},
	{fi.DirectedRecv, "FI_DIRECTED_RECV", Primary, false, true, true,
		"the matcher compares the source of a message with a receive's, and its key; a region may be open to one " +
			"source or key"},
	{fi.TaggedDirectedRecv, "FI_TAGGED_DIRECTED_RECV", Demanded, false, true, false,
		"FI_DIRECTED_RECV for tagged receives only; API 2.0 on, as the next two"},
	{fi.ExactDirectedRecv, "FI_EXACT_DIRECTED_RECV", Demanded, false, true, false,
		"directed receives from any source are refused when they are posted"},
	{fi.TaggedMultiRecv, "FI_TAGGED_MULTI_RECV", Demanded, false, true, false,
		"tagged and untagged messages are matched by the same code, which knows such buffers"},
	{fi.RMA, "FI_RMA", Primary, true, true, false,
		"reads and writes of every form; every target checks key, rights and range"},
	{fi.Atomic, "FI_ATOMIC", Primary, true, true, false,
		"the operations and datatypes of fi_atomic(3), performed by the target with the CPU's atomic instructions"},
	{fi.Collective, "FI_COLLECTIVE", Primary, true, true, false,
		"every operation of fi_collective(3), by algorithms of the members' own; not on scalable endpoints"},
	{fi.NamedRxCtx, "FI_NAMED_RX_CTX", Primary, true, false, false,
		"each receive context of a scalable endpoint has a segment of its own, which an address with its index names"},
	{fi.HMEM, "FI_HMEM", Demanded, true, true, false,
		"memory of GPUs and dma-bufs is copied by the driver or through a mapping, in every transfer; descriptors " +
			"mark it"},
	{fi.Peer, "FI_PEER", Demanded, false, false, true,
		"completion queues, counters and shared receive contexts of another provider are imported; hosts from " +
			"libfabric 2.0 on"},
	{fi.AVUserID, "FI_AV_USER_ID", Demanded, false, false, true,
		"completions call a source by the identifier that the application gave its address"},
	{fi.Send, "FI_SEND", Modifier, true, false, false,
		"direction of FI_MSG and FI_TAGGED"},
	{fi.Recv, "FI_RECV", Modifier, false, true, false,
		"direction of FI_MSG and FI_TAGGED"},
	{fi.Read, "FI_READ", Modifier, true, false, false,
		"direction of FI_RMA and FI_ATOMIC"},
	{fi.Write, "FI_WRITE", Modifier, true, false, false,
		"direction of FI_RMA and FI_ATOMIC"},
	{fi.RemoteRead, "FI_REMOTE_READ", Modifier, false, true, false,
		"direction of FI_RMA and FI_ATOMIC"},
	{fi.RemoteWrite, "FI_REMOTE_WRITE", Modifier, false, true, false,
		"direction of FI_RMA and FI_ATOMIC"},
	{fi.RMAEvent, "FI_RMA_EVENT", SecondaryAsked, false, true, false,
		"counters of endpoints and memory regions count what peers do"},
	{fi.MultiRecv, "FI_MULTI_RECV", SecondaryFree, false, true, false,
		"a receive may hold several messages; only such receives read it"},
	{fi.Source, "FI_SOURCE", SecondaryAsked, false, true, false,
		"completions carry the sender's address, found per message"},
	{fi.SourceErr, "FI_SOURCE_ERR", SecondaryCostly, false, true, false,
		"an unknown sender's raw address is error data of a completion"},
	{fi.Fence, "FI_FENCE", SecondaryAsked, true, false, false,
		"a fenced transmit is refused with FI_EAGAIN until those before it to the peer are complete"},
	{fi.Trigger, "FI_TRIGGER", SecondaryCostly, true, true, false,
		"operations wait for counters; under FI_THREAD_COMPLETION nothing belongs to one thread then"},
	{fi.LocalComm, "FI_LOCAL_COMM", SecondaryAsked, false, false, true,
		"peers on this host are reached through shared memory"},
	{fi.RemoteComm, "FI_REMOTE_COMM", SecondaryAsked, false, false, true,
		"names are socket addresses that are valid across hosts; an address that no backend reaches is refused with " +
			"FI_EHOSTUNREACH when it is inserted"},
	{fi.SharedAV, "FI_SHARED_AV", SecondaryFree, false, false, true,
		"named address vectors are shared between processes"},
}

// mask returns the bits of the capabilities that want holds for.
func mask(want func(c *Capability) bool) (bits uint64) {
	for i := range capabilities {
		if want(&capabilities[i]) {
			bits |= capabilities[i].Bit
		}
	}
	return bits
}

// Sets of capabilities.
var (
	allCaps    = mask(func(*Capability) bool { return true })
	txCaps     = mask(func(c *Capability) bool { return c.Tx })
	rxCaps     = mask(func(c *Capability) bool { return c.Rx })
	domainCaps = mask(func(c *Capability) bool { return c.Domain })
	freeCaps   = mask(func(c *Capability) bool { return c.Class == SecondaryFree })

	demandedCaps = mask(func(c *Capability) bool { return c.Class == Demanded })
	costlyCaps   = mask(func(c *Capability) bool { return c.Class == SecondaryCostly })
)

// Caps20 returns caps20, for the loader.
func Caps20() uint64 { return caps20 }

// caps20 are capabilities whose bits meant something else before API 2.0.
const caps20 = fi.TaggedDirectedRecv | fi.ExactDirectedRecv | fi.TaggedMultiRecv

// DirectedCaps are the capabilities with which a receive's source counts.
const DirectedCaps = fi.DirectedRecv | fi.TaggedDirectedRecv | fi.ExactDirectedRecv

// Directed reports whether the source of tagged or else untagged receives counts with some capabilities.
// FI_EXACT_DIRECTED_RECV beside another is about the receives that the other is about (fi_getinfo(3)).
func Directed(caps uint64, tagged bool) bool {
	switch {
	case caps&fi.DirectedRecv != 0:
		return true
	case caps&fi.TaggedDirectedRecv != 0:
		return tagged
	}
	return caps&fi.ExactDirectedRecv != 0
}

// directions are the modifiers of each group of primary capabilities.
var directions = []struct{ of, modifiers uint64 }{
	{fi.Msg | fi.Tagged, fi.Send | fi.Recv},
	{fi.RMA | fi.Atomic, fi.Read | fi.Write | fi.RemoteRead | fi.RemoteWrite},
}

const commCaps = fi.LocalComm | fi.RemoteComm

// negotiateCaps returns the capabilities of an endpoint that can have all of
// them for what was asked in the hints of the endpoint and of the domain, or
// what is refused about them. hints reports whether there were any.
//
// An application that asks for one of FI_LOCAL_COMM and FI_REMOTE_COMM gets
// only that one, so that it is not exposed to communication it did not ask for.
func negotiateCaps(asked, askedDomain, all uint64, hints bool) (uint64, *refusal) {
	if bad := asked &^ all; bad != 0 {
		return 0, refuse("caps", "capabilities %#x are not supported", bad)
	}
	if bad := askedDomain &^ (domainCaps & all); bad != 0 {
		return 0, refuse("domain_attr.caps", "capabilities %#x are not a domain's or not supported", bad)
	}
	if asked&fi.SourceErr != 0 && asked&fi.Source == 0 {
		return 0, refuse("caps", "FI_SOURCE_ERR needs FI_SOURCE")
	}
	caps := asked
	if asked == 0 {
		caps = all &^ (commCaps | demandedCaps)
		if hints {
			caps &^= costlyCaps
		}
	}
	return implied(caps | askedDomain | freeCaps&all), nil
}

// implied returns capabilities with those that leaving them out asks for: all directions of
// a group that names none, and peers both on this host and on others where neither
// FI_LOCAL_COMM nor FI_REMOTE_COMM is there (fi_getinfo(3)). GetInfo returns them, but
// applications write capabilities of their own into an info before they open an endpoint.
func implied(caps uint64) uint64 {
	caps = withDirections(caps)
	if caps&commCaps == 0 {
		caps |= commCaps
	}
	return caps
}

// withDirections adds all directions of each group that names none.
func withDirections(caps uint64) uint64 {
	for _, g := range directions {
		if caps&g.of != 0 && caps&g.modifiers == 0 {
			caps |= g.modifiers
		}
	}
	return caps
}

// negotiateCtxCaps returns the capabilities of a transmit or receive context:
// those of the endpoint that apply to it, or the subset of them that its own
// hint asks for.
func negotiateCtxCaps(attr string, asked, endpoint, applicable uint64) (uint64, *refusal) {
	asked &^= elsewhere(endpoint, applicable)
	applicable &= endpoint
	if asked == 0 {
		return applicable, nil
	}
	if bad := asked &^ applicable; bad != 0 {
		return 0, refuse(attr,
			"capabilities %#x do not apply, are not supported or were not asked of the endpoint", bad)
	}
	caps := asked
	for _, g := range directions {
		if caps&g.of != 0 {
			caps |= g.modifiers & applicable
		}
	}
	return caps, nil
}

// elsewhere is what a context may ask for in vain: capabilities of its endpoint that do not apply to
// it. Applications write those of the endpoint into both contexts.
func elsewhere(endpoint, applicable uint64) uint64 { return endpoint &^ applicable }
