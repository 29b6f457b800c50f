package provider

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/exchange"
)

// TestGroupReport: what is said of the last operation and of the paths, between hosts and on one.
func TestGroupReport(t *testing.T) {
	c := apartCircle(t, 3, nil)
	groups := c.joinAll(everyRank(3))
	g, err := c.sides[1].ep.GroupOf(groups[1].Addr())
	if err != nil || g != groups[1] {
		t.Fatalf("group %v, %v", g, err)
	}
	if _, _, err := g.PeerReports(); !errors.Is(err, fi.ENODATA) {
		t.Errorf("before the first operation: %v", err)
	}
	const slice = 300 << 10
	c.allToAll(rand.New(rand.NewPCG(1, 8)), groups, slice)
	rep, all, err := g.PeerReports()
	if err != nil || rep != g.Report() || len(all) != 3 || rep.Took <= 0 || rep.Took > time.Minute {
		t.Fatalf("%d ranks, %v; %+v", len(all), err, rep)
	}
	for r, p := range all {
		own := p == (exchange.PeerReport{})
		if own != (r == 1) || !own && (p.Chunks == 0 || p.Last > rep.Took || p.Received <= 0) {
			t.Errorf("rank %d: %+v of %v", r, p, rep.Took)
		}
	}
	buf, others := make([]byte, 6*slice), make([]byte, 9*slice)
	defer runtime.KeepAlive(others)
	defer runtime.KeepAlive(buf)
	c.postAllToAll(1, g, buf, buf[3*slice:], slice)
	if _, _, err := g.PeerReports(); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("while another operation is under way: %v", err)
	}
	for _, i := range []int{0, 2} {
		c.postAllToAll(i, groups[i], buf, others[i*3*slice:], slice)
	}
	for i := range 3 {
		if err := c.outcome(i); err != fi.Success {
			t.Errorf("rank %d ends with %v", i, err)
		}
	}
	c.postAllToAll(1, g, buf, buf[3*slice:], slice)
	if err := groups[2].Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.outcome(1); err != fi.ECONNRESET {
		t.Errorf("without rank 2: %v", err)
	}
	if _, _, err := g.PeerReports(); !errors.Is(err, fi.ENODATA) || g.Report() == (exchange.Report{}) {
		t.Errorf("after one that has failed: %v, %+v", err, g.Report())
	}
	s := c.sides[1]
	if p, err := s.ep.Path(s.addrs[0]); err != nil || p.Base <= 0 || p.Smoothed < p.Base ||
		p.Queue != p.Smoothed-p.Base || p.Rate <= 0 || p.Samples == 0 {
		t.Errorf("path %+v, %v", p, err)
	}
	if _, err := s.ep.Path(1 << 20); !errors.Is(err, fi.EINVAL) {
		t.Errorf("of an address that there is not: %v", err)
	}
	if _, err := s.ep.GroupOf(s.addrs[0]); !errors.Is(err, fi.EINVAL) {
		t.Errorf("of an address that is no group: %v", err)
	}
	one := newCircle(t, newBench(t, nil, collHints()), 2)
	one.joinAll([]int{0, 1})
	if _, err := one.sides[0].ep.Path(one.sides[0].addrs[1]); !errors.Is(err, fi.EOPNOTSUPP) {
		t.Errorf("on one host: %v", err)
	}
}
