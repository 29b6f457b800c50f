package sock

import (
	"encoding/binary"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// lone sends a datagram alone.
func lone(o *Out, s *Socket, to *Addr, n uint32) {
	datagram(o, s, to, binary.BigEndian.AppendUint32(nil, n), nil)
	o.Flush(s)
}

// TestNear: the peer that most datagrams go to alone gets a socket of its own. It and others
// reach the socket as before, from the same name, and nothing is lost when another peer takes
// its place.
func TestNear(t *testing.T) {
	for _, ap := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
		for _, plain := range []bool{false, true} {
			a, aAddr := group(t, ap, Options{NoInbox: plain})
			if aAddr.IsAny() {
				aAddr = FromIPv4([4]byte{127, 0, 0, 1}, aAddr.Port()) // IPv4 over a socket of both
				ap = "127.0.0.1:0"
			}
			s, in, out := a.Sockets[0], (*In)(nil), (*Out)(nil)
			in, out = buffers(t)
			type side struct {
				s    *Socket
				addr Addr
				in   *In
				out  *Out
			}
			var peers []side
			for range 2 {
				g, addr := group(t, ap, Options{})
				i, o := buffers(t)
				peers = append(peers, side{g.Sockets[0], addr, i, o})
			}
			n := uint32(0)
			exchange := func(p *side) {
				t.Helper()
				lone(out, s, &p.addr, n)
				if _, from := collect(t, p.s, p.in, 1); from[0] != aAddr {
					t.Fatalf("came from %s, not %s", from[0].String(), aAddr.String())
				}
				lone(p.out, p.s, &aAddr, n)
				b, from := collect(t, s, in, 1)
				if from[0] != p.addr || binary.BigEndian.Uint32(b[0]) != n {
					t.Fatalf("%x came from %s", b[0], from[0].String())
				}
				n++
			}
			for round := range 4 {
				p, other := &peers[round%2], &peers[(round+1)%2]
				for k := 0; !s.WantsNear(); k++ {
					exchange(p)
					if k%8 == 0 {
						exchange(other)
					}
					if k > 2*nearVotes {
						t.Fatal("nothing is near")
					}
				}
				if err := s.MakeNear(); err != nil {
					t.Fatal(err)
				}
				if len(s.Files()) != 2 || !s.near.has(&p.addr) {
					t.Fatalf("files %v, near %s", s.Files(), s.near.to.String())
				}
				for range 20 {
					exchange(p)
					exchange(other)
				}
				datagram(out, s, &other.addr, make([]byte, 8), make([]byte, 2000))
				datagram(out, s, &p.addr, make([]byte, 9), make([]byte, 3000))
				datagram(out, s, &p.addr, make([]byte, 9), make([]byte, 3000))
				datagram(out, s, &other.addr, make([]byte, 8), make([]byte, 2000))
				out.Flush(s)
				if b, _ := collect(t, p.s, p.in, 2); len(b[0]) != 3009 || len(b[1]) != 3009 {
					t.Errorf("%d and %d bytes", len(b[0]), len(b[1]))
				}
				collect(t, other.s, other.in, 2)
			}
		}
	}
}

// TestNearRefused: the name is no other's, before and after; several stripes have no near
// peer.
func TestNearRefused(t *testing.T) {
	a, addr := group(t, "127.0.0.1:0", Options{})
	_, other := group(t, "127.0.0.1:0", Options{})
	s := a.Sockets[0]
	s.near.candidate = other
	if err := s.MakeNear(); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, sockaddr(&addr)); err != unix.EADDRINUSE {
		t.Errorf("bind of another socket: %v", err)
	}
	b, _ := group(t, "127.0.0.1:0", Options{Stripes: 2})
	if len(b.Sockets) == 2 {
		s := b.Sockets[0]
		s.near.candidate, s.near.votes = other, nearVotes
		if err := s.MakeNear(); err == nil || s.WantsNear() {
			t.Errorf("two stripes: %v", err)
		}
	}
}

// TestNearGone: the kernel's word about the near peer is notified as that about others.
func TestNearGone(t *testing.T) {
	a, _ := group(t, "127.0.0.1:0", Options{})
	fd := bound(t, "127.0.0.1:0")
	gone, err := Bound(fd)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	s := a.Sockets[0]
	s.near.candidate = gone
	if err := s.MakeNear(); err != nil {
		t.Fatal(err)
	}
	in, out := buffers(t)
	notified := false
	for end := time.Now().Add(10 * time.Second); !notified && time.Now().Before(end); {
		lone(out, s, &gone, 1)
		if _, _, err := s.Receive(in, time.Since(began)); err != nil {
			s.Errors(func(x *SendError) { notified = notified || x.To == gone && x.Err == unix.ECONNREFUSED })
		}
	}
	if !notified {
		t.Error("nothing was notified")
	}
}

// TestNearTrains: trains count as datagrams do, and peers in turn have no majority.
func TestNearTrains(t *testing.T) {
	a, _ := group(t, "127.0.0.1:0", Options{})
	_, one := group(t, "127.0.0.1:0", Options{})
	_, other := group(t, "127.0.0.1:0", Options{})
	_, out := buffers(t)
	s, row := a.Sockets[0], make([]byte, 2000)
	train := func(to *Addr) {
		out.AddRow(s, to, 7, row, 2)
		out.Flush(s)
	}
	for range nearVotes {
		train(&one)
		train(&other)
	}
	if s.WantsNear() {
		t.Error("one of two peers in turn gets a socket")
	}
	for range nearVotes {
		train(&one)
	}
	if !s.WantsNear() {
		t.Error("trains to one peer do not count")
	}
}
