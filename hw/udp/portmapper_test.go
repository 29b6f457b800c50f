package udp

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/sock"
)

// mapper makes a port mapper on the host's loopback interface.
func mapper(t testing.TB, v6 bool) *PortMapper {
	t.Helper()
	fd := bound(t, v6)
	defer unix.Close(fd)
	m, err := OpenPortMapper(fd, 0, func(_ netip.AddrPort, b []byte) []byte { return []byte("yes") })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// openAt opens an interface of a port mapper.
func openAt(t testing.TB, m *PortMapper, number uint8, c Config) *Iface {
	t.Helper()
	c.Logf, c.Memory = t.Logf, NewMemoryDomain()
	i, err := m.Open(number, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return i
}

// wantMessage sends a message from a over ep, and from b back to where it came from: b must know a
// by its address.
func wantMessage(t *testing.T, ep hw.Endpoint, a, b *Iface) {
	t.Helper()
	var from []byte
	b.SetHandler(1, func(src hw.Source, _ uint64, _, _ []byte) {
		if from = b.SourceAddress(src); !b.SourceReaches(src, a.Address()) {
			t.Errorf("the source %x is not reached at %x", from, a.Address())
		}
	})
	answered := false
	a.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { answered = true })
	if err := ep.AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "message", func() bool { a.Progress(1); b.Progress(1); return from != nil })
	if !bytes.Equal(from, a.Address()) {
		t.Errorf("the message comes from %x, want %x", from, a.Address())
	}
	back, err := b.Connect(from)
	if err != nil {
		t.Fatalf("the connection is not used in the other direction: %v", err)
	}
	if err := back.AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "answer", func() bool { a.Progress(1); b.Progress(1); return answered })
}

// TestPortMapper: interfaces that share a name are found by their numbers and known by them, also
// by an interface with a name of its own, which they know by that.
func TestPortMapper(t *testing.T) {
	for _, c := range []struct {
		name string
		Config
		v6 bool
	}{{name: "plain"}, {"key", Config{Key: []byte("secret")}, false}, {"stripes, ipv6", Config{Stripes: 4}, true}} {
		t.Run(c.name, func(t *testing.T) {
			x, y := mapper(t, c.v6), mapper(t, c.v6)
			alone := open(t, c.v6, c.Config)
			var ys []*Iface
			for _, n := range []uint8{0, 5, wire.MaxInterfaces - 1} {
				ys = append(ys, openAt(t, y, n, c.Config))
			}
			for _, n := range []uint8{0, 7} {
				a := openAt(t, x, n, c.Config)
				for _, b := range append(ys, alone) {
					wantMessage(t, pair(t, a, b), a, b)
				}
			}
			for _, b := range ys {
				wantMessage(t, pair(t, alone, b), alone, b)
			}
		})
	}
}

// TestPortMapperAgain closes an interface and opens another with its number, which is found at its
// new port, also by an attempt to connect that began while the old one was there.
func TestPortMapperAgain(t *testing.T) {
	m, a := mapper(t, false), open(t, false, Config{})
	b := openAt(t, m, 1, Config{})
	if _, err := m.Open(1, Config{}); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("a number that is taken: %v", err)
	}
	if _, err := m.Open(wire.MaxInterfaces, Config{}); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("a number that is too large: %v", err)
	}
	to := b.Address()
	wantMessage(t, pair(t, a, b), a, b)
	b.Close()
	eventually(t, "end of the connection", func() bool { a.Progress(1); a.CheckPeers(); return len(a.peers) == 0 })
	for range 50 { // nothing has the number
		if _, err := a.Connect(to); !errors.Is(err, hw.ErrUnreachable) {
			t.Fatal(err)
		}
		a.Progress(1)
		time.Sleep(time.Millisecond)
	}
	b = openAt(t, m, 1, Config{})
	wantMessage(t, pair(t, a, b), a, b)

	// What is notified of the old port leads nowhere: the name is asked again.
	c := open(t, false, Config{})
	gone := openAt(t, m, 2, Config{})
	if _, err := c.Connect(gone.Address()); !errors.Is(err, hw.ErrUnreachable) {
		t.Fatal(err)
	}
	gone.closed.Store(true) // it answers nothing
	eventually(t, "the old port", func() bool {
		_, _ = c.Connect(gone.Address())
		return c.stripes[0].conns[0].dial.moved
	})
	gone.closed.Store(false)
	gone.Close()
	b = openAt(t, m, 2, Config{})
	wantMessage(t, pair(t, c, b), c, b)
}

// TestClaimedName: a stranger that says that it is an interface of a name gets no cookie; it goes to
// the name, which does not know of it.
func TestClaimedName(t *testing.T) {
	m, server := mapper(t, false), open(t, false, Config{})
	mine := openAt(t, m, 3, Config{})
	fd := bound(t, false)
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}); err != nil {
		t.Fatal(err)
	}
	to, _ := sock.Parse(server.Address())
	name, _ := sock.Parse(mine.Address())
	for _, c := range []struct {
		role wire.Role
		size int
	}{{wire.Role{}, wire.RetrySize}, {wire.Role{Port: name.Port(), Number: 3}, 0}} {
		init := wire.Init{Client: server.stripes[0].newSide(0), Role: c.role}
		packet := make([]byte, wire.InitSize)
		init.Put(packet)
		if err := unix.Sendto(fd, packet, 0, &unix.SockaddrInet4{Port: int(to.Port()),
			Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
		server.Progress(1)
		n, _, err := unix.Recvfrom(fd, make([]byte, 1500), 0)
		if err == nil && n != c.size || err != nil && c.size != 0 {
			t.Errorf("role %+v: an answer of %d bytes, %v, want %d bytes", c.role, n, err, c.size)
		}
	}
	if n := server.count.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

// TestPortMapperHostile gives the port mapper what no peer sends.
func TestPortMapperHostile(t *testing.T) {
	m, a := mapper(t, false), open(t, false, Config{})
	b := openAt(t, m, 1, Config{})
	from := stranger(t, m.name.Bytes())
	good := make([]byte, wire.InitSize)
	(&wire.Init{Client: a.stripes[0].newSide(0), Wanted: 1}).Put(good)
	retry := make([]byte, wire.RetrySize)
	(&wire.Retry{Reply: wire.Reply{Stripe: 200, CID: 1 << 31}}).Put(retry)
	for n := range good {
		bad := bytes.Clone(good)
		bad[n] ^= 0xff
		from(bad)
		from(good[:n])
		from(retry[:min(n, len(retry))])
	}
	from(retry)
	wantMessage(t, pair(t, a, b), a, b)
	if got := m.take(netip.MustParseAddrPort("127.0.0.1:1"), []byte("w\x00...")); string(got) != "yes" {
		t.Errorf("another protocol: answered %q", got)
	}
	if got := m.take(netip.MustParseAddrPort("127.0.0.1:1"), []byte{0xBF, 0, 0}); got != nil {
		t.Errorf("a datagram that claims to be of this protocol: answered %q", got)
	}
}
