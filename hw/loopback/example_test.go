package loopback_test

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/loopback"
)

// sockaddrIn is the C representation of an IPv4 socket address.
func sockaddrIn(s string) []byte {
	a := netip.MustParseAddrPort(s)
	ip := a.Addr().As4()
	raw := [16]byte{unix.AF_INET, 0, byte(a.Port() >> 8), byte(a.Port())}
	copy(raw[4:], ip[:])
	return raw[:]
}

// Two interfaces of one process; in two processes it looks the same.
func Example() {
	receiver, err := loopback.Open(sockaddrIn("127.77.0.1:7001"), loopback.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer receiver.Close()
	receiver.SetHandler(1, func(_ hw.Source, header uint64, head, payload []byte) {
		fmt.Println(header, string(head), string(payload))
	})

	sender, err := loopback.Open(sockaddrIn("127.77.0.1:7002"), loopback.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sender.Close()
	ep, err := sender.Connect(receiver.Address())
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := ep.AMShort(1, 42, []byte("head"), []byte("payload")); err != nil {
		fmt.Println(err) // hw.ErrNoResource: try again when the receiver has made progress
	}

	receiver.Progress(1)
	// Output: 42 head payload
}
