package udp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/hwtest"
	"github.com/weft-fabric/weft/hw/udp/internal/xdp"
	"github.com/weft-fabric/weft/internal/nettest"
)

// bypassing opens an interface that goes past the kernel's network stack, or
// skips the test.
func bypassing(t testing.TB, h *nettest.Host, v6 bool, c Config) *Iface {
	t.Helper()
	c.XDP = XDPTry
	i := at(t, h, v6, c)
	if i.XDP() == "" {
		t.Skip("no AF_XDP here: see the line above")
	}
	return i
}

// bypassed counts the datagrams that went past the kernel.
func (i *Iface) bypassed() (n uint64) {
	for _, s := range i.stripes {
		s.lease.lock()
		n += s.out.Bypassed
		s.leave()
	}
	return n
}

// malformedFrames counts frames that were for i and could not be taken.
func (i *Iface) malformedFrames() (n uint64) {
	for _, s := range i.stripes {
		s.lease.lock()
		n += i.xdp.Ports()[s.number].Malformed
		s.leave()
	}
	return n
}

// awaitBypass sends messages until they go past the kernel.
func awaitBypass(t *testing.T, a, b *Iface, ep hw.Endpoint, sent, got *uint64) {
	t.Helper()
	begin := a.bypassed()
	eventually(t, "datagrams past the kernel", func() bool {
		flow(t, a, b, ep, sent, got, *sent+100, 100)
		time.Sleep(time.Millisecond)
		return a.bypassed() > begin
	})
}

// TestXDP sends messages past the kernel, from several stripes to several queues.
func TestXDP(t *testing.T) {
	for _, p := range []struct {
		v6      bool
		where   xdp.Where
		stripes int
		queues  int
		key     []byte
	}{
		{false, xdp.BehindDriver, 1, 1, nil}, {true, xdp.BehindDriver, 3, 2, []byte("key")},
		{true, xdp.InDriver, 1, 1, nil}, {false, xdp.InDriver, 3, 2, []byte("key")},
	} {
		t.Run(fmt.Sprintf("ipv6 %v, where %d, %d stripes, %d queues", p.v6, p.where, p.stripes, p.queues),
			func(t *testing.T) {
				ha, hb := nettest.New(t)
				ha.Queues(p.queues)
				c := Config{Stripes: p.stripes, XDPWhere: p.where, Key: p.key}
				a, b := bypassing(t, ha, p.v6, c), bypassing(t, hb, p.v6, c)
				t.Log(a.XDP())
				ep := pair(t, a, b)
				got, sent := counting(t, b), new(uint64)
				awaitBypass(t, a, b, ep, sent, got)
				begin := a.bypassed()
				flow(t, a, b, ep, sent, got, *sent+5000, 1000)
				if n := a.bypassed() - begin; n < 1000 {
					t.Errorf("%d datagrams went past the kernel", n)
				}
				if n := b.malformedFrames(); n != 0 {
					t.Errorf("%d malformed frames", n)
				}
				stream(t, b, a, 3000)
			})
	}
}

// TestXDPHosts runs the conformance suite past the kernel. Of the interfaces that
// a test opens one on each host is; the others, which share with it, are not.
func TestXDPHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	a, b := nettest.New(t)
	var n atomic.Uint32
	var past atomic.Uint32
	hwtest.Run(t, func(t testing.TB) hw.Iface {
		h := a
		if n.Add(1)%2 == 0 {
			h = b
		}
		i := at(t, h, false, Config{Stripes: 2, XDP: XDPTry})
		if i.XDP() != "" {
			past.Add(1)
		}
		return i
	})
	if past.Load() == 0 {
		t.Skip("no AF_XDP here")
	}
}

// TestXDPRefused: where it is not possible, the kernel's way is taken, or none.
func TestXDPRefused(t *testing.T) {
	ha, hb := nettest.New(t)
	first := bypassing(t, ha, false, Config{})
	var lines []string
	open := func(c Config) (i *Iface, err error) {
		c.Logf = func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
		fd := ha.UDP(false)
		ha.Do(func() { i, err = Open(fd, c) })
		return i, err
	}
	if i, err := open(Config{XDP: XDPMust}); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a second one on the interface: %v", err)
		i.Close()
	}
	i, err := open(Config{XDP: XDPTry})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	if i.XDP() != "" || len(lines) != 1 || !strings.Contains(lines[0], "busy") {
		t.Errorf("%q: %q", i.XDP(), lines)
	}
	b := at(t, hb, false, Config{})
	if mine, others := i.stripes[0].socket.HasInbox(), b.stripes[0].socket.HasInbox(); mine != others ||
		first.stripes[0].socket.HasInbox() {
		t.Errorf("inbox: %v, %v", mine, others)
	}
	stream(t, i, b, 100)
	stream(t, b, i, 100)
	stream(t, first, b, 100)
}

// TestXDPCable takes the cable away, shrinks its MTU and has the peer's hardware address
// replaced, while messages flow.
func TestXDPCable(t *testing.T) {
	for name, v6 := range map[string]bool{"ipv4": false, "ipv6": true} {
		t.Run(name, func(t *testing.T) {
			ha, hb := nettest.New(t)
			a, b := bypassing(t, ha, v6, Config{}), bypassing(t, hb, v6, Config{})
			ep := pair(t, a, b)
			got, sent := counting(t, b), new(uint64)
			awaitBypass(t, a, b, ep, sent, got)
			for _, h := range []*nettest.Host{ha, hb} {
				h.Up(false)
				for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); a.Progress(1) {
					if ep.AMShort(1, *sent, nil, nil) == nil {
						*sent++
					}
				}
				h.Up(true)
				flow(t, a, b, ep, sent, got, *sent+100, 1000)
				awaitBypass(t, a, b, ep, sent, got)
			}
			ha.MTU(1400)
			flow(t, a, b, ep, sent, got, *sent+500, 8000)
			if size := packetSize(ep); size > 1400 {
				t.Errorf("packets of %d bytes over an MTU of 1400", size)
			}
			// The kernel reports the new hardware address by itself, which then passes
			// the program of the host that has it by.
			hb.Run("ip", "link", "set", hb.Iface, "address", "02:00:00:00:77:77")
			flow(t, a, b, ep, sent, got, *sent+100, 100)
			if ep.Err() != nil {
				t.Error(ep.Err())
			}
		})
	}
}

// TestXDPForged sends frames that are for us by their addresses and wrong otherwise,
// and others that are another's.
func TestXDPForged(t *testing.T) {
	ha, hb := nettest.New(t)
	a, b := bypassing(t, ha, false, Config{}), bypassing(t, hb, false, Config{})
	ep := pair(t, a, b)
	got, sent := counting(t, b), new(uint64)
	awaitBypass(t, a, b, ep, sent, got)
	other := hb.UDP(false)
	defer unix.Close(other)
	var macA, macB net.HardwareAddr
	ha.Do(func() { macA = macOf(t, ha.Iface) })
	hb.Do(func() { macB = macOf(t, hb.Iface) })
	frame := make([]byte, 14+20+8+30)
	copy(frame, macB)
	copy(frame[6:], macA)
	frame[12] = 8
	ip := frame[14:]
	copy(ip, []byte{0x45, 0, 0, 58, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 99, 0, 1, 10, 99, 0, 2})
	binary.BigEndian.PutUint16(ip[20:], a.name.Port())
	binary.BigEndian.PutUint16(ip[22:], b.name.Port())
	binary.BigEndian.PutUint16(ip[24:], 38)
	raw := -1
	var err error
	ha.Do(func() {
		if raw, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err == nil {
			err = unix.Bind(raw, &unix.SockaddrLinklayer{Ifindex: ha.Index})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(raw)
	send := func(f []byte) {
		if _, err := unix.Write(raw, f); err != nil {
			t.Error(err)
		}
	}
	for range 10 {
		send(frame) // no header checksum
	}
	eventually(t, "malformed frames", func() bool { b.Progress(1); return b.malformedFrames() == 10 })
	// What is another socket's goes on to the kernel: its port, and a fragment.
	name, _ := unix.Getsockname(other)
	copy(ip[10:], checksum(ip[:20]))
	binary.BigEndian.PutUint16(ip[22:], uint16(name.(*unix.SockaddrInet4).Port))
	send(frame)
	_ = unix.SetsockoptTimeval(other, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 20})
	buf := make([]byte, 100)
	if n, err := unix.Read(other, buf); n != 30 || err != nil {
		t.Errorf("another socket got %d bytes: %v", n, err)
	}
	flow(t, a, b, ep, sent, got, *sent+1000, 100)
	if n := b.malformedFrames(); n != 10 || ep.Err() != nil {
		t.Errorf("%d malformed frames, endpoint %v", n, ep.Err())
	}
}

func macOf(t *testing.T, iface string) net.HardwareAddr {
	i, err := net.InterfaceByName(iface)
	if err != nil {
		t.Error(err)
		return nil
	}
	return bytes.Clone(i.HardwareAddr)
}

// checksum is that of an IP header.
func checksum(b []byte) []byte {
	s := uint32(0)
	for i := 0; i < len(b); i += 2 {
		if i != 10 {
			s += uint32(binary.BigEndian.Uint16(b[i:]))
		}
	}
	s = s>>16 + s&0xffff
	return binary.BigEndian.AppendUint16(nil, ^uint16(s+s>>16))
}

// TestXDPRestart: a peer that ends without a word, and one at its address that
// begins.
func TestXDPRestart(t *testing.T) {
	ha, hb := nettest.New(t)
	c := Config{KeepAlive: 20 * time.Millisecond, PeerTimeout: never}
	a, b := bypassing(t, ha, false, c), bypassing(t, hb, false, c)
	ep := pair(t, a, b)
	got, sent := counting(t, b), new(uint64)
	awaitBypass(t, a, b, ep, sent, got)
	address := bytes.Clone(b.Address())
	crash(b)
	gone(t, a, ep)
	c.XDP = XDPMust
	hb.Do(func() { b = reopen(t, address, c) })
	*sent, *got = 0, 0
	got = counting(t, b)
	ep = pair(t, a, b)
	awaitBypass(t, a, b, ep, sent, got)
}
