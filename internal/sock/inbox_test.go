package sock

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inboxed is a group with an inbox, and a socket that sends to it.
func inboxed(t *testing.T, ap string) (to *Socket, send func(n uint32, size int)) {
	t.Helper()
	g, addr := group(t, ap, Options{})
	if g.NoInbox != nil {
		t.Skipf("no inbox: %v", g.NoInbox)
	}
	from, _ := group(t, ap, Options{NoInbox: true})
	return g.Sockets[0], func(n uint32, size int) {
		b := bytes.Repeat([]byte{byte(n)}, size)
		binary.BigEndian.PutUint32(b, n)
		if errno := from.Sockets[0].sendPlain(b, &addr); errno != 0 {
			t.Fatal(errno)
		}
	}
}

// expect receives datagrams until there are as many as wanted, in this order and
// whole, and returns how many came by the inbox.
func expect(t *testing.T, s *Socket, in *In, want []uint32) (direct int) {
	t.Helper()
	var got []uint32
	for end := time.Now().Add(10 * time.Second); len(got) < len(want); {
		if time.Now().After(end) {
			t.Fatalf("%d of %d datagrams came", len(got), len(want))
		}
		n, _, err := s.Receive(in, time.Since(began))
		if err != nil {
			t.Fatal(err)
		}
		for k := range n {
			var m Message
			if !in.Message(k, &m) {
				t.Fatal("a message is not usable")
			}
			if m.Driver != 0 {
				direct++
			}
			number := binary.BigEndian.Uint32(m.Bytes)
			if m.Segment != len(m.Bytes) || bytes.Count(m.Bytes[4:], []byte{byte(number)}) != len(m.Bytes)-4 {
				t.Fatalf("datagram %d of %d bytes, segment %d: % x", number, len(m.Bytes), m.Segment, m.Bytes)
			}
			got = append(got, number)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("came %d, not %d", got, want)
	}
	return direct
}

// TestInbox: short datagrams come by the inbox, the others by the socket, all in the
// order in which they were sent, also when nothing searches for long.
func TestInbox(t *testing.T) {
	for _, ap := range []string{"127.0.0.1:0", "[::1]:0"} {
		s, send := inboxed(t, ap)
		in, _ := buffers(t)
		const most = inboxMost - udpHeader
		n := uint32(0)
		for _, c := range []struct{ sizes, direct []int }{
			{[]int{4, 100, slotBytes - udpHeader, slotBytes - udpHeader + 1, 1472, most}, []int{6}},
			{[]int{most + 1}, []int{0}},
			{[]int{8, most + 1, 8, 8, 60000, 8}, []int{1}},
			{slices.Repeat([]int{16}, 5*inboxSlots), []int{inboxSlots - headEvery, inboxSlots}},
			{slices.Repeat([]int{16}, inboxSlots/2), []int{inboxSlots / 2}},
			{slices.Repeat([]int{1472}, inboxSlots/6), []int{inboxSlots / 6}},
		} {
			var want []uint32
			for _, size := range c.sizes {
				send(n, size)
				want = append(want, n)
				n++
			}
			direct := expect(t, s, in, want)
			if direct < c.direct[0] || direct > c.direct[len(c.direct)-1] {
				t.Errorf("%s: of %d datagrams %d came by the inbox, not %d", ap, len(want), direct, c.direct)
			}
			// the socket is empty: from now on by the inbox
			if n, _, err := s.Receive(in, time.Since(began)+time.Second); n != 0 || err != nil {
				t.Fatal(n, err)
			}
		}
	}
}

// TestInboxMixed sends what comes either way, and polls now and then.
func TestInboxMixed(t *testing.T) {
	s, send := inboxed(t, "127.0.0.1:0")
	in, _ := buffers(t)
	n, by := uint32(0), 0
	for k := range 2000 {
		var want []uint32
		for range k % 7 {
			send(n, 16+[]int{0, 500, 1400, 4000, 9000}[(k+int(n))%5])
			want = append(want, n)
			n++
		}
		by += expect(t, s, in, want)
	}
	if by == 0 || by == int(n) {
		t.Errorf("%d of %d came by the inbox", by, n)
	}
}

// TestInboxJoined: datagrams that the kernel hands over joined come so by the inbox.
func TestInboxJoined(t *testing.T) {
	to, addr := group(t, "127.0.0.1:0", Options{})
	from, _ := group(t, "127.0.0.1:0", Options{NoInbox: true})
	if to.NoInbox != nil || from.Sockets[0].noGSO {
		t.Skipf("no inbox: %v, or no segments", to.NoInbox)
	}
	in, out := buffers(t)
	for range 100 {
		for k, size := range []int{1200, 1200, 1200, 700} {
			b := out.Take(size)
			for i := range b {
				b[i] = byte(k)
			}
			out.Add(from.Sockets[0], &addr, NoOwner, b, nil, false)
		}
		out.Flush(from.Sockets[0])
		var m Message
		n := 0
		for end := time.Now().Add(10 * time.Second); n == 0 && time.Now().Before(end); {
			n, _, _ = to.Sockets[0].Receive(in, 0)
		}
		if n != 1 || !in.Message(0, &m) || m.Segment != 1200 || len(m.Bytes) != 4300 || m.Driver == 0 {
			t.Fatalf("%d messages, segments of %d, %d bytes, time %v", n, m.Segment, len(m.Bytes), m.Driver)
		}
		for i, c := range m.Bytes {
			if int(c) != i/1200 {
				t.Fatalf("byte %d is %d", i, c)
			}
		}
	}
}

// TestInboxBell: a socket that shall ring is readable once something comes, and what
// comes while that is asked for is not missed.
func TestInboxBell(t *testing.T) {
	s, send := inboxed(t, "127.0.0.1:0")
	in, _ := buffers(t)
	readable := func(ms int) bool {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.FD), Events: unix.POLLIN}}, ms)
			if err != unix.EINTR {
				return err == nil && n > 0
			}
		}
	}
	send(0, 16)
	if readable(0) {
		t.Error("readable by what is in the inbox")
	}
	s.Bell(true)
	send(1, 16)
	if !readable(60000) {
		t.Error("not readable")
	}
	expect(t, s, in, []uint32{0, 1})
	s.Bell(false)
	if by := expect(t, s, in, nil); by != 0 || readable(0) {
		t.Error("something is left")
	}
	const count = 5000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range uint32(count) {
			send(n, 16)
			if n%16 == 0 {
				time.Sleep(50 * time.Microsecond)
			}
		}
	}()
	defer func() { <-done }()
	for next, end := uint32(0), time.Now().Add(60*time.Second); next < count; {
		s.Bell(true) // O1
		if n, _, err := s.Receive(in, 0); err != nil {
			t.Fatal(err)
		} else if n == 0 { // O2, O3
			if n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.FD), Events: unix.POLLIN}}, 10000); n == 0 ||
				time.Now().After(end) {
				t.Fatalf("nothing rang for datagram %d: %v", next, err)
			}
		} else {
			for k := range n {
				var m Message
				in.Message(k, &m)
				if number := binary.BigEndian.Uint32(m.Bytes); number == next {
					next++
				} else if number > next {
					t.Fatalf("datagram %d came before %d", number, next)
				}
			}
		}
		s.Bell(false)
	}
}

// TestInboxMark: marks of ECN are notified.
func TestInboxMark(t *testing.T) {
	for _, ap := range []string{"127.0.0.1:0", "[::1]:0"} {
		g, addr := group(t, ap, Options{})
		if g.NoInbox != nil {
			t.Skipf("no inbox: %v", g.NoInbox)
		}
		from, fromAddr := group(t, ap, Options{NoInbox: true})
		level, name := unix.IPPROTO_IP, unix.IP_TOS
		if !addr.Is4() {
			level, name = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
		}
		in, _ := buffers(t)
		for _, mark := range []int{2, 3} {
			if err := unix.SetsockoptInt(from.Sockets[0].FD, level, name, mark); err != nil {
				t.Fatal(err)
			}
			if errno := from.Sockets[0].sendPlain([]byte("marked?"), &addr); errno != 0 {
				t.Fatal(errno)
			}
			var m Message
			n := 0
			for end := time.Now().Add(10 * time.Second); n == 0 && time.Now().Before(end); {
				n, _, _ = g.Sockets[0].Receive(in, 0)
			}
			if n != 1 || !in.Message(0, &m) || m.Marked != (mark == 3) || m.From != fromAddr ||
				string(m.Bytes) != "marked?" || m.Driver == 0 {
				t.Errorf("%s, mark %d: %d, %+v", ap, mark, n, m)
			}
		}
	}
}
