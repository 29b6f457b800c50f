package udp

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw/udp/sock"
	"github.com/weft-fabric/weft/hw/udp/wire"
)

// TestTooBig: a router's word that a packet is too big for what is behind it is taken if it
// quotes one that was sent, and a stranger's is not.
func TestTooBig(t *testing.T) {
	a, b := open(t, false, Config{}), open(t, false, Config{})
	c := pair(t, a, b).(*Endpoint)
	got, sent := counting(t, b), new(uint64)
	size := func() int {
		c.s.lease.lock()
		defer c.s.leave()
		return c.tx.mtu.Size()
	}
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
		{"a packet to somebody else", func(_ *wire.Header, t *sock.SendError) { t.To = a.name }, false},
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
