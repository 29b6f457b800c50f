package info

import (
	"slices"
	"strings"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// alias is a name under which weft answers (FI_WEFT_NAME) in the place of a
// provider of libfabric, for clients that accept providers by a closed list of
// names. What such a client asks of that provider, its protocols and address
// formats, is answered so; what stands behind is weft's.
type alias struct {
	// name is what fi_fabric_attr.prov_name says: a provider, or layers of them,
	// separated by semicolons, the upper one last.
	name string
	// protocols are those of each endpoint type, the one that is answered first.
	// A type without an entry has weft's own.
	protocols map[fi.EPType][]fi.Protocol
	// version is the protocols' version, the highest that a hint can ask for.
	version uint32
	// format is the address format that is answered to no hint; unspecified for the
	// socket address of an offer's family.
	format fi.AddrFormat
}

// aliases are the names of FI_WEFT_NAME other than weft's own, with the protocols
// and formats of the providers in libfabric 2.6. Immutable after package initialisation.
var aliases = []alias{
	{name: "tcp", version: 1, protocols: map[fi.EPType][]fi.Protocol{
		fi.EPMsg: {fi.ProtoSockTCP}, fi.EPRDM: {fi.ProtoXNet, fi.ProtoSockTCP}}},
	{name: "tcp;ofi_rxm", version: 1, protocols: map[fi.EPType][]fi.Protocol{fi.EPRDM: {fi.ProtoRXM, fi.ProtoRXMTCP}}},
	{name: "verbs", version: 1, protocols: map[fi.EPType][]fi.Protocol{
		fi.EPMsg:   {fi.ProtoRDMACMIBRC, fi.ProtoRDMACMIBXRC, fi.ProtoIWARP},
		fi.EPDgram: {fi.ProtoIBUD}}},
	{name: "verbs;ofi_rxm", version: 1, protocols: map[fi.EPType][]fi.Protocol{fi.EPRDM: {fi.ProtoRXM}}},
	{name: "sockets", version: 2, protocols: map[fi.EPType][]fi.Protocol{
		fi.EPRDM: {fi.ProtoSockTCP}, fi.EPMsg: {fi.ProtoSockTCP}, fi.EPDgram: {fi.ProtoSockTCP}}},
	{name: "shm", version: 1, format: fi.AddrStr, protocols: map[fi.EPType][]fi.Protocol{fi.EPRDM: {fi.ProtoSHM}}},
	{name: "efa", version: 4, format: fi.AddrEFA, protocols: map[fi.EPType][]fi.Protocol{
		fi.EPRDM: {fi.ProtoEFA}, fi.EPDgram: {fi.ProtoEFA}}},
	{name: "cxi", version: 1, format: fi.AddrCXI,
		protocols: map[fi.EPType][]fi.Protocol{fi.EPRDM: {fi.ProtoCXI, fi.ProtoCXIRNR}}},
}

// own is weft under its own name.
var own = alias{name: ProvName}

// aliasOf returns the alias of a value of FI_WEFT_NAME; weft's own name for what is none.
func aliasOf(name string) *alias {
	i := slices.IndexFunc(aliases, func(a alias) bool { return strings.EqualFold(a.name, name) })
	if i < 0 {
		return &own
	}
	return &aliases[i]
}

// Registered is the provider's name as the host library is to know it under a value of
// FI_WEFT_NAME: the uppermost layer, by which fi_fabric finds it. lower are the
// layers below, which the host expects in the answers and to which it adds the name.
func Registered(name string) (top, lower string) {
	full := aliasOf(name).name
	i := strings.LastIndexByte(full, ';')
	if i < 0 {
		return full, ""
	}
	return full[i+1:], full[:i]
}

// ReportedName is what answers say as the provider's name under a configuration.
func ReportedName(cfg *config.Config) string { return aliasOf(cfg.Name).name }

// IsReported reports whether a provider's name is that of answers under a configuration,
// or weft's own.
func IsReported(cfg *config.Config, name string) bool {
	return strings.EqualFold(name, ProvName) || strings.EqualFold(name, ReportedName(cfg))
}

// admits reports whether a provider name in hints admits weft: it is empty, or
// a list of alternatives (",") of which one has weft among its layers (";"), or no
// layers other than the alias's. Layers to exclude ("^") have been dealt with by the host.
func (a *alias) admits(list string) bool {
	if list == "" || strings.HasPrefix(list, "^") {
		return true
	}
	return slices.ContainsFunc(strings.Split(list, ","), a.admitsLayers)
}

func (a *alias) admitsLayers(layers string) bool {
	mine := strings.Split(a.name, ";")
	all := false
	for l := range strings.SplitSeq(layers, ";") {
		l = strings.TrimSpace(l)
		switch {
		case strings.EqualFold(l, ProvName):
			return true
		case l == "" || strings.HasPrefix(l, "^"):
			continue
		case !slices.ContainsFunc(mine, func(m string) bool { return strings.EqualFold(m, l) }):
			return false
		}
		all = true
	}
	return all
}

// protocol returns the protocol and its version for an endpoint type and hints.
func (a *alias) protocol(h *fi.EPAttr, t fi.EPType) (fi.Protocol, uint32, *refusal) {
	list, version := a.protocols[t], a.version
	if len(list) == 0 || h.Protocol == fi.ProtoWeft {
		list, version = []fi.Protocol{fi.ProtoWeft}, ProtocolVersion
	}
	r := firstRefusal(
		oneOf("ep_attr.protocol", h.Protocol, append([]fi.Protocol{fi.ProtoUnspec}, list...)...),
		atMost("ep_attr.protocol_version", uint64(h.ProtocolVersion), uint64(version)))
	return orDefault(h.Protocol, list[0]), version, r
}

// Aliases returns the names under which weft can answer beside its own.
func Aliases() []string {
	list := make([]string, 0, len(aliases))
	for _, a := range aliases {
		list = append(list, a.name)
	}
	return list
}

// AddrFormats returns the address formats that hints can ask for of weft under its own name.
func AddrFormats() []fi.AddrFormat { return append(own.formats(), matchedFormat) }

// formats are the address formats that hints can ask for.
func (a *alias) formats() []fi.AddrFormat {
	return []fi.AddrFormat{fi.FormatUnspec, fi.Sockaddr, fi.SockaddrIn, fi.SockaddrIn6, fi.SockaddrIP, fi.AddrStr,
		a.format}
}
