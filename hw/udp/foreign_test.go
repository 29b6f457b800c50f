package udp

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/sock"
)

// TestForeign: datagrams of another protocol on the same socket are answered,
// and ours are not given away.
func TestForeign(t *testing.T) {
	var asked, notified atomic.Int32
	var answered atomic.Value
	b := open(t, false, Config{Foreign: func(_ netip.AddrPort, d []byte) []byte {
		asked.Add(1)
		return []byte("yes")[:min(3, len(d))]
	}})
	a := open(t, false, Config{Foreign: func(from netip.AddrPort, d []byte) []byte {
		answered.Store(append([]byte(nil), d...))
		notified.Add(1)
		return nil
	}})
	to, err := sock.Parse(b.Address())
	if err != nil {
		t.Fatal(err)
	}
	a.SendForeign(to.AddrPort(), []byte("q\x00?"))
	eventually(t, "an answer", func() bool { a.Progress(1); b.Progress(1); return notified.Load() == 1 })
	if got, _ := answered.Load().([]byte); !slices.Equal(got, []byte("yes")) {
		t.Errorf("answered %q", got)
	}
	before := b.Stats().Malformed
	a.SendForeign(to.AddrPort(), []byte{0xB7, 0, 0}) // claims to be ours
	eventually(t, "a malformed datagram",
		func() bool { a.Progress(1); b.Progress(1); return b.Stats().Malformed == before+1 })
	if asked.Load() != 1 {
		t.Errorf("asked %d times", asked.Load())
	}
}
