package provider

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/names"
)

// sideAt is a side whose endpoint has a name.
func (b *bench) sideAt(t testing.TB, n names.Name) *side {
	t.Helper()
	at := b.info.Clone()
	at.AddrFormat, at.SrcAddr = fi.Sockaddr, n.AppendSockaddr(nil)
	other := *b
	other.info = at
	return other.side(t)
}

// knowAgain is know for a side that is not local to s, as those of overUDP.
func (s *side) knowAgain(o *side) {
	s.domain.local.Use(nil)
	s.know(o)
	s.domain.local.Use(func() ([]names.Interface, error) { return nil, nil })
}

// notices waits until the end of a path's peer is reported.
func (s *side) notices(p *path) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !p.Reported(); s.housekeep() {
		if time.Now().After(end) {
			s.t.Fatal("the end of the peer is not noticed")
		}
	}
}

// TestAddressAgain: an endpoint closes, another takes its address, and that is removed from the address vector and
// inserted again. What became of the first says nothing about the other, whether or not its end has been noticed.
func TestAddressAgain(t *testing.T) {
	for over, pair := range map[string]func(t *testing.T) []*side{
		"shared memory": func(t *testing.T) []*side {
			b := newBench(t, nil, rmaHints())
			x, y := b.pair(t)
			return []*side{x, y}
		},
		"UDP": func(t *testing.T) []*side { return overUDP(t, 2, nil) },
	} {
		for name, noticed := range map[string]bool{"noticed": true, "unnoticed": false} {
			t.Run(over+"/"+name, func(t *testing.T) {
				sides := pair(t)
				x, y := sides[0], sides[1]
				at := y.ep.base.name
				for range 3 {
					oneMessage(t, x, y, 8)
					_, p := x.pathTo(y)
					y.close()
					if noticed {
						x.notices(p)
					}
					if err := x.av.Remove([]fi.Addr{x.addr[y]}, 0); err != nil {
						t.Fatal(err)
					}
					y = x.bench.sideAt(t, at)
					x.knowAgain(y)
					y.knowAgain(x)
					oneMessage(t, x, y, 8) // any error but fi.EAGAIN fails it, and so does one of a completion
				}
			})
		}
	}
}

// TestAddressKept: an address is removed and inserted again while its endpoint lives: the path to it stays.
func TestAddressKept(t *testing.T) {
	sides := overUDP(t, 2, nil)
	x, y := sides[0], sides[1]
	oneMessage(t, x, y, 8)
	_, p := x.pathTo(y)
	if err := x.av.Remove([]fi.Addr{x.addr[y]}, 0); err != nil {
		t.Fatal(err)
	}
	x.knowAgain(y)
	oneMessage(t, x, y, 8)
	if _, now := x.pathTo(y); now != p {
		t.Error("another path to the same endpoint")
	}
}
