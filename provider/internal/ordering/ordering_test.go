package ordering

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// TestInTurn: what may be posted while operations have messages left to send, or reads are not answered.
func TestInTurn(t *testing.T) {
	kinds := [...]Kind{Send, Read, Update}
	for what, c := range map[string]struct {
		rules          Rules
		unsent, unread [len(kinds)]bool // by kind
	}{
		"no order":         {0, [...]bool{true, true, true}, [...]bool{true, true, true}},
		"among sends":      {Rules(fi.OrderSAS), [...]bool{true, true, true}, [...]bool{true, true, true}},
		"write after read": {Rules(fi.OrderWAR), [3]bool{}, [...]bool{true, true, false}},
		"of atomics":       {Rules(fi.OrderAtomicWAR), [3]bool{}, [...]bool{true, true, false}},
		"of RMA":           {Rules(fi.OrderRMAWAR), [3]bool{}, [...]bool{true, true, false}},
		"send after read":  {Rules(fi.OrderSAR), [3]bool{}, [...]bool{false, true, true}},
		"write after send": {Rules(fi.OrderWAS), [3]bool{}, [...]bool{true, true, true}},
		"both after read":  {Rules(fi.OrderSAR | fi.OrderWAR), [3]bool{}, [...]bool{false, true, false}},
	} {
		var p Peer
		check := func(when string, want [len(kinds)]bool) {
			for i, k := range kinds {
				if got := c.rules.InTurn(&p, k); got != want[i] {
					t.Errorf("%s, %s: kind %d in turn: %v", what, when, k, got)
				}
			}
		}
		free := [...]bool{true, true, true}
		check("nothing under way", free)
		p.Unsent(1)
		check("messages left to send", c.unsent)
		p.Unsent(-1)
		holds := c.rules.Begin(&p, true)
		if p.Idle() {
			t.Errorf("%s: idle with a read", what)
		}
		check("a read", c.unread)
		p.End(holds)
		if holds = c.rules.Begin(&p, false); holds {
			t.Errorf("%s: a write holds", what)
		}
		check("a write", free)
		if p.End(holds); !p.Idle() {
			t.Errorf("%s: not idle at the end", what)
		}
		if on := c.rules.On(); on != (what != "no order" && what != "among sends") {
			t.Errorf("%s: on is %v", what, on)
		}
	}
}

// TestGate: the data plane may post while the endpoint is enabled and nothing holds it. Other flags stay.
func TestGate(t *testing.T) {
	var g Gate
	ep := &hot.EP{Flags: hot.EPExclusive}
	check := func(when string, open bool) {
		t.Helper()
		if ep.Flags&hot.EPFast != 0 != open || ep.Flags&hot.EPExclusive == 0 {
			t.Errorf("%s: flags %#x", when, ep.Flags)
		}
	}
	g.Hold(ep, 1)
	g.Open(ep, true)
	check("kept before it was opened", false)
	g.Hold(ep, 1)
	g.Hold(ep, -1)
	check("kept once more", false)
	g.Hold(ep, -1)
	check("kept by nothing", true)
	g.Open(ep, false)
	check("closed", false)
}
