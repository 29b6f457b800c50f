package provider

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/peers"
)

// The table of docs/errors.md, over shared memory and UDP.

// posts are the calls whose errors are those of the table.
var posts = map[string]func(x *side, to fi.Addr, b []byte) error{
	"send":  func(x *side, to fi.Addr, b []byte) error { return x.ep.Send(&SendArgs{IOV: iovOf(b), Dest: to}) },
	"write": func(x *side, to fi.Addr, b []byte) error { return x.ep.RMA(rmaTo(to, b, false)) },
	"read":  func(x *side, to fi.Addr, b []byte) error { return x.ep.RMA(rmaTo(to, b, true)) },
	"atomic": func(x *side, to fi.Addr, b []byte) error {
		return x.ep.Atomic(&AtomicArgs{Op: fi.OpSum, Datatype: fi.Uint64, Operand: iovOf(b),
			Remote: []fi.RMAIOVec{{Len: 8, Key: 1}}, Dest: to})
	},
}

func rmaTo(to fi.Addr, b []byte, read bool) *RMAArgs {
	return &RMAArgs{IOV: iovOf(b), Remote: []fi.RMAIOVec{{Len: uint64(len(b)), Key: 1}}, Dest: to, Read: read}
}

// wantPosts fails the test unless each of posts gives an errno, after fi.EAGAIN at most.
func (s *side) wantPosts(to fi.Addr, want fi.Errno) {
	s.t.Helper()
	for name, post := range posts {
		err := error(fi.EAGAIN)
		for end := time.Now().Add(time.Minute); errors.Is(err, fi.EAGAIN) && time.Now().Before(end); s.ep.Progress() {
			err = post(s, to, make([]byte, 8))
		}
		wantErrno(s.t, err, want, name)
	}
}

// overBoth runs a test over shared memory and over UDP, with peers that have answered each other.
func overBoth(t *testing.T, f func(t *testing.T, x, y *side)) {
	hints := rmaHints()
	hints.Caps |= fi.DirectedRecv
	quick := func(c *config.Config) { c.ConnectTimeout = 300 * time.Millisecond }
	t.Run("shared memory", func(t *testing.T) {
		x, y := newBench(t, quick, hints).pair(t)
		oneMessage(t, x, y, 8)
		f(t, x, y)
	})
	t.Run("UDP", func(t *testing.T) {
		sides := overUDPWith(t, 2, hints, quick)
		oneMessage(t, sides[0], sides[1], 8)
		f(t, sides[0], sides[1])
	})
}

// TestErrnoNeverThere: nothing has ever answered at the address.
func TestErrnoNeverThere(t *testing.T) {
	overBoth(t, func(t *testing.T, x, y *side) {
		z := x.bench.side(t)
		x.knowAgain(z)
		z.close()
		begin := time.Now()
		if err := posts["send"](x, x.addr[z], make([]byte, 8)); !errors.Is(err, fi.EAGAIN) {
			t.Errorf("first call: %v", err)
		}
		x.wantPosts(x.addr[z], fi.EHOSTUNREACH)
		if took := time.Since(begin); took < x.domain.cfg.ConnectTimeout {
			t.Errorf("given up after %v", took)
		}
	})
}

// TestErrnoGone: the peer has closed, with a message that it has not taken and a receive that names it. One that
// names nothing waits on, and another peer's message goes there.
func TestErrnoGone(t *testing.T) {
	overBoth(t, func(t *testing.T, x, y *side) {
		oneMessage(t, y, x, 8)
		x.send(SendArgs{IOV: iovOf(make([]byte, 8)), Dest: x.addr[y], Flags: fi.MatchComplete, Context: 1}, y)
		x.recv(RecvArgs{IOV: iovOf(make([]byte, 8)), Src: x.addr[y], Tagged: true, Context: 2})
		x.recv(RecvArgs{IOV: iovOf(make([]byte, 8)), Src: fi.AddrUnspec, Context: 3})
		_, p := x.pathTo(y)
		y.close()
		x.notices(p)
		ended := map[uint64]fi.Errno{}
		for range 2 {
			_, bad, ok := settle(t, x)
			if ok {
				t.Fatal("something has succeeded")
			}
			ended[bad.Context] = bad.Err
		}
		if ended[1] != fi.ECONNRESET || ended[2] != fi.ECONNRESET {
			t.Errorf("message and receive end with %v", ended)
		}
		x.wantPosts(x.addr[y], fi.ECONNRESET)
		z := x.bench.side(t)
		z.knowAgain(x)
		z.send(SendArgs{IOV: iovOf(make([]byte, 8)), Dest: z.addr[x], Context: 4}, x)
		if done, bad, ok := settle(t, x, z); !ok || done.Context != 3 {
			t.Errorf("the message of another peer: %+v, %v", done, bad.Err)
		}
	})
}

// TestErrnoPathLost: the path to a peer is lost, and it may be there: calls are to be repeated until it has not
// answered for the connect timeout, or has.
func TestErrnoPathLost(t *testing.T) {
	overBoth(t, func(t *testing.T, x, y *side) {
		at := y.ep.base.name
		l, p := x.pathTo(y)
		lost := links.NewPath(peers.Gone{PathLost: true}, p.Via)
		lost.Peer = p.Peer
		y.close()
		x.notices(p)
		l.Set(lost)
		for name, post := range posts {
			if err := post(x, x.addr[y], make([]byte, 8)); !errors.Is(err, fi.EAGAIN) {
				t.Errorf("%s: %v", name, err)
			}
		}
		begin := time.Now()
		x.wantPosts(x.addr[y], fi.ECONNRESET)
		if took := time.Since(begin); took < x.domain.cfg.ConnectTimeout/2 {
			t.Errorf("given up after %v", took)
		}
		l.Set(lost)
		z := x.bench.sideAt(t, at)
		for err := error(fi.EAGAIN); err != nil; drain(x, z) {
			if err = posts["send"](x, x.addr[y], make([]byte, 8)); err != nil && !errors.Is(err, fi.EAGAIN) {
				t.Fatalf("call while the peer is connected to: %v", err)
			}
		}
	})
}

// TestErrnoRestarted: another endpoint begins at the address of one that is gone, which stays in the address vector.
func TestErrnoRestarted(t *testing.T) {
	overBoth(t, func(t *testing.T, x, y *side) {
		at := y.ep.base.name
		_, p := x.pathTo(y)
		y.close()
		x.notices(p)
		x.wantPosts(x.addr[y], fi.ECONNRESET)
		z := x.bench.sideAt(t, at)
		for end := time.Now().Add(time.Minute); ; {
			err := posts["send"](x, x.addr[y], make([]byte, 8))
			if err == nil {
				break
			}
			if !errors.Is(err, fi.ECONNRESET) && !errors.Is(err, fi.EAGAIN) || time.Now().After(end) {
				t.Fatalf("call while the peer begins anew: %v", err)
			}
			drain(x, z)
		}
		if _, bad, ok := settle(t, x, z); !ok {
			t.Errorf("the message to the new one: %v", bad.Err)
		}
	})
}

// TestErrnoRemoved: the address is not in the address vector any more.
func TestErrnoRemoved(t *testing.T) {
	overBoth(t, func(t *testing.T, x, y *side) {
		if err := x.av.Remove([]fi.Addr{x.addr[y]}, 0); err != nil {
			t.Fatal(err)
		}
		x.wantPosts(x.addr[y], fi.EINVAL)
	})
}
