package sock

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// bound returns a UDP socket bound to ap, whose port may be 0.
func bound(t testing.TB, ap string) int {
	t.Helper()
	a := FromAddrPort(netip.MustParseAddrPort(ap))
	family := unix.AF_INET
	if !a.Is4() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, sockaddr(&a)); err != nil {
		t.Fatal(err)
	}
	return fd
}

func group(t testing.TB, ap string, o Options) (*Group, Addr) {
	t.Helper()
	fd := bound(t, ap)
	addr, err := Bound(fd)
	if err != nil {
		t.Fatal(err)
	}
	o.Stripes, o.Buffer = max(o.Stripes, 1), 1<<20
	g, err := NewGroup(fd, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g, addr
}

func buffers(t testing.TB) (*In, *Out) {
	t.Helper()
	in, err := NewIn()
	if err != nil {
		t.Fatal(err)
	}
	out, err := NewOut(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Free)
	t.Cleanup(out.Free)
	return in, out
}

// datagram adds a datagram of head and tail.
func datagram(o *Out, s *Socket, to *Addr, head, tail []byte) {
	b := o.Take(len(head))
	copy(b, head)
	o.Add(s, to, 7, b, tail, false)
}

var began = time.Now()

// collect receives datagrams until there are n, or fails.
func collect(t *testing.T, s *Socket, in *In, n int) (list [][]byte, from []Addr) {
	t.Helper()
	for end := time.Now().Add(time.Minute); len(list) < n; {
		if time.Now().After(end) {
			t.Fatalf("%d of %d datagrams came", len(list), n)
		}
		got, _, err := s.Receive(in, time.Since(began))
		if err != nil {
			t.Fatal(err)
		}
		for k := range got {
			var m Message
			if !in.Message(k, &m) {
				t.Fatal("a message is not usable")
			}
			if m.Driver == 0 && time.Since(time.Unix(0, int64(m.Stamp))).Abs() > time.Minute {
				t.Errorf("stamp %v", m.Stamp)
			}
			for b := m.Bytes; len(b) > 0; {
				c := min(m.Segment, len(b))
				list, from = append(list, bytes.Clone(b[:c])), append(from, m.From)
				b = b[c:]
			}
		}
	}
	return list, from
}

func TestSendReceive(t *testing.T) {
	for _, ap := range []string{"127.0.0.1:0", "[::1]:0"} {
		a, aAddr := group(t, ap, Options{})
		b, bAddr := group(t, ap, Options{})
		for _, plain := range []bool{false, true} {
			a.Sockets[0].noGSO = plain
			in, out := buffers(t)
			var want [][]byte
			for n := range 100 {
				tail := bytes.Repeat([]byte{byte(n)}, 1000)
				if n%10 == 9 {
					tail = tail[:500]
				}
				if out.Full(2) {
					out.Flush(a.Sockets[0])
				}
				datagram(out, a.Sockets[0], &bAddr, []byte{byte(n), 1}, tail)
				want = append(want, append([]byte{byte(n), 1}, tail...))
			}
			out.Flush(a.Sockets[0])
			if len(out.Failed) != 0 || !out.Empty() {
				t.Fatalf("failed: %v", out.Failed)
			}
			got, from := collect(t, b.Sockets[0], in, 100)
			for n := range got {
				if !bytes.Equal(got[n], want[n]) || from[n] != aAddr {
					t.Fatalf("%s: datagram %d of %d bytes from %s", ap, n, len(got[n]), from[n].String())
				}
			}
			if !plain && out.Calls > 2 {
				t.Errorf("%d system calls for 100 datagrams", out.Calls)
			}
		}
	}
}

// TestJoin sends trains, of which all datagrams but the first are joined.
func TestJoin(t *testing.T) {
	a, aAddr := group(t, "127.0.0.1:0", Options{})
	b, bAddr := group(t, "127.0.0.1:0", Options{})
	in, out := buffers(t)
	s := a.Sockets[0]
	const size = 1002
	if n := out.Joinable(s, 7, size, size); n != 0 {
		t.Errorf("%d datagrams join nothing", n)
	}
	var want [][]byte
	add := func() []byte {
		want = append(want, bytes.Repeat([]byte{byte(len(want))}, size))
		return want[len(want)-1]
	}
	for len(want) < 400 { // more than the arena holds
		if out.Full(size) {
			out.Flush(s)
		}
		first := add()
		datagram(out, s, &bAddr, first[:2], first[2:])
		k := out.Joinable(s, 7, size, size)
		row := out.Take(k * size)
		for b := row; len(b) > 0; b = b[size:] {
			copy(b, add())
		}
		if k > 0 {
			out.Join(row, k)
		}
		for _, wrong := range [][2]int{{8, size}, {7, size - 1}, {7, size + 1}} {
			if k := out.Joinable(s, uint64(wrong[0]), wrong[1], wrong[1]); k != 0 {
				t.Errorf("%d datagrams of %d bytes of %d join", k, wrong[1], wrong[0])
			}
		}
	}
	out.Flush(s)
	if len(out.Failed) != 0 {
		t.Fatalf("failed: %v", out.Failed)
	}
	got, from := collect(t, b.Sockets[0], in, len(want))
	for n := range got {
		if !bytes.Equal(got[n], want[n]) || from[n] != aAddr {
			t.Fatalf("datagram %d of %d bytes from %s", n, len(got[n]), from[n].String())
		}
	}
	testRows(t, a, &bAddr, out, b.Sockets[0], in)
	if MaxTrain(1000) != maxSegments || MaxTrain(65507) != 0 || MaxTrain(1472) != 44 {
		t.Errorf("trains of %d, %d, %d", MaxTrain(1000), MaxTrain(65507), MaxTrain(1472))
	}
}

// testRows sends rows of datagrams, behind one that they may join and behind one that they
// may not.
func testRows(t *testing.T, a *Group, to *Addr, out *Out, b *Socket, in *In) {
	s := a.Sockets[0]
	for _, first := range []int{0, 999, 1000, 1001} {
		var want [][]byte
		if first > 0 {
			want = append(want, bytes.Repeat([]byte{1}, first))
			datagram(out, s, to, want[0], nil)
		}
		room := MaxTrain(1000)
		if first == 1000 {
			room--
		}
		if n := out.RowRoom(s, 7, 1000); n != room {
			t.Errorf("room for %d datagrams behind one of %d bytes", n, first)
		}
		row := make([]byte, room*1000)
		for n := range room {
			want = append(want, row[n*1000:][:1000])
			copy(want[len(want)-1], bytes.Repeat([]byte{byte(n)}, 1000))
		}
		calls, half := out.Calls, room/2
		out.AddRow(s, to, 7, row[:half*1000], half)
		out.AddRow(s, to, 7, row[half*1000:], room-half)
		if out.Flush(s); len(out.Failed) != 0 || out.Calls != calls+1 {
			t.Fatalf("failed: %v; %d calls", out.Failed, out.Calls-calls)
		}
		got, _ := collect(t, b, in, len(want))
		for n := range got {
			if !bytes.Equal(got[n], want[n]) {
				t.Fatalf("behind one of %d bytes: datagram %d of %d bytes", first, n, len(got[n]))
			}
		}
	}
}

func TestSteering(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want Steering
	}{{Options{Stripes: 4}, SteerEBPF}, {Options{Stripes: 4, NoEBPF: true}, SteerCBPF},
		{Options{Stripes: 4, NoEBPF: true, NoCBPF: true}, SteerNone}} {
		t.Run(c.want.String(), func(t *testing.T) {
			g, addr := group(t, "127.0.0.1:0", c.o)
			if errors.Is(g.Refused, unix.EPERM) {
				t.Skipf("eBPF programs are not allowed here: %v", g.Refused)
			}
			if g.Steering != c.want {
				t.Fatalf("steering by %v: %v", g.Steering, g.Refused)
			}
			if c.want == SteerNone {
				if len(g.Sockets) != 1 {
					t.Errorf("%d sockets", len(g.Sockets))
				}
				return
			}
			from, _ := group(t, "127.0.0.1:0", Options{})
			in, out := buffers(t)
			for stripe := range 8 {
				datagram(out, from.Sockets[0], &addr, []byte{0, byte(stripe), byte(stripe)}, nil)
				out.Flush(from.Sockets[0])
			}
			datagram(out, from.Sockets[0], &addr, []byte{9}, nil) // no stripe in it: anywhere
			out.Flush(from.Sockets[0])
			total := 0
			for end := time.Now().Add(time.Minute); total < 9; {
				if time.Now().After(end) {
					t.Fatalf("%d datagrams came", total)
				}
				for n, s := range g.Sockets {
					got, _, err := s.Receive(in, 0)
					if err != nil {
						t.Fatal(err)
					}
					total += got
					for k := range got {
						var m Message
						if in.Message(k, &m); len(m.Bytes) == 3 && int(m.Bytes[2])%4 != n {
							t.Errorf("stripe %d came to socket %d", m.Bytes[2], n)
						}
					}
				}
			}
		})
	}
}

// TestExclusive: an address that a group has nothing else gets by accident.
func TestExclusive(t *testing.T) {
	for _, stripes := range []int{1, 4} {
		_, addr := group(t, "127.0.0.1:0", Options{Stripes: stripes})
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Bind(fd, sockaddr(&addr)); !errors.Is(err, unix.EADDRINUSE) {
			t.Errorf("%d stripes: a second bind: %v", stripes, err)
		}
		unix.Close(fd)
	}
}

// TestRefused: the kernel says that nothing has a port, and what was sent there.
func TestRefused(t *testing.T) {
	for _, ap := range []string{"127.0.0.1:0", "[::1]:0"} {
		gone := bound(t, ap)
		to, err := Bound(gone)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(gone)
		g, _ := group(t, ap, Options{})
		_, out := buffers(t)
		datagram(out, g.Sockets[0], &to, []byte("hello"), nil)
		out.Flush(g.Sockets[0])
		notified := false
		// The kernel may deliver a little later.
		for end := time.Now().Add(time.Minute); !notified && time.Now().Before(end); {
			g.Sockets[0].Errors(func(tr *SendError) {
				notified = tr.Err == unix.ECONNREFUSED && tr.To == to && string(tr.Quoted) == "hello" && !tr.Local
			})
		}
		if !notified {
			t.Errorf("%s: nothing was notified", ap)
		}
	}
}

// TestTooBig: a datagram larger than the interface takes is refused, and its owner named.
func TestTooBig(t *testing.T) {
	g, addr := group(t, "127.0.0.1:0", Options{})
	_, out := buffers(t)
	b := out.Take(65508)
	out.Add(g.Sockets[0], &addr, 42, b, nil, true)
	out.Flush(g.Sockets[0])
	if len(out.Failed) != 1 || out.Failed[0].Owner != 42 || out.Failed[0].Err != unix.EMSGSIZE {
		t.Errorf("failed: %+v", out.Failed)
	}
}

// TestWildcard sends from the address that was asked for.
func TestWildcard(t *testing.T) {
	for _, ap := range []string{"0.0.0.0:0", "[::]:0"} {
		source := FromAddrPort(netip.MustParseAddrPort("127.0.0.5:0"))
		g, addr := group(t, ap, Options{Source: source})
		to, toAddr := group(t, "127.0.0.1:0", Options{})
		in, out := buffers(t)
		datagram(out, g.Sockets[0], &toAddr, []byte("hi"), nil)
		out.Flush(g.Sockets[0])
		_, from := collect(t, to.Sockets[0], in, 1)
		if from[0] != source.WithPort(addr.Port()) {
			t.Errorf("%s: came from %s", ap, from[0].String())
		}
	}
}

func TestAddr(t *testing.T) {
	for _, text := range []string{"10.1.2.3:55", "[2001:db8::1]:77", "[fe80::1%3]:88"} {
		a := FromAddrPort(netip.MustParseAddrPort(text))
		b, err := Parse(a.Bytes())
		if err != nil || a != b || a.String() != text || !a.Usable() {
			t.Errorf("%s: %s, %v", text, b.String(), err)
		}
	}
	mapped := [28]byte{10, 0, 0, 55, 18: 0xff, 19: 0xff, 20: 10, 21: 1, 22: 2, 23: 3}
	if a, err := Parse(mapped[:]); err != nil || a.String() != "10.1.2.3:55" {
		t.Errorf("mapped: %s, %v", a.String(), err)
	}
	for _, text := range []string{"0.0.0.0:5", "[::]:5", "10.0.0.1:0", "224.0.0.1:5", "255.255.255.255:5",
		"[ff02::1]:5"} {
		if a := FromAddrPort(netip.MustParseAddrPort(text)); a.Usable() {
			t.Errorf("%s is usable", text)
		}
	}
	if mtu, err := RouteMTU(new(FromAddrPort(netip.MustParseAddrPort("127.0.0.1:9")))); err != nil || mtu < 1280 {
		t.Errorf("MTU %d, %v", mtu, err)
	}
}

func TestNoAllocation(t *testing.T) {
	g, addr := group(t, "127.0.0.1:0", Options{})
	in, out := buffers(t)
	tail := make([]byte, 100)
	if n := testing.AllocsPerRun(100, func() {
		b := out.Take(10)
		out.Add(g.Sockets[0], &addr, 1, b, tail, false)
		out.Flush(g.Sockets[0])
		var m Message
		for got := 0; got == 0; { // the kernel may deliver a little later
			var err error
			if got, _, err = g.Sockets[0].Receive(in, 0); err != nil || got > 0 && !in.Message(0, &m) {
				t.Fatal(got, err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkEmptyPoll(b *testing.B) {
	g, _ := group(b, "127.0.0.1:0", Options{})
	in, _ := buffers(b)
	for b.Loop() {
		if n, _, err := g.Sockets[0].Receive(in, 0); n != 0 || err != nil {
			b.Fatal(n, err)
		}
	}
}

func FuzzAddr(f *testing.F) {
	f.Add([]byte{2, 0, 0, 5, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Parse(b)
		if err != nil {
			return
		}
		again, err := Parse(a.Bytes())
		if err != nil || again != a {
			t.Errorf("%v, %v", a, err)
		}
		_ = a.String()
	})
}
