package provider

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw/loopback"
	"github.com/weft-fabric/weft/internal/config"
)

// takenElsewhere gives the address of an endpoint to an interface that shares its memory, as an endpoint of
// another network namespace has it that chose the same port at the same time. It returns the enabled endpoint's error.
func takenElsewhere(t *testing.T, b *bench, ep *Endpoint, known bool) (before, after []byte, err error) {
	t.Helper()
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
	before = ep.base.name.AppendSockaddr(nil)
	other, err := loopback.Open(before, loopback.Config{Dir: b.domain.cfg.SHMDir, Across: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	err = ep.Enable()
	return before, ep.base.name.AppendSockaddr(nil), err
}

// TestNameTakenElsewhere: a port that was not asked for and is not known yet is chosen anew where another network
// namespace has taken it between fi_endpoint and fi_enable; one that was asked for or is known is not.
func TestNameTakenElsewhere(t *testing.T) {
	b := newBench(t, func(c *config.Config) { c.SHMDir, c.SHMAcross = t.TempDir(), config.Yes }, nil)
	b.side(t)
	before, after, err := takenElsewhere(t, b, b.open(t, b.info), false)
	if err != nil || bytes.Equal(before, after) {
		t.Errorf("an unknown address: %v, before %x, after %x", err, before, after)
	}
	if _, _, err := takenElsewhere(t, b, b.open(t, b.info), true); fi.ErrnoOf(err) != fi.EADDRINUSE {
		t.Errorf("an address that is known: %v", err)
	}
	if _, _, err := takenElsewhere(t, b, b.openAsked(t), false); fi.ErrnoOf(err) != fi.EADDRINUSE {
		t.Errorf("an address that was asked for: %v", err)
	}
}

// open opens an endpoint.
func (b *bench) open(t *testing.T, info *fi.Info) *Endpoint {
	t.Helper()
	ep, err := b.domain.OpenEndpoint(info)
	if err != nil {
		t.Fatal(err)
	}
	return ep
}

// openAsked opens an endpoint at a port that it asks for. What other processes take meanwhile is not it.
func (b *bench) openAsked(t *testing.T) *Endpoint {
	t.Helper()
	for range 100 {
		free := b.open(t, b.info)
		asked := b.info.Clone()
		asked.SrcAddr = free.base.name.AppendSockaddr(nil)
		_ = free.Close()
		if ep, err := b.domain.OpenEndpoint(asked); err == nil {
			return ep
		}
	}
	t.Fatal("no port can be asked for")
	return nil
}
