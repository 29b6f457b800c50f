package xdp

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/weft-fabric/weft/internal/sock"
)

// slowSum is RFC 1071's sum as it is written there.
func slowSum(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		v := uint32(b[i]) << 8
		if i+1 < len(b) {
			v |= uint32(b[i+1])
		}
		s += v
	}
	for s>>16 != 0 {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

func TestSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 2000)
	for n := range 3000 {
		for i := range b {
			b[i] = byte(r.Uint32())
			if n%3 == 0 {
				b[i] = 0xff
			}
		}
		first, size := 2*r.IntN(100), r.IntN(1800)
		piece := b[:min(first+size, 1+n)]
		first = min(first, len(piece)&^1)
		want := slowSum(piece)
		if got := fold(sum(sum(0, piece[:first]), piece[first:])); got != want {
			t.Fatalf("%d and %d bytes: %#x, not %#x", first, len(piece)-first, got, want)
		}
	}
}

// ends are two addresses of each family.
var ends = map[string][2]netip.AddrPort{
	"ipv4":       {netip.MustParseAddrPort("10.99.0.1:4711"), netip.MustParseAddrPort("10.99.0.2:815")},
	"ipv6":       {netip.MustParseAddrPort("[fd99::1]:4711"), netip.MustParseAddrPort("[fd99::2]:815")},
	"link-local": {netip.MustParseAddrPort("[fe80::1]:4711"), netip.MustParseAddrPort("[fe80::2]:815")},
}

const (
	scope = 7  // of link-local addresses
	class = 46 // code point of differentiated services
)

// framed is a frame from the first end to the second, and what it comes to.
func framed(e [2]netip.AddrPort, payload []byte) ([]byte, local) {
	w := newTemplate([6]byte{2, 0, 0, 0, 0, 1}, [6]byte{2, 0, 0, 0, 0, 2}, e[0], e[1], class)
	frame := make([]byte, w.size+len(payload))
	copy(frame[w.size:], payload)
	n := w.put(frame, len(payload))
	return frame[:n], newLocal(e[1], scope)
}

func TestFrame(t *testing.T) {
	for name, e := range ends {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{0, 1, 2, 18, 100, 1471, 1700} {
				payload := make([]byte, size)
				for i := range payload {
					payload[i] = byte(rand.Uint32())
				}
				frame, to := framed(e, payload)
				service := frame[sizeEthernet+1] // RFC 2474 in IPv4, RFC 8200 in IPv6
				if e[0].Addr().Is6() {
					service = frame[sizeEthernet]<<4 | service>>4
				}
				if service != class<<2|capable {
					t.Errorf("%d bytes: type of service %#x", size, service)
				}
				var m sock.Message
				if !to.parse(append(frame, 1, 2, 3), &m) { // an Ethernet pads
					t.Fatalf("%d bytes: refused", size)
				}
				from := m.From.AddrPort()
				if from.Addr().WithZone("") != e[0].Addr() || from.Port() != e[0].Port() ||
					!bytes.Equal(m.Bytes, payload) || m.Segment != size || m.Marked {
					t.Errorf("%d bytes: %d bytes from %v, marked %v", size, len(m.Bytes), from, m.Marked)
				}
				if zone := from.Addr().Zone(); (zone == "7") != (name == "link-local") {
					t.Errorf("zone %q", zone)
				}
			}
		})
	}
}

// TestDamage changes each byte of a frame that says what the frame is, and each of
// the payload.
func TestDamage(t *testing.T) {
	for name, e := range ends {
		frame, to := framed(e, []byte("weft weaves"))
		for i := 12; i < len(frame); i++ {
			if name != "ipv4" && i >= 14 && i < 18 || name != "ipv4" && i == 21 {
				continue // traffic class, flow label, hop limit: no checksum has them
			}
			for bit := range 8 {
				damaged := bytes.Clone(frame)
				damaged[i] ^= 1 << bit
				var m sock.Message
				if to.parse(damaged, &m) {
					t.Errorf("%s: bit %d of byte %d does not matter", name, bit, i)
				}
			}
			var m sock.Message
			if to.parse(frame[:i], &m) {
				t.Errorf("%s: %d bytes are enough", name, i)
			}
		}
	}
}

// resum writes the checksums of a frame anew.
func resum(frame []byte, v6 bool) {
	if v6 {
		udp := frame[sizeEthernet+sizeIPv6:]
		udp[6], udp[7] = 0, 0
		s := add(sum(sum(0, frame[sizeEthernet+8:sizeEthernet+40]), udp), swapped(protoUDP)+swapped(uint16(len(udp))))
		binary.BigEndian.PutUint16(udp[6:], ^fold(s))
		return
	}
	ip := frame[sizeEthernet : sizeEthernet+sizeIPv4]
	ip[10], ip[11] = 0, 0
	binary.BigEndian.PutUint16(ip[10:], ^fold(sum(0, ip)))
	udp := frame[sizeEthernet+sizeIPv4:]
	udp[6], udp[7] = 0, 0
	s := add(sum(sum(0, ip[12:20]), udp), swapped(protoUDP)+swapped(uint16(len(udp))))
	binary.BigEndian.PutUint16(udp[6:], ^fold(s))
}

// TestChanged takes frames whose checksums are right.
func TestChanged(t *testing.T) {
	for _, p := range []struct {
		what   string
		v6     bool
		change func(frame []byte)
		keep   bool // the checksums
		want   bool
		marked bool
	}{
		{what: "nothing", want: true},
		{what: "nothing", v6: true, want: true},
		{what: "congestion experienced", change: func(f []byte) { f[15] |= 3 }, want: true, marked: true},
		{what: "congestion experienced", v6: true, change: func(f []byte) { f[15] |= 0x30 }, want: true, marked: true},
		{what: "no checksum", keep: true, change: func(f []byte) { f[40], f[41] = 0, 0 }, want: true},
		{what: "no checksum", v6: true, keep: true, change: func(f []byte) { f[60], f[61] = 0, 0 }},
		{what: "the checksum is left to hardware", keep: true, change: func(f []byte) {
			binary.BigEndian.PutUint16(f[40:],
				fold(add(sum(0, f[26:34]), swapped(protoUDP)+swapped(uint16(len(f)-34)))))
		}},
		{what: "more fragments", change: func(f []byte) { f[20] |= 0x20 }},
		{what: "fragment offset", change: func(f []byte) { f[21] = 1 }},
		{what: "TCP", change: func(f []byte) { f[23] = 6 }},
		{what: "from ourselves", change: func(f []byte) { copy(f[26:30], f[30:34]) }},
		{what: "from ourselves", v6: true, change: func(f []byte) { copy(f[22:38], f[38:54]) }},
		{what: "from loopback", change: func(f []byte) { f[26] = 127 }},
		{what: "from multicast", change: func(f []byte) { f[26] = 224 }},
		{what: "from broadcast", change: func(f []byte) { copy(f[26:30], []byte{255, 255, 255, 255}) }},
		{what: "from multicast", v6: true, change: func(f []byte) { f[22] = 0xff }},
		{what: "from loopback", v6: true, change: func(f []byte) { clear(f[22:38]); f[37] = 1 }},
		{what: "from a mapped address", v6: true, change: func(f []byte) {
			clear(f[22:38])
			f[32], f[33], f[34] = 0xff,
				0xff, 10
		}},
		{what: "to another port", change: func(f []byte) { f[37]++ }},
		{what: "to another address", change: func(f []byte) { f[33]++ }},
		{what: "UDP longer than IP", change: func(f []byte) { f[39]++ }},
		{what: "UDP shorter than its header", change: func(f []byte) { f[39] = 7 }},
		{what: "IP longer than the frame", change: func(f []byte) { f[17]++ }},
		{what: "IP longer than the frame", v6: true, change: func(f []byte) { f[19]++ }},
	} {
		e := ends["ipv4"]
		if p.v6 {
			e = ends["ipv6"]
		}
		frame, to := framed(e, []byte("weft weaves"))
		if p.change != nil {
			p.change(frame)
		}
		if !p.keep {
			resum(frame, p.v6)
		}
		var m sock.Message
		if got := to.parse(frame, &m); got != p.want || got && m.Marked != p.marked {
			t.Errorf("%s, IPv6 %v: taken %v, marked %v", p.what, p.v6, got, m.Marked)
		}
	}
}

// FuzzFrame has no frame do more than be refused or be read inside of its bounds.
func FuzzFrame(f *testing.F) {
	for _, e := range ends {
		frame, _ := framed(e, []byte("weft weaves"))
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		for _, e := range ends {
			to := newLocal(e[1], scope)
			var m sock.Message
			if to.parse(frame, &m) &&
				(m.Segment != len(m.Bytes) || len(m.Bytes) > len(frame)-sizeEthernet-sizeIPv4-sizeUDP ||
					m.From.IsAny()) {
				t.Errorf("%d bytes of %d from %v", len(m.Bytes), len(frame), m.From.AddrPort())
			}
		}
	})
}

func BenchmarkFrame(b *testing.B) {
	for _, size := range []int{30, 1450} {
		frame, to := framed(ends["ipv4"], make([]byte, size))
		w := newTemplate([6]byte{}, [6]byte{}, ends["ipv4"][0], ends["ipv4"][1], 0)
		name := map[int]string{30: "small", 1450: "large"}[size]
		b.Run("put/"+name, func(b *testing.B) {
			for b.Loop() {
				w.put(frame, size)
			}
		})
		b.Run("parse/"+name, func(b *testing.B) {
			var m sock.Message
			for b.Loop() {
				if !to.parse(frame, &m) {
					b.Fatal("refused")
				}
			}
		})
	}
}
