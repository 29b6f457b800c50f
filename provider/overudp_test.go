package provider

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/probe"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/names"
)

// overUDP makes n sides that know each other and are not local to each other, so
// that they reach each other over UDP.
func overUDP(t testing.TB, n int, change func(*config.Config)) []*side {
	t.Helper()
	return overUDPWith(t, n, rmaHints(), change)
}

func overUDPWith(t testing.TB, n int, hints *fi.Info, change func(*config.Config)) []*side {
	t.Helper()
	b := newBench(t, func(c *config.Config) {
		c.UDP, c.SHMDir, c.SHMAcross = config.Yes, t.TempDir(), config.No
		if change != nil {
			change(c)
		}
	}, hints)
	if b.domain.cfg.Service == config.Yes {
		b.domain.startService()
	}
	var err error // the domain is open already
	b.domain.clock, err = probe.OpenClock(b.domain.cfg, b.domain.DomainName(), clockSources)
	if err != nil {
		t.Fatal(err)
	}
	var sides []*side
	for range n {
		sides = append(sides, b.side(t))
	}
	for _, s := range sides {
		for _, o := range sides {
			if o != s {
				s.know(o)
			}
		}
	}
	b.domain.local.Use(func() ([]names.Interface, error) { return nil, nil })
	return sides
}

// peerCounter reads a counter of the one peer of a side, from the page.
func (s *side) peerCounter(name string) uint64 {
	s.t.Helper()
	r := leasedOf(s.ep).rx
	r.base.acquire()
	r.sample()
	r.give()
	for _, e := range page(s.t.(*testing.T), s.domain.cfg.SHMDir).Endpoints {
		if !strings.HasSuffix(s.ep.base.name.String(), "//"+e.Name) || len(e.Peers) != 1 {
			continue
		}
		for i, c := range stats.Table() {
			if c.Name == name {
				return e.Peers[0].Values[i]
			}
		}
	}
	return 0
}

// oneMessage sends a message of n bytes from s to o.
func oneMessage(t *testing.T, s, o *side, n int) {
	t.Helper()
	sent, got := bytes.Repeat([]byte("weft"), n/4), make([]byte, n)
	o.recv(RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec, Context: 1}, s)
	s.send(SendArgs{IOV: iovOf(sent), Dest: s.addr[o], Context: 2}, o)
	s.completion(o)
	o.completion(s)
	if !bytes.Equal(sent, got) {
		t.Fatalf("a message of %d bytes is wrong", n)
	}
}

// TestPeerStatistics has the page show what UDP measures of the path to a peer.
func TestPeerStatistics(t *testing.T) {
	sides := overUDP(t, 2, nil)
	x, y := sides[0], sides[1]
	for range 20 {
		oneMessage(t, x, y, 64)
	}
	oneMessage(t, x, y, 1<<20)
	for end := time.Now().Add(time.Minute); x.peerCounter("peer_rtt_samples") < 3; drain(x, y) {
		if time.Now().After(end) {
			t.Fatal("no samples")
		}
	}
	least, most, rtt := x.peerCounter("peer_rtt_min"), x.peerCounter("peer_rtt_max"), x.peerCounter("peer_rtt")
	if least == 0 || rtt < least || rtt > most || most > uint64(10*time.Second) {
		t.Errorf("round-trip times from %d to %d, smoothed %d ns", least, most, rtt)
	}
	for _, name := range []string{"peer_window", "peer_rtt_deviation", "peer_rtt_age"} {
		if x.peerCounter(name) == 0 {
			t.Errorf("%s is 0", name)
		}
	}
	if n := x.peerCounter("peer_packets_lost"); n > 1000 {
		t.Errorf("%d packets lost", n)
	}
}

// flowsEverywhere has every long operation cut, into pieces that tests can afford.
func flowsEverywhere(c *config.Config) {
	c.RTTControl, c.SegmentSize, c.MinSegment, c.MaxSegment = config.Yes, 32<<10, 16<<10, 64<<10
}
