package provider

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/names"
)

// TestGates: matched endpoints have gates where one thread at a time makes their calls, one of the domain's with
// FI_THREAD_DOMAIN, else their own.
func TestGates(t *testing.T) {
	open := func(level fi.Threading, progress fi.Progress, caps uint64) *Domain {
		d := &Domain{format: names.Matched, info: &fi.Info{Caps: caps, Domain: &fi.DomainAttr{
			Threading: level, ControlProgress: progress, DataProgress: progress}}}
		d.openGate()
		return d
	}
	for level, want := range map[fi.Threading]bool{
		fi.ThreadUnspec: false, fi.ThreadSafe: false, fi.ThreadFID: false, fi.ThreadEndpoint: false,
		fi.ThreadCompletion: true, fi.ThreadDomain: true,
	} {
		d := open(level, fi.ProgressManual, fi.Msg)
		first, second := d.gateFor(fi.Msg), d.gateFor(fi.Msg)
		if (first != nil) != want || (second != nil) != want {
			t.Errorf("%v: gates are %v", level, !want)
		}
		if same := first == second; want && same != (level == fi.ThreadDomain) {
			t.Errorf("%v: two endpoints have the same gate: %v", level, same)
		}
		for what, d := range map[string]*Domain{
			"with triggered operations": open(level, fi.ProgressManual, fi.Msg|fi.Trigger),
			"with a progress thread":    open(level, fi.ProgressAuto, fi.Msg),
		} {
			if d.gateFor(fi.Msg) != nil || d.gate != nil {
				t.Errorf("%v, %s: there is a gate", level, what)
			}
		}
		if d.gateFor(fi.Msg|fi.Trigger) != nil {
			t.Errorf("%v, an endpoint with triggered operations: there is a gate", level)
		}
		// Readers of counters of arrivals make progress of all endpoints of the domain.
		if gate := d.gateFor(fi.Msg | fi.Collective); (gate != nil) != (level == fi.ThreadDomain) {
			t.Errorf("%v, an endpoint with collective operations: there is a gate: %v", level, gate != nil)
		}
	}
}

// TestMatchedRings: queues of matched endpoints are one ring, whatever stripes these have, since all that completes
// does so under a lease; those of other endpoints have one for each stripe.
func TestMatchedRings(t *testing.T) {
	for _, c := range []struct {
		format fi.AddrFormat
		want   int
	}{{names.Matched, 0}, {fi.FormatUnspec, 8}} {
		d := &Domain{format: c.format, maxStripes: 8, cfg: config.Default(),
			info: &fi.Info{Domain: &fi.DomainAttr{Threading: fi.ThreadSafe}}}
		if n := d.cqStripes(); n != c.want || d.stripes(1024) != 8 {
			t.Errorf("%v: %d rings for stripes, %d stripes", c.format, n, d.stripes(1024))
		}
	}
}
