package xdp

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// message is an answer of the kernel's with a body and attributes.
func message(kind uint16, body []byte, attributes map[uint16][]byte) []byte {
	r := newRequest(kind, body)
	for k, v := range attributes {
		r.attribute(k, v)
	}
	return r.bytes(1)
}

// body is what is in a message.
func body(t testing.TB, b []byte) (list []byte) {
	if err := eachMessage(b, func(_ uint16, _ uint32, b []byte) { list = b }); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestNetlink(t *testing.T) {
	seven := binary.NativeEndian.AppendUint32(nil, 7)
	rt := make([]byte, unix.SizeofRtMsg)
	rt[7] = unix.RTN_UNICAST
	route, err := parseRoute(body(t, message(unix.RTM_NEWROUTE, rt, map[uint16][]byte{unix.RTA_OIF: seven,
		unix.RTA_GATEWAY: {10, 0, 0, 1}})))
	if err != nil || route.iface != 7 || route.kind != unix.RTN_UNICAST ||
		string(route.gateway) != "\x0a\x00\x00\x01" || route.wrapped {
		t.Errorf("route %+v: %v", route, err)
	}
	nd := make([]byte, unix.SizeofNdMsg)
	nd[4], nd[8] = 7, unix.NUD_REACHABLE
	n, err := parseNeighbour(body(t, message(unix.RTM_NEWNEIGH, nd, map[uint16][]byte{unix.NDA_DST: {10, 0, 0, 1},
		unix.NDA_LLADDR: []byte("weft-1")})))
	if err != nil || n.iface != 7 || n.state != unix.NUD_REACHABLE || string(n.mac) != "weft-1" || len(n.ip) != 4 {
		t.Errorf("neighbour %+v: %v", n, err)
	}
	mtu, err := parseMTU(body(t, message(unix.RTM_NEWLINK, make([]byte, unix.SizeofIfInfomsg),
		map[uint16][]byte{unix.IFLA_MTU: {0xdc, 5, 0, 0}})))
	if err != nil || mtu != 1500 {
		t.Errorf("MTU %d: %v", mtu, err)
	}
}

// TestKernelAnswers asks the kernel, which every process may, about the loopback
// interface, and about a network that no route leads to.
func TestKernelAnswers(t *testing.T) {
	r := routes{iface: 1, from: netip.MustParseAddrPort("127.0.0.1:1"), payload: 1000}
	if err := r.open(); err != nil {
		t.Skip(err)
	}
	defer r.close()
	answer, err := r.asks.ask(r.routeRequest([]byte{127, 0, 0, 2}))
	if err != nil {
		t.Fatal(err)
	}
	if route, err := parseRoute(answer); err != nil || route.iface != 1 || route.kind != unix.RTN_LOCAL {
		t.Errorf("route %+v: %v", route, err)
	}
	if mtu := r.interfaceMTU(); mtu < 1500 {
		t.Errorf("MTU %d", mtu)
	}
	if _, err := r.asks.ask(r.routeRequest([]byte{255, 255, 255, 255, 0})); err == nil {
		t.Error("an address of five bytes has a route")
	}
	if err := r.resolve(&way{}, netip.MustParseAddrPort("127.0.0.2:1")); err == nil {
		t.Error("loopback is an Ethernet")
	}
	r.tick(time.Hour)
}

// FuzzNetlink has no message do more than be refused.
func FuzzNetlink(f *testing.F) {
	f.Add(message(unix.RTM_NEWNEIGH, make([]byte, unix.SizeofNdMsg), map[uint16][]byte{unix.NDA_DST: {1, 2, 3, 4}}))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_ = eachMessage(b, func(_ uint16, _ uint32, b []byte) {
			_, _ = parseRoute(b)
			_, _ = parseNeighbour(b)
			_, _ = parseMTU(b)
		})
	})
}
