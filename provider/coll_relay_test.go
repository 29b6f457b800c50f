package provider

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// relayCircle is sides of which every one sends through the others, and their group.
func relayCircle(t *testing.T, n int, change func(*config.Config)) (*circle, []*Group) {
	t.Helper()
	c := apartCircle(t, n, change)
	for _, s := range c.sides {
		s.ep.coll.UseRelays()
	}
	return c, c.joinAll(everyRank(n))
}

// kept checks that no side keeps anything for others.
func (c *circle) kept() {
	c.t.Helper()
	for i, s := range c.sides {
		if n := s.ep.coll.RelayPlaces(); !s.gone && n != 0 {
			c.t.Errorf("side %d: %d places are in use", i, n)
		}
	}
}

// TestRelayOverUDP: slices arrive whole of which the ends go through other members, with bounded
// memory; groups of three hosts, and with FI_WEFT_ALLTOALL_RELAY=no, have no relays.
func TestRelayOverUDP(t *testing.T) {
	c, groups := relayCircle(t, 5, func(c *config.Config) { c.RelaySize = 64 << 10 })
	r := rand.New(rand.NewPCG(1, 8))
	relayed, carried := uint64(0), uint64(0)
	for range 3 {
		c.allToAll(r, groups, 300<<10+1)
		for _, g := range groups {
			relayed, carried = relayed+g.Report().Relayed, carried+g.Report().Carried
		}
		c.kept()
	}
	if relayed == 0 || carried == 0 {
		t.Errorf("%d bytes went through relays, %d were passed on", relayed, carried)
	}
	for _, other := range []struct {
		n     int
		relay string
	}{{3, "auto"}, {4, "no"}} {
		c, groups := relayCircle(t, other.n, func(c *config.Config) { c.Relay = other.relay })
		c.allToAll(r, groups, 300<<10)
		if groups[0].Report().Relayed != 0 {
			t.Errorf("%d hosts, %q: members relay", other.n, other.relay)
		}
	}
}

// TestRelayMemberGone: a member that leaves while it relays fails what needs it, and nothing else: an
// operation that completes has the right data, and no memory stays in use.
func TestRelayMemberGone(t *testing.T) {
	const slice = 200 << 10
	r := rand.New(rand.NewPCG(1, 9))
	whole := 0
	for round := range 6 {
		c, groups := relayCircle(t, 5, nil)
		in, out := make([][]byte, 5), make([][]byte, 5)
		for i := range 5 {
			in[i], out[i] = randomBytes(r, 5*slice), make([]byte, 5*slice)
			c.postAllToAll(i, groups[i], in[i], out[i], slice)
		}
		for range r.IntN(20 * (round + 1)) {
			c.progress()
		}
		if err := groups[4].Close(); err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			switch err := c.outcome(i); err {
			case fi.Success:
				whole++
				for j := range 5 {
					if !bytes.Equal(out[i][j*slice:(j+1)*slice], in[j][i*slice:(i+1)*slice]) {
						t.Fatalf("rank %d has the wrong data of rank %d", i, j)
					}
				}
			case fi.ECONNRESET, fi.ECANCELED:
			default:
				t.Errorf("rank %d ends with %v", i, err)
			}
		}
		c.kept()
	}
	t.Logf("%d operations were whole", whole)
}
