package info

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
)

// Matched endpoints. They have a format of names and a protocol of their own, and share
// nothing with others: a domain is for the one kind or for the other.

// matchedFormat and matchedProtocol are by what hints ask for them. Under the name cxi (FI_WEFT_NAME) both are an
// alias's.
const (
	matchedFormat   = fi.AddrCXI
	matchedProtocol = fi.ProtoCXI
	matchedVersion  = 1
)

// matchedFabric is the name of the fabric, as that of libfabric's provider for it.
const matchedFabric = "cxi"

// MatchedCaps are the capabilities that matched endpoints can have.
const MatchedCaps = fi.Msg | fi.Tagged | fi.Send | fi.Recv | fi.MultiRecv | fi.DirectedRecv | fi.Source | fi.SourceErr |
	fi.Fence | fi.Trigger | fi.Collective | commCaps | matchedRMA

// matchedRMA are those about memory, which is reached through an endpoint (fi.MREndpoint).
const matchedRMA uint64 = fi.RMAEvent | fi.RMA | fi.Atomic | fi.Read | fi.Write | fi.RemoteRead | fi.RemoteWrite

// MatchedAuthKeys is how many authorisation keys an address vector of matched endpoints has at most: each takes one of
// the device's communication profiles, which all processes of a service share.
const MatchedAuthKeys = 4

// Attributes of libfabric's provider for such endpoints.
const (
	matchedKeySize  = 4 // bytes, of keys that the application chooses
	chosenKeySize   = 8 // the same, of keys that the device chooses
	matchedMRCount  = 100
	matchedCQCount  = 32
	matchedEPCount  = 128
	matchedCounters = 16
	// matchedMR are the registration modes of a domain with reads and writes.
	matchedMR = fi.MREndpoint | fi.MRAllocated
	// matchedOrders are the message orders, without hints too.
	matchedOrders = fi.OrderSAS | fi.OrderWAW | fi.OrderRMAWAW | fi.OrderRMARAR | fi.OrderAtomicRAR |
		fi.OrderAtomicRAW | fi.OrderAtomicWAR | fi.OrderAtomicWAW
)

// MatchDevice is a device that matches messages.
type MatchDevice struct {
	Name string // of the domain
	// Source is the name of an endpoint that is not open yet.
	Source []byte
	Attr   hw.MatchAttr
	NIC    *fi.NIC
	// Named is the name that a node and a service are, either of which may be "", of an endpoint to be opened on the
	// device (own) or of a peer.
	Named func(node, service string, own bool) ([]byte, error)
	// Check judges a source name of the hints, or that node and service are.
	Check func(source []byte) error
	// Admits judges an authorisation key of the hints. nil: endpoints may have it.
	Admits func(key []byte) error
}

// checkKeys refuses authorisation keys that the device does not admit.
func (d *MatchDevice) checkKeys(i *fi.Info) *refusal {
	if d.Admits == nil {
		return nil
	}
	for _, k := range []struct {
		attr string
		key  []byte
	}{{"domain_attr.auth_key", i.Domain.AuthKey}, {"ep_attr.auth_key", i.EP.AuthKey}} {
		if len(k.key) == 0 {
			continue
		}
		if err := d.Admits(k.key); err != nil {
			return refuse(k.attr, "%v", err)
		}
	}
	return nil
}

// Matched reports whether an info is one of a matched endpoint, or of a domain for such endpoints.
func Matched(cfg *config.Config, i *fi.Info) bool {
	return i.AddrFormat == matchedFormat && (cfg.CXI == config.Native || aliasOf(cfg.Name).format != matchedFormat)
}

// wantsMatched reports whether hints ask for matched endpoints, or the configuration does.
func (q *query) wantsMatched(h *fi.Info) bool {
	if q.cfg.CXI == config.Native || q.alias.format == matchedFormat {
		return q.cfg.CXI == config.Native
	}
	return h.AddrFormat == matchedFormat || h.EP.Protocol == matchedProtocol || h.EP.Protocol == fi.ProtoCXIRNR
}

// matched returns the offers of matched endpoints, one for each device. h are the hints, completed.
func (q *query) matched(hints, h *fi.Info) ([]*fi.Info, error) {
	if q.cfg.CXI == config.No || q.env.Matching == nil {
		return nil, fmt.Errorf("no device matches messages (FI_WEFT_CXI): %w", fi.ENODATA)
	}
	if h.EP.Protocol == fi.ProtoCXIRNR {
		log.Warnf(log.Core, "fi_getinfo: FI_PROTO_CXI_RNR is not there, only FI_PROTO_CXI")
	}
	if h.EP.Type != fi.EPUnspec && h.EP.Type != fi.EPRDM {
		return nil, refuse("ep_attr.type", "value %v is not supported with FI_PROTO_CXI", h.EP.Type)
	}
	devices, err := q.env.Matching(q.cfg)
	if err != nil {
		return nil, fmt.Errorf("no device matches messages: %w: %w", err, fi.ENODATA)
	}
	domains, r := wanted("domain_attr", h.Domain.Name, h.Domain.Domain, Domain.DomainName)
	fabrics, rf := wanted("fabric_attr", h.Fabric.Name, h.Fabric.Fabric, Fabric.FabricName)
	if r := firstRefusal(r, rf); r != nil {
		return nil, r
	}
	devices = keep(devices, fabrics, func(MatchDevice) string { return matchedFabric })
	devices = keep(devices, domains, func(d MatchDevice) string { return d.Name })
	var infos []*fi.Info
	last := fmt.Errorf("no device %s: %w", strings.Join(domains, ", "), fi.ENODATA)
	for k := range devices {
		for _, chosen := range []bool{true, false} { // libfabric's order
			if chosen && !(devices[k].Attr.ChoosesKeys && (hints == nil || h.Domain.MRMode&fi.MRProvKey != 0)) {
				continue
			}
			i, err := q.matchedInfo(hints, h, &devices[k], chosen)
			if err != nil {
				last = err
				continue
			}
			infos = append(infos, i)
		}
	}
	if len(infos) == 0 {
		return nil, last
	}
	return infos, nil
}

// matchedInfo makes an offer of a device. It chooses the keys of regions, or the application does.
func (q *query) matchedInfo(hints, h *fi.Info, d *MatchDevice, chosen bool) (*fi.Info, error) {
	caps, r := q.matchedCaps(hints, h)
	switch {
	case r != nil:
		return nil, r
	case chosen && caps&matchedRMA == 0:
		return nil, refuse("domain_attr.mr_mode", "keys that the device chooses need FI_MR_ENDPOINT")
	}
	t := epType{EPType: fi.EPRDM, caps: caps, txFlags: TxOpFlags, ctx: 1, match: &d.Attr, chosen: chosen}
	i, r := q.negotiate(hints, t)
	switch {
	case r != nil:
		return nil, r
	case chosen && i.Caps&(fi.RMA|fi.Atomic) == 0:
		return nil, refuse("caps", "no capability needs keys")
	}
	if r := d.checkKeys(i); r != nil {
		return nil, r
	}
	i.AddrFormat, i.Fabric.Name, i.Domain.Name = matchedFormat, matchedFabric, d.Name
	i.NIC, i.SrcAddr = d.NIC, slices.Clone(d.Source)
	if len(h.SrcAddr) != 0 {
		if err := d.Check(h.SrcAddr); err != nil {
			return nil, refuse("src_addr", "%v", err)
		}
		i.SrcAddr = slices.Clone(h.SrcAddr)
	}
	if r := q.matchedNode(i, d); r != nil {
		return nil, r
	}
	if len(h.DestAddr) != 0 && len(i.DestAddr) == 0 {
		if len(h.DestAddr) != len(d.Source) {
			return nil, refuse("dest_addr", "%d bytes, not %d", len(h.DestAddr), len(d.Source))
		}
		i.DestAddr = slices.Clone(h.DestAddr)
	}
	return i, nil
}

// matchedNode puts the name that node and service are into an offer: the endpoint's own (FI_SOURCE), which the device
// has to admit, or with a node the peer's.
func (q *query) matchedNode(i *fi.Info, d *MatchDevice) *refusal {
	own := q.flags&fi.Source != 0
	if !own && q.node == "" && q.service == "" {
		return nil
	}
	attr := "node"
	if q.node == "" {
		attr = "service"
	}
	name, err := d.Named(q.node, q.service, own)
	if err == nil && own {
		err = d.Check(name)
	}
	switch {
	case err != nil:
		return refuse(attr, "%v", err)
	case own:
		i.SrcAddr = name
	case q.node != "":
		i.DestAddr = name
	}
	return nil
}

// matchedCaps are the capabilities that hints admit: those about memory need regions of endpoints, and directed
// receives no more than one authorisation key.
func (q *query) matchedCaps(hints, h *fi.Info) (uint64, *refusal) {
	const attr = "domain_attr.mr_mode"
	mode, all := h.Domain.MRMode, MatchedCaps
	if inAV(h.Domain) && h.Domain.MaxEPAuthKey != 1 { // the device cannot distinguish senders under two keys
		all &^= fi.DirectedRecv
	}
	if q.version >= fi.Version(1, 5) && (hints == nil || mode != fi.MRBasic && mode != fi.MRScalable &&
		mode&fi.MREndpoint != 0) {
		return all, nil
	}
	if h.Caps&matchedRMA != 0 {
		return 0, refuse(attr, "FI_RMA and FI_ATOMIC with FI_PROTO_CXI need FI_MR_ENDPOINT")
	}
	return all &^ matchedRMA, nil
}

// protocol is the protocol of endpoints of a type, and its version.
func (q *query) protocol(h *fi.EPAttr, t epType) (fi.Protocol, uint32, *refusal) {
	if t.match == nil {
		return q.alias.protocol(h, t.EPType)
	}
	return matchedProtocol, matchedVersion, firstRefusal(
		oneOf("ep_attr.protocol", h.Protocol, fi.ProtoUnspec, matchedProtocol),
		atMost("ep_attr.protocol_version", uint64(h.ProtocolVersion), matchedVersion))
}

// orders are the message orders of endpoints of a type.
func (t epType) orders() uint64 {
	if t.match != nil {
		return matchedOrders
	}
	return MsgOrder
}

// order is the message order of a context for what was asked. Without hints it is what libfabric's provider has where a
// NIC matches.
func (t epType) order(asked uint64, noHints bool) uint64 {
	if t.match != nil && noHints {
		return matchedOrders
	}
	return order(asked, noHints)
}

// orderedSizes are the sizes of operations up to which data is in order: reads after writes, writes after reads, writes
// after writes.
func (t epType) orderedSizes(order uint64) (raw, war, waw uint64) {
	if t.match != nil {
		return 0, 0, math.MaxUint64
	}
	return orderedSize(order, orderRAW), orderedSize(order, orderWAR), orderedSize(order, orderWAW)
}

// count is how many objects of a kind a domain is said to support, libfabric's number at least where a NIC matches.
func (t epType) count(asked, matched uint64) uint64 {
	if t.match != nil {
		return max(asked, matched)
	}
	return ObjectCount
}

// keySize is the size of memory keys, in bytes.
func (t epType) keySize() uint64 {
	switch {
	case t.chosen:
		return chosenKeySize
	case t.match != nil:
		return matchedKeySize
	}
	return MRKeySize
}

// regions is how many regions a domain is said to support, regionIOVs how many parts one may have.
func (t epType) regions(asked uint64) uint64 {
	if t.match != nil {
		return max(asked, matchedMRCount)
	}
	return max(asked, MRCount)
}

func (t epType) regionIOVs() uint64 {
	if t.match != nil {
		return 1
	}
	return MRIOVLimit
}

// iovs is how many pieces a message may have, rmaIOVs how many a one-sided operation.
func (t epType) iovs() uint64 {
	if t.match != nil {
		return 1
	}
	return IOVLimit
}

func (t epType) rmaIOVs() uint64 {
	if t.match != nil {
		return 1
	}
	return IOVLimit
}

// txSize and rxSize are the largest sizes of contexts.
func (t epType) txSize() uint64 {
	if t.match != nil {
		return uint64(t.match.Sends)
	}
	return MaxCtxSize
}

func (t epType) rxSize() uint64 {
	if t.match != nil {
		return uint64(t.match.Receives)
	}
	return MaxCtxSize
}

// sharing is how many endpoints may share a context.
func (t epType) sharing() uint64 {
	if t.match != nil {
		return 0
	}
	return MaxSharing
}
