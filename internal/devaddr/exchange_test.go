package devaddr

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
)

// bound is a socket with its name as a socket address.
func bound(t *testing.T, addr string) (fd int, name []byte) {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(addr)))
	if err != nil {
		t.Skipf("no socket at %s: %v", addr, err)
	}
	t.Cleanup(func() { _ = c.Close() })
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	at := c.LocalAddr().(*net.UDPAddr).AddrPort()
	if at.Addr().Unmap().Is4() {
		name = make([]byte, unix.SizeofSockaddrInet4)
		binary.NativeEndian.PutUint16(name, unix.AF_INET)
		ip := at.Addr().Unmap().As4()
		copy(name[4:], ip[:])
	} else {
		name = make([]byte, unix.SizeofSockaddrInet6)
		binary.NativeEndian.PutUint16(name, unix.AF_INET6)
		ip := at.Addr().As16()
		copy(name[8:], ip[:])
	}
	binary.BigEndian.PutUint16(name[2:], at.Port())
	return int(f.Fd()), name
}

func open(t *testing.T, fd int, own string) *Exchange {
	t.Helper()
	x, err := Open(fd, []byte(own))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

// resolve asks until there is an answer.
func resolve(t *testing.T, x *Exchange, name []byte) string {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		b, err := x.Resolve(name)
		if err == nil {
			return string(b)
		}
		if !errors.Is(err, hw.ErrUnreachable) {
			t.Fatal(err)
		}
	}
	t.Fatal("no answer")
	return ""
}

func TestExchange(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		fdA, nameA := bound(t, addr)
		fdB, nameB := bound(t, addr)
		a := open(t, fdA, "device a")
		if _, err := a.Resolve(nameB); !errors.Is(err, hw.ErrUnreachable) {
			t.Errorf("before the peer answers: %v", err)
		}
		b := open(t, fdB, "device b")
		if got := resolve(t, a, nameB); got != "device b" {
			t.Errorf("a learns %q", got)
		}
		if got := resolve(t, b, nameA); got != "device a" {
			t.Errorf("b learns %q", got)
		}
		if got := resolve(t, a, nameA); got != "device a" {
			t.Errorf("a learns %q of itself", got)
		}
		a.Forget(nameB)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := a.Resolve(nameB); !errors.Is(err, hw.ErrUnreachable) {
			t.Errorf("after the peer is forgotten: %v", err)
		}
	}
}

// TestForged: an answer to a question that was not asked, or with another
// number, teaches nothing.
func TestForged(t *testing.T) {
	fdA, nameA := bound(t, "127.0.0.1:0")
	fdB, nameB := bound(t, "127.0.0.1:0")
	a := open(t, fdA, "device a")
	if _, err := a.Resolve(nameB); !errors.Is(err, hw.ErrUnreachable) {
		t.Fatal(err)
	}
	for _, forged := range [][packetBytes]byte{packet(kindAnswer, 1, []byte("wrong"), 0),
		packet(7, 1, []byte("wrong"), 0)} {
		to := &unix.SockaddrInet4{Port: int(binary.BigEndian.Uint16(nameA[2:])), Addr: [4]byte(nameA[4:8])}
		if err := unix.Sendto(fdB, forged[:], 0, to); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(50 * time.Millisecond)
	if got, err := a.Resolve(nameB); err == nil {
		t.Errorf("learned %q from a forged answer", got)
	}
}

// TestShared: two sides without sockets of their own, one of them without a
// device. What has been notified so asks again later.
func TestShared(t *testing.T) {
	nameA, nameB := netip.MustParseAddrPort("10.1.0.1:7"), netip.MustParseAddrPort("10.1.0.2:7")
	sockaddr := func(a netip.AddrPort) []byte {
		b := make([]byte, unix.SizeofSockaddrInet4)
		binary.NativeEndian.PutUint16(b, unix.AF_INET)
		binary.BigEndian.PutUint16(b[2:], a.Port())
		ip := a.Addr().As4()
		copy(b[4:], ip[:])
		return b
	}
	a, err := Share([]byte("device a"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Share(nil)
	if err != nil {
		t.Fatal(err)
	}
	lost := 1
	wire := func(from netip.AddrPort, to, back *Exchange, toName netip.AddrPort) func(netip.AddrPort, []byte) {
		return func(_ netip.AddrPort, q []byte) {
			if lost > 0 {
				lost--
				return
			}
			if answer := to.Take(from, q); answer != nil {
				back.Take(toName, answer)
			}
		}
	}
	a.Over(wire(nameA, b, a, nameB))
	b.Over(wire(nameB, a, b, nameA))
	if got := resolve(t, b, sockaddr(nameA)); got != "device a" {
		t.Errorf("b learns %q", got)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		_, err := a.Resolve(sockaddr(nameB))
		if errors.Is(err, hw.ErrNoPath) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("a does not learn that b has no device: %v", err)
		}
	}
	b.Set(0, []byte("device b"))
	b.Set(9, []byte("device c"))
	a.known[peer{nameB, 0}].next = time.Now()
	ninth := append(sockaddr(nameB), 9, 0, 0, 0)
	for range 2 {
		if got, ninth := resolve(t, a, sockaddr(nameB)), resolve(t, a, ninth); got != "device b" ||
			ninth != "device c" {
			t.Errorf("a learns %q and %q", got, ninth)
		}
	}
	b.Set(9, nil)
	a.Forget(ninth)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := a.Resolve(ninth); errors.Is(err, hw.ErrNoPath) {
			break
		} else if time.Now().After(end) {
			t.Fatalf("a does not learn that b's device is gone: %v", err)
		}
	}
	for _, x := range []*Exchange{a, b} {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := Share(make([]byte, MaxAddress+1)); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("a long address: %v", err)
	}
}

func TestBadArguments(t *testing.T) {
	fd, _ := bound(t, "127.0.0.1:0")
	for _, own := range [][]byte{nil, make([]byte, MaxAddress+1)} {
		if _, err := Open(fd, own); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("device address of %d bytes: %v", len(own), err)
		}
	}
	x := open(t, fd, "device")
	for _, name := range [][]byte{nil, {1}, make([]byte, 28), {unix.AF_INET, 0, 0, 1, 10, 0, 0, 1, 15: 0, 17: 1,
		19: 0}} {
		if _, err := x.Resolve(name); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("name %x: %v", name, err)
		}
	}
}

func FuzzPacket(f *testing.F) {
	for _, b := range [][packetBytes]byte{packet(kindAsk, 5, nil, 3), packet(kindAnswer, 5, []byte("device"), 0),
		packet(kindNone, 5, nil, 255)} {
		f.Add(b[:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		kind, number, address, which, ok := parsePacket(b)
		if !ok {
			return
		}
		if again := packet(kind, number, address, which); !bytes.Equal(again[:headBytes+len(address)],
			b[:headBytes+len(address)]) || again[whichAt] != b[whichAt] {
			t.Errorf("%x is read as %d %d %x", b, kind, number, address)
		}
	})
}
