package udp

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/nettest"
	"github.com/weft-fabric/weft/internal/sock"
)

// classes counts the packets of an address that a capture sees, by their code points of
// differentiated services.
func classes(c *capture, from sock.Addr) map[byte]int {
	seen := map[byte]int{}
	var packet [65536]byte
	for {
		n, _, err := unix.Recvfrom(c.fd, packet[:], 0)
		if err != nil {
			return seen
		}
		b := packet[:n]
		var service byte
		var header int
		switch {
		case n > 28 && b[0] == 0x45 && b[9] == unix.IPPROTO_UDP:
			service, header = b[1], 20
		case n > 48 && b[0]>>4 == 6 && b[6] == unix.IPPROTO_UDP:
			service, header = b[0]<<4|b[1]>>4, 40
		default:
			continue
		}
		if uint16(b[header])<<8|uint16(b[header+1]) == from.Port() {
			seen[service>>2]++
		}
	}
}

// TestClass has each packet of a conversation carry its sender's code point, by the kernel and past
// it. Those that go past a host's kernel are seen at the other end.
func TestClass(t *testing.T) {
	for name, v6 := range map[string]bool{"ipv4": false, "ipv6": true} {
		for _, past := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " xdp"}[past], func(t *testing.T) {
				open := at
				if past {
					open = bypassing
				}
				ha, hb := nettest.New(t)
				a, b := open(t, ha, v6, Config{Class: 46}), at(t, hb, v6, Config{})
				c := newCapture(t, hb, 0)
				ep := pair(t, a, b)
				got, sent := counting(t, b), new(uint64)
				if past {
					awaitBypass(t, a, b, ep, sent, got)
				}
				flow(t, a, b, ep, sent, got, *sent+100, 1000)
				if seen := classes(c, a.name); len(seen) != 1 || seen[46] < 3 {
					t.Errorf("of the sender with class 46: %v", seen)
				}
				c = newCapture(t, ha, 0)
				stream(t, b, a, 300)
				if seen := classes(c, b.name); !past && (len(seen) != 1 || seen[0] < 3) {
					t.Errorf("of the sender without a class: %v", seen)
				}
			})
		}
	}
}
