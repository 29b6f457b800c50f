package info

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
)

// epType is what the offers of one endpoint type have in common.
type epType struct {
	fi.EPType
	caps    uint64        // that such an endpoint can have
	txFlags uint64        // that can be its transmit context's defaults
	ctx     uint64        // most contexts of each kind
	match   *hw.MatchAttr // what a device matches, nil: weft matches
	chosen  bool          // the device chooses the keys of regions
}

// Capabilities of endpoints of the types that do not have all. A connected
// endpoint has one peer: there is no source to report or to choose. A datagram
// may be lost, so nothing is offered that needs an answer.
const (
	msgCaps = fi.Msg | fi.Tagged | fi.RMA | fi.Atomic | fi.Send | fi.Recv | fi.Read | fi.Write | fi.RemoteRead |
		fi.RemoteWrite | fi.RMAEvent | fi.MultiRecv | fi.TaggedMultiRecv | fi.Fence | commCaps
	dgramCaps = fi.Msg | fi.Send | fi.Recv | fi.MultiRecv | fi.Source | fi.SourceErr | fi.DirectedRecv |
		fi.ExactDirectedRecv | fi.SharedAV | commCaps
)

// epTypes are the types in the order in which they are offered: clients that
// do not say which they want find the one that most of them want first.
var epTypes = []epType{
	{EPType: fi.EPRDM, caps: allCaps, txFlags: TxOpFlags, ctx: MaxCtx},
	{EPType: fi.EPMsg, caps: msgCaps, txFlags: TxOpFlags, ctx: 1},
	{EPType: fi.EPDgram, caps: dgramCaps, txFlags: DgramTxOpFlags, ctx: 1},
}

// TypeCaps is an endpoint type that is offered, with the capabilities that its endpoints can have.
type TypeCaps struct {
	Type fi.EPType
	Caps uint64
}

// Types returns the endpoint types in the order in which they are offered.
func Types() []TypeCaps {
	list := make([]TypeCaps, 0, len(epTypes))
	for _, t := range epTypes {
		list = append(list, TypeCaps{t.EPType, t.caps})
	}
	return list
}

// keys is how many authorisation keys an endpoint of the type can have in its address
// vector.
func (t epType) keys() uint64 {
	switch {
	case t.EPType == fi.EPMsg:
		return 0
	case t.match != nil:
		return MatchedAuthKeys
	}
	return MaxEPAuthKey
}

// wantedTypes returns the types that a hint admits. The host's utility
// providers get FI_EP_RDM only: they would build it once more, out of the other
// types, and libfabric would offer theirs before weft's own.
func (q *query) wantedTypes(asked fi.EPType) ([]epType, *refusal) {
	types := epTypes
	if q.flags&layered != 0 {
		types = epTypes[:1]
	}
	if asked == fi.EPUnspec {
		return types, nil
	}
	for i, t := range types {
		if t.EPType == asked {
			return types[i : i+1], nil
		}
	}
	return nil, refuse("ep_attr.type", "value %v is not supported", asked)
}

// DgramMsgSize is the longest datagram under a configuration, in bytes: what
// goes through a bounce buffer.
func DgramMsgSize(c *config.Config) uint64 { return uint64(min(c.EagerSize, c.BounceSize)) }

// maxMsgSize is the longest message of an endpoint of a type, in bytes.
func (q *query) maxMsgSize(t epType) uint64 {
	switch {
	case t.match != nil:
		return t.match.MaxMessage
	case t.EPType == fi.EPDgram:
		return DgramMsgSize(q.cfg)
	}
	return MaxMsgSize
}

// injectSize is the longest injected message of an endpoint of a type, in bytes.
func (q *query) injectSize(t epType) uint64 {
	if t.match != nil {
		return uint64(t.match.MaxInject)
	}
	return min(uint64(q.cfg.InjectSize), q.maxMsgSize(t))
}
