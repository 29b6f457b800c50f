package netsim

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// slowSwitch is a switch port of 100 Mbit/s with a deep buffer and Linux' token
// bucket, a short way from its hosts: what `weft bench net` measures on.
func slowSwitch(n *Net) *Dumbbell {
	return n.Dumbbell(Link{Rate: 100 * megabit, Delay: 5 * us, Burst: 16 << 10, Limit: 1 << 20},
		Link{Rate: 10 * gigabit, Delay: us})
}

// hosts whose programs do not always run, with what flows between them must
// reach. The link cannot be filled by a host that runs for a fourth of the time.
var hosts = []struct {
	name      string
	host      Host
	algorithm congestion.Algorithm

	jain, used float64       // of four flows
	queue      time.Duration // p99 of the wait in the bottleneck
	pingPong   time.Duration // p99 of the round trip beside one flow
	bulk       float64       // what that uses of the link
}{
	{"quiet", Host{Work: us, Away: 200 * us, Every: 10 * ms, Room: 208 << 10}, congestion.Delay, 0.95, 0.95, 2 * ms, ms,
		0.9},
	{"shared", Host{Work: us, Away: 3 * ms, Every: 20 * ms, Room: 4 << 20}, congestion.Delay, 0.95, 0.85, 12 * ms,
		2 * ms, 0.8},
	{"crowded", Host{Work: us, Away: 12 * ms, Every: 4 * ms, Room: 4 << 20}, congestion.Delay, 0.95, 0.4, 30 * ms, ms,
		0.3},
	{"quiet", Host{Work: us, Away: 200 * us, Every: 10 * ms, Room: 4 << 20}, congestion.BBR, 0.95, 0.95, 5 * ms, 2 * ms,
		0.9},
	{"quiet", Host{Work: us, Away: 200 * us, Every: 10 * ms, Room: 4 << 20}, congestion.AIMD, 0.95, 0.95, 2 * ms, ms,
		0.9},
	{"shared", Host{Work: us, Away: 3 * ms, Every: 20 * ms, Room: 4 << 20}, congestion.BBR, 0.9, 0.85, 15 * ms, 2 * ms,
		0.8},
}

// TestFairBetweenHosts: four flows from one host to another share a slow link,
// and do not fill its buffer, though the hosts hold acknowledgements up and the
// link lets bursts through.
func TestFairBetweenHosts(t *testing.T) {
	for _, h := range hosts {
		for seed := uint64(1); seed <= 2; seed++ {
			n := New(seed)
			d := slowSwitch(n)
			from, to := n.Host(h.host), n.Host(h.host)
			var flows []*Flow
			for range 4 {
				forth, back := d.Pair(0)
				flows = append(flows, n.FlowBetween(overUDP(h.algorithm), from, to, forth, back, -1))
			}
			n.Run(time.Second)
			var before, shares []float64
			for _, f := range flows {
				before = append(before, float64(f.Delivered))
			}
			var waits []time.Duration
			n.Every(ms, func(congestion.Time) { waits = append(waits, d.Bottleneck.Wait()) })
			n.Run(10 * time.Second)
			total := 0.0
			for i, f := range flows {
				shares = append(shares, float64(f.Delivered)-before[i])
				total += shares[i]
			}
			jain, used, queue := Jain(shares), total/10/(100*megabit), Quantile(waits, 0.99)
			t.Logf("%-5v %s, seed %d: Jain %.3f, utilisation %.3f, queue p50 %v, p99 %v", h.algorithm, h.name, seed,
				jain, used, Quantile(waits, 0.5), queue)
			if jain < h.jain || used < h.used || queue > h.queue {
				t.Errorf("%v, %s, seed %d: Jain %.3f, utilisation %.3f, queue p99 %v; want %v, %v, %v", h.algorithm,
					h.name, seed, jain, used, queue, h.jain, h.used, h.queue)
			}
		}
	}
}

// TestPingPongBetweenHosts: a ping-pong beside a flow between such hosts waits for
// no burst of the flow.
func TestPingPongBetweenHosts(t *testing.T) {
	for _, h := range hosts {
		for seed := uint64(1); seed <= 2; seed++ {
			n := New(seed)
			d := slowSwitch(n)
			from, to := n.Host(h.host), n.Host(h.host)
			forth, back := d.Pair(0)
			small, answer := d.Pair(0)
			p := n.PingPong(small, answer, 80)
			p.Retry = time.Second
			f := n.FlowBetween(overUDP(h.algorithm), from, to, forth, back, -1)
			n.Run(time.Second)
			seen, before := len(p.Times), f.Delivered
			n.Run(4 * time.Second)
			p99, used := Quantile(p.Times[seen:], 0.99), float64(f.Delivered-before)/4/(100*megabit)
			t.Logf("%-5v %s, seed %d: p50 %v, p99 %v, bulk uses %.3f", h.algorithm, h.name, seed,
				Quantile(p.Times[seen:], 0.5), p99, used)
			if p99 > h.pingPong || used < h.bulk {
				t.Errorf("%v, %s, seed %d: p99 %v, bulk uses %.3f; want %v, %v", h.algorithm, h.name, seed, p99, used,
					h.pingPong, h.bulk)
			}
		}
	}
}

// TestAllToAll: eight hosts, each of which sends to all others at once over switch ports
// of 100 Mbit/s and does not always run. Answers queue behind data, too.
func TestAllToAll(t *testing.T) {
	const members = 8
	for _, c := range []struct {
		name string
		host Host
		used float64 // of all ports
	}{
		{"quiet", Host{Work: us, Away: 200 * us, Every: 10 * ms, Room: 4 << 20}, 0.95},
		{"shared", Host{Work: us, Away: 3 * ms, Every: 20 * ms, Room: 4 << 20}, 0.93},
	} {
		n := New(1)
		s := n.Star(members, Link{Rate: 100 * megabit, Delay: 10 * us, Burst: 16 << 10, Limit: 256 << 10})
		var hosts []*Host
		for i := range members {
			s.Up[i] = n.Link(Link{Rate: 10 * gigabit, Delay: us})
			hosts = append(hosts, n.Host(c.host))
		}
		var flows []*Flow
		for i := range members {
			for d := 1; d < members; d++ {
				j := (i + d) % members
				flows = append(flows, n.FlowBetween(overUDP(congestion.Delay), hosts[i], hosts[j], s.Route(i, j),
					s.Route(j, i), -1))
			}
		}
		n.Run(500 * ms)
		total := 0.0
		for _, f := range flows {
			total -= float64(f.Delivered)
		}
		n.Run(time.Second)
		for _, f := range flows {
			total += float64(f.Delivered)
		}
		used := total / members / (100 * megabit)
		t.Logf("%s: utilisation %.3f", c.name, used)
		if used < c.used {
			t.Errorf("%s: utilisation %.3f, want %v", c.name, used, c.used)
		}
	}
}
