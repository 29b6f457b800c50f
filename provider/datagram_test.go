package provider

import (
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/internal/links"
)

func dgramBench(t *testing.T, change func(*config.Config)) *bench {
	return newBench(t, change, &fi.Info{EP: &fi.EPAttr{Type: fi.EPDgram}})
}

func TestDatagrams(t *testing.T) {
	b := dgramBench(t, nil)
	s, r := b.pair(t)
	most := int(b.info.EP.MaxMsgSize)
	for _, n := range []int{0, 1, 104, 105, most} {
		want, got := pattern(n, 3), make([]byte, most)
		r.recv(RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec, Context: 4}, s)
		s.send(SendArgs{IOV: iovOf(want), Dest: s.addr[r], Context: 5}, r)
		if e := r.completion(s); e.Context != 4 || e.Len != uint64(n) || e.Src != r.addr[s] ||
			string(got[:n]) != string(want) {
			t.Errorf("%d bytes: %+v", n, e)
		}
		if e := s.completion(r); e.Context != 5 {
			t.Errorf("sent %d bytes: %+v", n, e)
		}
	}
	for flags, want := range map[uint64]error{0: fi.EMSGSIZE, fi.DeliveryComplete: fi.EBADFLAGS,
		fi.Fence: fi.EBADFLAGS} {
		n := 1
		if flags == 0 {
			n = most + 1
		}
		if err := s.ep.Send(&SendArgs{IOV: iovOf(make([]byte, n)), Dest: s.addr[r], Flags: flags}); !errors.Is(err,
			want) {
			t.Errorf("flags %#x, %d bytes: %v, want %v", flags, n, err, want)
		}
	}
}

// TestDeafPeer sends to a peer that makes no progress, and to one that is gone:
// every datagram completes, and what was taken in arrives.
func TestDeafPeer(t *testing.T) {
	b := dgramBench(t, func(c *config.Config) { c.RingSlots = 16 })
	s, r := b.pair(t)
	addr := s.addr[r]
	start := time.Now()
	posted := 0
	for end := time.Now().Add(20 * time.Second); posted < 1000 && time.Now().Before(end); {
		if err := s.ep.Send(&SendArgs{IOV: iovOf([]byte("x")), Dest: addr, Inject: true}); err == nil {
			posted++
		} else if !errors.Is(err, fi.EAGAIN) {
			t.Fatal(err)
		}
	}
	if posted != 1000 || time.Since(start) < links.DatagramPatience {
		t.Errorf("%d datagrams in %v", posted, time.Since(start))
	}
	got := make([]byte, 8)
	r.recv(RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec})
	if e := r.completion(); e.Len != 1 {
		t.Errorf("received %+v", e)
	}
	r.close()
	for end := time.Now().Add(20 * time.Second); ; {
		err := s.ep.Send(&SendArgs{IOV: iovOf([]byte("x")), Dest: addr, Inject: true})
		if err == nil {
			break
		}
		if !errors.Is(err, fi.EAGAIN) || time.Now().After(end) {
			t.Fatalf("send to a peer that is gone: %v", err)
		}
	}
}

// TestKeptDatagrams sends more than a receiver holds.
func TestKeptDatagrams(t *testing.T) {
	b := dgramBench(t, func(c *config.Config) { c.UnexpectedBytes = 64 << 10 })
	s, r := b.pair(t)
	for range 100 {
		s.send(SendArgs{IOV: iovOf(make([]byte, 4096)), Dest: s.addr[r], Inject: true}, r)
		r.ep.Progress()
	}
	got := make([]byte, 4096)
	for range 16 {
		r.recv(RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec}, s)
		r.completion(s)
	}
	r.recv(RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec, Context: 7}, s)
	for range 100 {
		r.ep.Progress()
	}
	if leasedOf(r.ep).rx.matching.Closed || leasedOf(r.ep).rx.matching.UnexpectedBytes != 0 {
		t.Errorf("window closed %v, %d bytes kept", leasedOf(r.ep).rx.matching.Closed,
			leasedOf(r.ep).rx.matching.UnexpectedBytes)
	}
	s.send(SendArgs{IOV: iovOf(make([]byte, 9)), Dest: s.addr[r], Inject: true}, r)
	if e := r.completion(s); e.Len != 9 || e.Context != 7 {
		t.Errorf("a datagram that was dropped came: %+v", e)
	}
}
