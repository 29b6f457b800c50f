package provider

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw/loopback"
	"github.com/weft-fabric/weft/internal/config"
)

// takenElsewhere opens an endpoint and gives its address to an interface that shares its memory, as an endpoint of
// another network namespace has it that chose the same port at the same time. It returns the enabled endpoint's error.
func takenElsewhere(t *testing.T, b *bench, info *fi.Info, known bool) (before, after []byte, err error) {
	t.Helper()
	ep, err := b.domain.OpenEndpoint(info)
	if err != nil {
		t.Fatal(err)
	}
	defer ep.Close()
	av, q := b.sides[0].av, b.sides[0].cq
	for _, err := range []error{ep.BindCQ(q, fi.Transmit|fi.Recv), ep.BindAV(av, 0)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if known {
		if _, err := ep.Name(); err != nil {
			t.Fatal(err)
		}
	}
	before = ep.name.AppendSockaddr(nil)
	other, err := loopback.Open(before, loopback.Config{Dir: b.domain.cfg.SHMDir, Across: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	err = ep.Enable()
	return before, ep.name.AppendSockaddr(nil), err
}

// TestNameTakenElsewhere: a port that was not asked for and is not known yet is chosen anew where another network
// namespace has taken it between fi_endpoint and fi_enable; one that was asked for or is known is not.
func TestNameTakenElsewhere(t *testing.T) {
	b := newBench(t, func(c *config.Config) { c.SHMDir, c.SHMAcross = t.TempDir(), config.Yes }, nil)
	s := b.side(t)
	before, after, err := takenElsewhere(t, b, b.info, false)
	if err != nil || bytes.Equal(before, after) {
		t.Errorf("an unknown address: %v, before %x, after %x", err, before, after)
	}
	if _, _, err := takenElsewhere(t, b, b.info, true); fi.ErrnoOf(err) != fi.EADDRINUSE {
		t.Errorf("an address that is known: %v", err)
	}
	asked := b.info.Clone()
	asked.SrcAddr = s.ep.name.WithPort(freePort(t, b)).AppendSockaddr(nil)
	if _, _, err := takenElsewhere(t, b, asked, false); fi.ErrnoOf(err) != fi.EADDRINUSE {
		t.Errorf("an address that was asked for: %v", err)
	}
}

// freePort is a port that an endpoint had.
func freePort(t *testing.T, b *bench) uint16 {
	t.Helper()
	ep, err := b.domain.OpenEndpoint(b.info)
	if err != nil {
		t.Fatal(err)
	}
	defer ep.Close()
	return ep.name.Port
}
