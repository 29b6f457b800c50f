package provider

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// TestEagerOverUDP has messages of all sizes go to another host, and checks which
// of them were a rendezvous.
func TestEagerOverUDP(t *testing.T) {
	for name, set := range map[string]struct {
		udp, most int
	}{"default": {config.Default().UDPEagerSize, 64 << 10}, "20 KiB": {20 << 10, 20 << 10},
		"as on one host": {0, 8 << 10}, "256 KiB": {256 << 10, 256 << 10}} {
		t.Run(name, func(t *testing.T) {
			sides := overUDP(t, 2, func(c *config.Config) { c.UDPEagerSize = set.udp })
			a, b := sides[0], sides[1]
			swap(t, a, b, 0, true)
			swap(t, a, b, 0, false)
			swap(t, a, b, fi.DeliveryComplete, true)
			eager, tracked, long := uint64(0), uint64(0), uint64(0)
			for _, n := range sizes {
				if n <= set.most {
					eager, tracked = eager+2, tracked+1
				} else {
					long += 3
				}
			}
			a.housekeep()
			tx := of(t, page(t, a.domain.cfg.SHMDir), a)
			for name, want := range map[string]uint64{"tx_eager": eager, "tx_sync": tracked, "tx_rendezvous": long} {
				if got := tx(name); got != want {
					t.Errorf("%s is %d, want %d", name, got, want)
				}
			}
		})
	}
}

// TestEagerFlood sends long messages that nothing wants yet. What the receiver
// holds stays bounded, and all come in order in the end.
func TestEagerFlood(t *testing.T) {
	const size, count, limit, ring = 64 << 10, 100, 300 << 10, 1 << 20
	sides := overUDP(t, 2, func(c *config.Config) { c.UnexpectedBytes = limit })
	a, b := sides[0], sides[1]
	out := make([][]byte, count)
	for i := range out {
		out[i] = pattern(size, byte(i))
		a.send(SendArgs{IOV: iovOf(out[i]), Dest: a.addr[b], Context: uint64(i)}, b)
	}
	b.housekeep()
	a.housekeep()
	p := page(t, a.domain.cfg.SHMDir)
	if peak := of(t, p, b)("unexpected_held_bytes_peak"); peak < limit/2 || peak > limit+ring {
		t.Errorf("%d bytes kept at a limit of %d", peak, limit)
	}
	if n := of(t, p, a)("tx_rendezvous"); n == 0 {
		t.Error("no message was a rendezvous though the receiver holds too much")
	}
	got := make([]byte, size)
	for i := range out {
		clear(got)
		b.recv(RecvArgs{IOV: iovOf(got), Src: b.addr[a]}, a)
		b.completion(a)
		if !bytes.Equal(got, out[i]) {
			t.Fatalf("message %d is wrong", i)
		}
	}
	for range out {
		a.completion(b)
	}
}

// TestEagerTruncation sends a long message into a short receive, and to one
// that waits for it in parts.
func TestEagerTruncation(t *testing.T) {
	sides := overUDP(t, 2, nil)
	a, b := sides[0], sides[1]
	want, got := pattern(64<<10, 3), make([]byte, 1000)
	b.recv(RecvArgs{IOV: iovOf(got), Src: b.addr[a], Context: 1}, a)
	a.send(SendArgs{IOV: iovOf(want), Dest: a.addr[b], Context: 2}, b)
	if _, err := b.next(a); !errors.Is(err, fi.EAVAIL) {
		t.Fatal(err)
	}
	e, err := b.cq.ReadErr()
	if err != nil || e.Err != fi.ETRUNC || e.OLen != 64<<10-1000 || e.Context != 1 || e.Len != 1000 ||
		!bytes.Equal(got, want[:1000]) {
		t.Fatalf("%+v, %v", e, err)
	}
	parts := [][]byte{make([]byte, 30000), make([]byte, 1), make([]byte, 40000)}
	var iov []fi.IOVec
	for _, p := range parts {
		iov = append(iov, iovOf(p)...)
	}
	b.recv(RecvArgs{IOV: iov, Src: b.addr[a], Context: 3}, a)
	a.send(SendArgs{IOV: iovOf(want), Dest: a.addr[b], Context: 4}, b)
	if e := b.completion(a); e.Context != 3 || e.Len != 64<<10 {
		t.Fatalf("%+v", e)
	}
	if all := bytes.Join(parts, nil); !bytes.Equal(all[:64<<10], want) {
		t.Error("wrong data")
	}
}

// TestEagerMultiRecv has long messages follow each other into a buffer for many.
func TestEagerMultiRecv(t *testing.T) {
	sides := overUDP(t, 2, nil)
	a, b := sides[0], sides[1]
	if err := b.ep.SetOpt(fi.OptMinMultiRecv, 60<<10); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 200<<10)
	b.recv(RecvArgs{IOV: iovOf(buf), Src: fi.AddrUnspec, Flags: fi.MultiRecv, Context: 1}, a)
	at := uint64(0)
	for i, n := range []int{64 << 10, 30000, 64 << 10} {
		want := pattern(n, byte(i))
		a.send(SendArgs{IOV: iovOf(want), Dest: a.addr[b], Context: 2}, b)
		e := b.completion(a)
		if first := uint64(iovOf(buf)[0].Base); e.Context != 1 || e.Len != uint64(n) || e.Buf != first+at ||
			!bytes.Equal(buf[at:at+e.Len], want) {
			t.Fatalf("message %d: %+v", i, e)
		}
		if last := e.Flags&fi.MultiRecv != 0; last != (i == 2) {
			t.Errorf("message %d: the buffer is given back: %v", i, last)
		}
		at += uint64(n)
		a.completion(b)
	}
}

// TestEagerPeerGone has the peer go while parts of a long message are with it and
// the rest is not sent yet. What was posted before is done with; what is posted
// afterwards fails.
func TestEagerPeerGone(t *testing.T) {
	sides := overUDP(t, 2, nil)
	a, b := sides[0], sides[1]
	oneMessage(t, a, b, 64)
	out := pattern(64<<10, 1)
	posted := 0
	for ; posted < 100; posted++ { // nothing progresses: the window fills
		err := a.ep.Send(&SendArgs{IOV: iovOf(out), Dest: a.addr[b], Context: 7})
		if errors.Is(err, fi.EAGAIN) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if posted == 0 || posted == 100 {
		t.Fatalf("%d messages were posted", posted)
	}
	if err := b.ep.Close(); err != nil {
		t.Fatal(err)
	}
	b.ep = nil
	b.cq.Close()
	b.av.Close()
	for range posted {
		if e := a.completion(); e.Context != 7 {
			t.Fatalf("%+v", e)
		}
	}
	for end := time.Now().Add(20 * time.Second); ; {
		err := a.ep.Send(&SendArgs{IOV: iovOf(out), Dest: a.addr[b], Context: 8})
		if err != nil && !errors.Is(err, fi.EAGAIN) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("posts to a peer that is gone: %v", err)
		}
		a.ep.Progress()
		a.housekeep()
	}
}
