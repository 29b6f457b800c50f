package udp

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw/udp/internal/wire"
	"github.com/weft-fabric/weft/internal/sock"
)

// TestTooBig: a router's word that a packet is too big for what is behind it is taken if it
// quotes one that was sent, and a stranger's is not.
func TestTooBig(t *testing.T) {
	a, b := open(t, false, Config{}), open(t, false, Config{})
	c := pair(t, a, b).(*Endpoint)
	got, sent := counting(t, b), new(uint64)
	size := func() int { return packetSize(c) }
	const mtu = 1500
	eventually(t, "larger packets", func() bool {
		flow(t, a, b, c, sent, got, *sent+10, 8000)
		return size() > mtu
	})
	for _, k := range []struct {
		what  string
		forge func(h *wire.Header, t *sock.SendError)
		taken bool
	}{
		{"another connection", func(h *wire.Header, _ *sock.SendError) { h.CID++ }, false},
		{"a packet that was not sent", func(h *wire.Header, _ *sock.SendError) { h.Number += 100 }, false},
		{"a packet to another", func(_ *wire.Header, t *sock.SendError) { t.To = a.name }, false},
		{"no MTU", func(_ *wire.Header, t *sock.SendError) { t.MTU = 0 }, false},
		{"half a header", func(_ *wire.Header, t *sock.SendError) { t.Quoted = t.Quoted[:8] }, false},
		{"an honest one", func(*wire.Header, *sock.SendError) {}, true},
	} {
		before := size()
		c.s.lease.lock()
		h := c.head(0)
		h.Number--
		word := sock.SendError{To: c.addr, Quoted: make([]byte, wire.HeaderSize), Err: unix.EMSGSIZE, MTU: mtu}
		k.forge(&h, &word)
		h.Put(word.Quoted[:cap(word.Quoted)])
		c.s.onSendError(&word)
		c.s.leave()
		if now := size(); (now < before) != k.taken || k.taken && now > mtu-sock.Overhead(&c.addr) {
			t.Errorf("%s: packets of %d bytes, %d before", k.what, now, before)
		}
	}
	flow(t, a, b, c, sent, got, *sent+100, 8000)
}

// TestBusyPeerKeepsSize: large packets that a peer acknowledges late, because its process was stopped, were carried by
// the path.
func TestBusyPeerKeepsSize(t *testing.T) {
	c, cut := cuttable(never)
	c.MaxPacket, c.MaxBcopy = 8972, 8192
	c.Logf = func(format string, args ...any) {
		if line := fmt.Sprintf(format, args...); strings.Contains(line, "large packets") {
			t.Error(line)
		}
	}
	a, b := open(t, false, c), open(t, false, c)
	ep := pair(t, a, b).(*Endpoint)
	got, sent := counting(t, b), new(uint64)
	locked := func(f func() bool) bool {
		ep.s.lease.lock()
		defer ep.s.leave()
		return f()
	}
	large := func() bool { return ep.tx.mtu.Size() == 8972 } // with the lease
	flow(t, a, b, ep, sent, got, 100, 8000)
	eventually(t, "larger packets", func() bool { a.Progress(1); b.Progress(16); return locked(large) })
	answered(t, a, b, ep)
	for range 3 {
		if err := ep.AMBcopy(1, *sent, nil, 8000, func(d []byte) { clear(d) }, 0); err != nil {
			t.Fatal(err)
		}
		*sent++
	}
	a.Progress(1)
	cut.Store(true)    // what is sent again finds no room in the peer's socket
	const timeouts = 6 // the first is a probe's
	enough := func() bool { return ep.tx.probes >= timeouts }
	eventually(t, "timeouts", func() bool { a.Progress(1); return locked(enough) })
	cut.Store(false)
	eventually(t, "messages", func() bool { a.Progress(1); b.Progress(16); return *got == *sent })
	answered(t, a, b, ep)
	if !locked(large) {
		t.Errorf("packets of %d bytes", packetSize(ep))
	}
}
