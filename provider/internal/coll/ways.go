package coll

import "github.com/weft-fabric/weft/hw"

// ways is how a group's all-to-alls go. Set when the join is complete, and immutable then.
type ways struct {
	algorithm string // FI_WEFT_ALLTOALL_ALGORITHM
	scheduled bool   // those of long slices go by an engine
	relays    bool   // of which members relay
	puts      bool   // of which chunks go as puts where they can
	gets      bool   // of which chunks are fetched where they can be
}

// ordered reports whether an all-to-all of slices of a length goes by an engine: alike at all
// members, as they agreed when they joined.
func (w *ways) ordered(slice uint64) bool {
	named := w.algorithm
	return w.scheduled && (slice >= exchangeLong || named == "message" || named == "put" || named == "get")
}

// leastPut is the length of the slices, in bytes, from which on they are put over a transport: without the variable
// over shared memory only.
func (w *ways) leastPut(p *Transport) uint64 {
	switch {
	case w.algorithm == "put":
		return exchangeShort + 1
	case p.Caps&hw.CapSameHost != 0:
		return putHere
	}
	return ^uint64(0)
}

// offered is what a peer is offered over a transport, and what it may do there: nothing if it is short.
func (w *ways) offered(x *collExchange, p *exchangePeer, over *Transport) ([]byte, hw.Access) {
	switch {
	case w.gets && over.takesGets() && p.in.Len > exchangeShort:
		return x.given[p.in.Off:][:p.in.Len], hw.RemoteRead
	case w.puts && over.takesPuts() && p.out.Len >= w.leastPut(over):
		return x.got[p.out.Off:][:p.out.Len], hw.LocalWrite | hw.RemoteWrite
	}
	return nil, 0
}
