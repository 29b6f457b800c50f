package names

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/fi"
)

// Prefixes of FI_ADDR_STR. prefixAny is read as either family.
const (
	prefixIn  = "fi_sockaddr_in://"
	prefixIn6 = "fi_sockaddr_in6://"
	prefixAny = "fi_sockaddr://"
	// of the names of matched endpoints, which Parse does not read
	prefixWord = "fi_addr_cxi://"
)

// IsAddrStr reports whether s is written as an FI_ADDR_STR address rather than a
// node, as fi_getinfo has to say.
func IsAddrStr(s string) bool {
	return strings.HasPrefix(s, "fi_") && strings.Contains(s, "://")
}

// String returns n in the form of FI_ADDR_STR, for example
// "fi_sockaddr_in://10.0.0.1:7471" or "fi_sockaddr_in6://[::1]:7471". A scope
// is written as a number behind a percent sign.
func (n Name) String() string {
	port := strconv.Itoa(int(n.Port))
	switch n.Family {
	case AFInet:
		return prefixIn + n.Addr().String() + ":" + port
	case AFInet6:
		scope := ""
		if n.Scope != 0 {
			scope = "%" + strconv.FormatUint(uint64(n.Scope), 10)
		}
		return prefixIn6 + "[" + n.Addr().String() + scope + "]:" + port
	}
	if n.Family == AFWord {
		return prefixWord + fmt.Sprintf("%#016x", binary.NativeEndian.Uint64(n.IP[:]))
	}
	return "fi_sockaddr:unspecified"
}

// Parse decodes an FI_ADDR_STR address. The address and the port may each be
// missing: no address is the wildcard of the family that the prefix names
// (IPv4 for "fi_sockaddr"), no port is port 0. Further fields and parameters
// are refused, because weft knows none. Errors wrap fi.EINVAL.
func Parse(s string) (Name, error) {
	n, why := parse(s)
	if why != "" {
		return Name{}, fmt.Errorf("address %q: %s: %w", s, why, fi.EINVAL)
	}
	return n, nil
}

// parse returns a reason instead of a name if s is malformed.
func parse(s string) (n Name, why string) {
	var rest string
	family := uint16(0)
	switch {
	case strings.HasPrefix(s, prefixIn):
		family, rest = AFInet, s[len(prefixIn):]
	case strings.HasPrefix(s, prefixIn6):
		family, rest = AFInet6, s[len(prefixIn6):]
	case strings.HasPrefix(s, prefixAny):
		rest = s[len(prefixAny):]
	default:
		return Name{}, "unknown address format"
	}
	host, port, why := splitHostPort(rest)
	if why != "" {
		return Name{}, why
	}
	if host == "" {
		if family == 0 {
			family = AFInet
		}
		return Any(family, port), ""
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return Name{}, "not an IP address"
	}
	if z := a.Zone(); z != "" && scopeOf(z) == 0 {
		return Name{}, "unknown scope"
	}
	n = New(a, port)
	if family != 0 && n.Family != family {
		return Name{}, "the address is of another family"
	}
	return n, ""
}

// splitHostPort splits "host:port", "[host]:port", "host" and "[host]". An
// IPv6 address needs its brackets.
func splitHostPort(s string) (host string, port uint16, why string) {
	var service string
	switch {
	case strings.HasPrefix(s, "["):
		var ok bool
		if host, service, ok = strings.Cut(s[1:], "]"); !ok {
			return "", 0, "no closing bracket"
		}
		if service != "" && service[0] != ':' {
			return "", 0, "no colon after the bracket"
		}
		if !strings.Contains(host, ":") {
			return "", 0, "no IPv6 address in brackets"
		}
		service = strings.TrimPrefix(service, ":")
	default:
		host, service, _ = strings.Cut(s, ":")
	}
	if service == "" {
		return host, 0, ""
	}
	p, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return "", 0, "not a port number"
	}
	return host, uint16(p), ""
}

// scopeOf returns the interface index that a zone stands for: a number, or the
// name of an interface of this host; 0 for none.
func scopeOf(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if i, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(i)
	}
	ifi, err := net.InterfaceByName(zone)
	if err != nil {
		return 0
	}
	return uint32(ifi.Index)
}
