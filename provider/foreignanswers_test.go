package provider

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// TestForeignAnswers: a peer asks for the payload of requests in each way in which a receiver has a rendezvous sent. It
// gets nothing of one that is no rendezvous, since the buffer may be the program's again, nor of one that has not gone
// out, since its fields are those of another. Over a network no offer is taken up.
func TestForeignAnswers(t *testing.T) {
	t.Run("shm", func(t *testing.T) {
		x, y := newBench(t, nil, rmaHints()).pair(t)
		foreignAnswers(t, x, y, 0)
	})
	t.Run("udp", func(t *testing.T) {
		sides := overUDP(t, 2, nil)
		foreignAnswers(t, sides[0], sides[1], sides[1].ep.base.links.Transports()[1].Source(0))
	})
}

// foreignAnswers has y, a source of x, answer requests of x.
func foreignAnswers(t *testing.T, x, y *side, src hw.Source) {
	oneMessage(t, x, y, 8)
	oneMessage(t, y, x, 8)
	l, _ := x.pathTo(y)
	e := leasedOf(x.ep)
	if !e.ownsLink(src, l.Index) {
		t.Fatalf("source %#x is not the peer", src)
	}
	handlers := e.rendezvous.Handlers()
	payload := make([]byte, 1<<20)
	var b [64]byte
	cts := wire.CTS{Operation: 1, Length: uint64(len(payload))}
	offer := wire.Offer{Round: 1, Addr: 1 << 20, Want: uint64(len(payload)), Chunk: 1 << 16}
	landing := wire.Landing{Operation: 1, Addr: 1 << 20, Want: uint64(len(payload))}
	x.ep.base.rx.acquire()
	defer e.rx.give()
	refused := func(ask func()) uint64 {
		before := e.malformedHere
		ask()
		return e.malformedHere - before
	}
	const runtimeBits = ^uint64(dataplane.RequestMore - 1) // one of them says that the payload is exposed
	for _, c := range []struct {
		what  string
		flags uint64
		live  bool
	}{
		{"with its payload", dataplane.RequestCompletes, true},
		{"not gone out", dataplane.RequestCompletes | dataplane.RequestRTS | runtimeBits, false},
	} {
		req, id, ok := x.ep.base.sends.Requests().Alloc(0)
		if !ok {
			t.Fatal("no request")
		}
		req.Begin(4, uint64(len(payload)), c.flags, l.Index)
		req.Count = uint32(copy(req.IOV[:], iovOf(payload)))
		if c.live {
			req.Live.Store(uint32(id >> 32))
		}
		for way, ask := range map[string]func(){
			"CTS":     func() { handlers[wire.AMCTS](src, id, bytes.Clone(cts.Put(b[:])), nil) },
			"offer":   func() { handlers[wire.AMAssist](src, id, bytes.Clone(offer.Put(b[:])), nil) },
			"landing": func() { handlers[wire.AMLanding](src, id, bytes.Clone(landing.Put(b[:])), nil) },
		} {
			if refused(ask) != 1 {
				t.Errorf("%s for a request %s is not refused", way, c.what)
			}
		}
		x.ep.base.sends.Requests().Free(id)
	}
	if left := e.rendezvous.Left(); left != (rendezvous.Left{}) {
		t.Errorf("left %+v", left)
	}
	req, id, _ := x.ep.base.sends.Requests().Alloc(0)
	req.Begin(4, uint64(len(payload)), dataplane.RequestRTS, l.Index)
	req.Count = uint32(copy(req.IOV[:], iovOf(payload)))
	req.Live.Store(uint32(id >> 32))
	handlers[wire.AMAssist](src, id, bytes.Clone(offer.Put(b[:])), nil) // without memory in common, or a round
	if left := e.rendezvous.Left(); left.Assists != 0 {
		t.Error("an offer without a round is kept")
	}
	x.ep.base.sends.Requests().Free(id)
}
