package xdp

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/sock"
)

// Sizes and fields of headers: Ethernet II, IPv4 without options (RFC 791), IPv6
// (RFC 8200), UDP (RFC 768).
const (
	sizeEthernet = 14
	sizeIPv4     = 20
	sizeIPv6     = 40
	sizeUDP      = 8
	maxHeaders   = sizeEthernet + sizeIPv6 + sizeUDP

	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd
	protoUDP  = 17

	dontFragment = 0x4000
	fragments    = 0x3fff // more of them, or an offset
	hops         = 64
	capable      = 2 // RFC 3168: ECT(0)
	congested    = 3 // RFC 3168: CE
)

// template is the headers of the datagrams to one peer, with lengths and
// checksums to be filled in.
type template struct {
	headers [maxHeaders]byte
	size    int    // of them
	ip      uint64 // sum of the IPv4 header, without its length
	pseudo  uint64 // sum of the pseudo header and the ports, without the length
}

// newTemplate makes the headers of datagrams from one address to another of the same family,
// over an Ethernet, with a code point of differentiated services.
func newTemplate(source, target [6]byte, from, to netip.AddrPort, class uint8) template {
	var t template
	h, service := t.headers[:], class<<2|capable
	copy(h, target[:])
	copy(h[6:], source[:])
	ip := h[sizeEthernet:]
	var udp []byte
	if from.Addr().Is4() {
		binary.BigEndian.PutUint16(h[12:], etherIPv4)
		ip[0], ip[1], ip[8], ip[9] = 0x45, service, hops, protoUDP
		binary.BigEndian.PutUint16(ip[6:], dontFragment)
		copy(ip[12:], from.Addr().AsSlice())
		copy(ip[16:], to.Addr().AsSlice())
		t.ip = sum(0, ip[:sizeIPv4])
		t.pseudo = sum(swapped(protoUDP), ip[12:20])
		udp = ip[sizeIPv4:]
		t.size = sizeEthernet + sizeIPv4 + sizeUDP
	} else {
		binary.BigEndian.PutUint16(h[12:], etherIPv6)
		binary.BigEndian.PutUint32(ip, 6<<28|uint32(service)<<20)
		ip[6], ip[7] = protoUDP, hops
		copy(ip[8:], from.Addr().AsSlice())
		copy(ip[24:], to.Addr().AsSlice())
		t.pseudo = sum(swapped(protoUDP), ip[8:40])
		udp = ip[sizeIPv6:]
		t.size = sizeEthernet + sizeIPv6 + sizeUDP
	}
	binary.BigEndian.PutUint16(udp, from.Port())
	binary.BigEndian.PutUint16(udp[2:], to.Port())
	t.pseudo = sum(t.pseudo, udp[:4])
	return t
}

// put writes the headers in front of a payload of n bytes, which is in
// frame already, and returns the frame's size.
func (t *template) put(frame []byte, n int) int {
	copy(frame, t.headers[:t.size])
	udp := frame[t.size-sizeUDP : t.size+n]
	length := uint16(sizeUDP + n)
	binary.BigEndian.PutUint16(udp[4:], length)
	if t.size == sizeEthernet+sizeIPv4+sizeUDP {
		total := sizeIPv4 + length
		binary.BigEndian.PutUint16(frame[16:], total)
		binary.BigEndian.PutUint16(frame[24:], ^fold(add(t.ip, swapped(total))))
	} else {
		binary.BigEndian.PutUint16(frame[18:], length)
	}
	// The length is there twice: in the pseudo header and in the header.
	c := ^fold(sum(add(t.pseudo, 2*swapped(length)), udp[sizeUDP:]))
	if c == 0 {
		c = 0xffff // 0 would say that there is none
	}
	binary.BigEndian.PutUint16(udp[6:], c)
	return t.size + n
}

// local is the address that datagrams come to.
type local struct {
	ip    []byte // 4 or 16 bytes
	port  uint16
	scope uint32 // of link-local peers: the interface
}

func newLocal(a netip.AddrPort, iface int) local {
	return local{ip: a.Addr().AsSlice(), port: a.Port(), scope: uint32(iface)}
}

// parse reads the frame of a datagram to l into m, but for the stamp. It returns
// false if the frame is anything else, or damaged. m's bytes are those of the
// frame.
func (l *local) parse(frame []byte, m *sock.Message) bool {
	if len(frame) < sizeEthernet {
		return false
	}
	kind, b := binary.BigEndian.Uint16(frame[12:]), frame[sizeEthernet:]
	if len(l.ip) == 4 {
		return kind == etherIPv4 && l.parse4(b, m)
	}
	return kind == etherIPv6 && l.parse6(b, m)
}

func (l *local) parse4(b []byte, m *sock.Message) bool {
	if len(b) < sizeIPv4+sizeUDP || b[0] != 0x45 || b[9] != protoUDP ||
		binary.BigEndian.Uint16(b[6:])&fragments != 0 || !bytes.Equal(b[16:20], l.ip) ||
		fold(sum(0, b[:sizeIPv4])) != 0xffff {
		return false
	}
	total := int(binary.BigEndian.Uint16(b[2:]))
	if total < sizeIPv4+sizeUDP || total > len(b) {
		return false
	}
	if !l.parseUDP(b[sizeIPv4:total], sum(0, b[12:20]), true, m) {
		return false
	}
	m.Marked = b[1]&congested == congested
	m.From = sock.FromIPv4([4]byte(b[12:16]), binary.BigEndian.Uint16(b[sizeIPv4:]))
	return genuine4(b[12:16], l.ip)
}

// genuine4 reports whether a datagram can have come from an address.
func genuine4(from, own []byte) bool {
	return from[0] != 0 && from[0] != 127 && from[0] < 224 && !bytes.Equal(from, own)
}

func (l *local) parse6(b []byte, m *sock.Message) bool {
	if len(b) < sizeIPv6+sizeUDP || b[0]>>4 != 6 || b[6] != protoUDP || !bytes.Equal(b[24:40], l.ip) {
		return false
	}
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length < sizeUDP || length > len(b)-sizeIPv6 {
		return false
	}
	if !l.parseUDP(b[sizeIPv6:sizeIPv6+length], sum(0, b[8:40]), false, m) {
		return false
	}
	from := netip.AddrFrom16([16]byte(b[8:24]))
	if from.IsMulticast() || from.IsUnspecified() || from.IsLoopback() || from.Is4In6() || bytes.Equal(b[8:24], l.ip) {
		return false
	}
	scope := uint32(0)
	if from.IsLinkLocalUnicast() {
		scope = l.scope
	}
	m.Marked = b[1]>>4&congested == congested
	m.From = sock.FromIPv6(from.As16(), binary.BigEndian.Uint16(b[sizeIPv6:]), scope)
	return true
}

// parseUDP reads the UDP header in b, with the sum of the addresses.
func (l *local) parseUDP(b []byte, addresses uint64, unsummed bool, m *sock.Message) bool {
	length := int(binary.BigEndian.Uint16(b[4:]))
	if length < sizeUDP || length > len(b) || binary.BigEndian.Uint16(b[2:]) != l.port {
		return false
	}
	b = b[:length]
	if got := binary.BigEndian.Uint16(b[6:]); got != 0 || !unsummed {
		if got == 0 || fold(sum(add(addresses, swapped(protoUDP)+swapped(uint16(length))), b)) != 0xffff {
			return false
		}
	}
	m.Bytes = b[sizeUDP:]
	m.Segment = len(m.Bytes)
	m.Stamp, m.Hardware, m.Driver = 0, 0, 0
	return true
}

// family is that of addresses of so many bytes.
func family(ip []byte) uint8 {
	if len(ip) == 4 {
		return unix.AF_INET
	}
	return unix.AF_INET6
}
