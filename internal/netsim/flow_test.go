package netsim

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

func config(a congestion.Algorithm) congestion.Config {
	cfg := congestion.DefaultConfig(1500)
	cfg.Algorithm = a
	return cfg
}

// result is what a few flows on one bottleneck came to.
type result struct {
	jain, utilisation float64
	queue             time.Duration // p99 of the wait in the bottleneck
	shares            []float64
	flows             []*Flow
}

// bottleneck runs flows on one link, each starting gap after the one before,
// and judges the time from warm until the end.
func bottleneck(seed uint64, cfg congestion.Config, link Link, flows int, gap, warm, length time.Duration) result {
	n := New(seed)
	d := n.Dumbbell(link, Link{Rate: 10 * link.Rate, Delay: 5 * us})
	r := result{}
	for range flows {
		forth, back := d.Pair(0)
		r.flows = append(r.flows, n.Flow(cfg, forth, back, -1))
		n.Run(gap)
	}
	n.Run(warm)
	before := make([]int64, flows)
	for i, f := range r.flows {
		before[i] = f.Delivered
	}
	var waits []time.Duration
	n.Every(length/10000, func(congestion.Time) { waits = append(waits, d.Bottleneck.Wait()) })
	n.Run(length)
	total := 0.0
	for i, f := range r.flows {
		share := float64(f.Delivered-before[i]) / length.Seconds()
		r.shares = append(r.shares, share)
		total += share
	}
	r.jain, r.utilisation, r.queue = Jain(r.shares), total/float64(link.Rate), Quantile(waits, 0.99)
	return r
}

// TestFairness: four flows that start 100 ms apart share a link evenly and fill
// it, whatever algorithm they run.
func TestFairness(t *testing.T) {
	for _, c := range []struct {
		algorithm congestion.Algorithm
		rate      int64
		length    time.Duration
		jain      float64
		queue     time.Duration // p99 of the wait in the bottleneck
	}{
		{congestion.Delay, 100 * megabit, 10 * time.Second, 0.95, 3 * ms},
		{congestion.Delay, gigabit, 10 * time.Second, 0.95, ms},
		{congestion.Delay, 4 * gigabit, time.Second, 0.95, ms},
		{congestion.BBR, 100 * megabit, 10 * time.Second, 0.95, 12 * ms},
		{congestion.BBR, gigabit, 10 * time.Second, 0.95, ms},
		{congestion.AIMD, gigabit, 10 * time.Second, 0.95, ms},
		{congestion.AIMD, 100 * megabit, 10 * time.Second, 0.95, 3 * ms},
	} {
		link := Link{Rate: c.rate, Delay: 50 * us, Limit: c.rate / 10}
		r := bottleneck(1, config(c.algorithm), link, 4, 100*ms, 100*ms, c.length)
		t.Logf("%-5v %4d Mbit/s: Jain %.3f, utilisation %.3f, queue p99 %v", c.algorithm, c.rate/megabit, r.jain,
			r.utilisation, r.queue)
		if r.jain < c.jain {
			t.Errorf("%v at %d Mbit/s: Jain's index is %.3f: %.0f", c.algorithm, c.rate/megabit, r.jain, r.shares)
		}
		if r.utilisation < 0.9 {
			t.Errorf("%v at %d Mbit/s: the link is used to %.3f", c.algorithm, c.rate/megabit, r.utilisation)
		}
		if r.queue > c.queue {
			t.Errorf("%v at %d Mbit/s: p99 of the queue is %v", c.algorithm, c.rate/megabit, r.queue)
		}
	}
}

// TestRepeatable: a run depends on its seed alone.
func TestRepeatable(t *testing.T) {
	link := Link{Rate: gigabit, Delay: 50 * us, Limit: 100000, Mark: 50000, Loss: 0.01, Reorder: 0.01,
		ReorderDelay: 100 * us}
	run := func(seed uint64) (sum [4]int64) {
		r := bottleneck(seed, config(congestion.BBR), link, 4, ms, ms, 50*ms)
		for i, f := range r.flows {
			sum[i] = f.Delivered<<20 + f.Resent
		}
		return sum
	}
	if one, two := run(7), run(7); one != two {
		t.Errorf("one seed gives %v and %v", one, two)
	}
	if one, two := run(7), run(8); one == two {
		t.Errorf("two seeds give the same %v", one)
	}
}

// TestLoss measures what goes through a link that loses packets, and one that
// reorders them, against the same link without.
func TestLoss(t *testing.T) {
	for _, a := range []congestion.Algorithm{congestion.Delay, congestion.BBR, congestion.AIMD} {
		for _, link := range []Link{
			{Rate: 100 * megabit, Delay: 50 * us},
			{Rate: gigabit, Delay: 50 * us},
			{Rate: gigabit, Delay: ms},
		} {
			link.Limit = link.Rate / 10
			clean := bottleneck(1, config(a), link, 1, 100*ms, 100*ms, 600*ms).utilisation
			if clean < 0.9 && (a != congestion.AIMD || clean < 0.8) {
				t.Errorf("%v, %d Mbit/s, %v: without loss the link is used to %.3f", a, link.Rate/megabit, link.Delay,
					clean)
			}
			for _, c := range []struct{ loss, reorder, want float64 }{
				{loss: 0.001, want: 0.9}, {loss: 0.01, want: 0.8}, {loss: 0.05, want: 0.5}, {reorder: 0.05, want: 0.9},
			} {
				link.Loss, link.Reorder, link.ReorderDelay = c.loss, c.reorder, link.Delay/2
				got := bottleneck(1, config(a), link, 1, 100*ms, 100*ms, 600*ms).utilisation / clean
				t.Logf("%-5v %4d Mbit/s, delay %v: loss %4.1f %%, reordered %.0f %%: goodput %.3f of that without", a,
					link.Rate/megabit, link.Delay, 100*c.loss, 100*c.reorder, got)
				if got < c.want && a != congestion.AIMD {
					t.Errorf("%v, %d Mbit/s, %v: loss %v, reordering %v: goodput is %.3f of that without", a,
						link.Rate/megabit, link.Delay, c.loss, c.reorder, got)
				}
			}
		}
	}
}

// TestShallowQueue: when the queue overflows below the delay aimed at, losses
// are the only sign, and must hold the flows back.
func TestShallowQueue(t *testing.T) {
	for _, a := range []congestion.Algorithm{congestion.Delay, congestion.BBR, congestion.AIMD} {
		link := Link{Rate: gigabit, Delay: 50 * us, Limit: 6 * 1500}
		n := New(1)
		d := n.Dumbbell(link, Link{Rate: 10 * gigabit, Delay: 5 * us})
		var flows []*Flow
		for range 4 {
			forth, back := d.Pair(0)
			flows = append(flows, n.Flow(config(a), forth, back, -1))
		}
		n.Run(time.Second)
		delivered := int64(0)
		for _, f := range flows {
			delivered += f.Delivered
		}
		used := float64(delivered) / float64(gigabit)
		lost := float64(d.Bottleneck.Dropped) / float64(d.Bottleneck.Dropped+d.Bottleneck.Packets)
		t.Logf("%-5v: utilisation %.3f, dropped %.3f", a, used, lost)
		if used < 0.8 || lost > 0.2 {
			t.Errorf("%v: utilisation %.3f, dropped %.3f", a, used, lost)
		}
	}
}

// TestMarks: with ECN the queue stays near the threshold and nothing is lost.
func TestMarks(t *testing.T) {
	for _, a := range []congestion.Algorithm{congestion.Delay, congestion.AIMD} {
		link := Link{Rate: gigabit, Delay: 50 * us, Limit: 1 << 20, Mark: 8 * 1500}
		r := bottleneck(1, config(a), link, 4, 10*ms, 100*ms, time.Second)
		t.Logf("%-5v: Jain %.3f, utilisation %.3f, queue p99 %v, resent %d", a, r.jain, r.utilisation, r.queue,
			r.flows[0].Resent)
		if r.utilisation < 0.8 || r.jain < 0.9 || r.queue > 250*us {
			t.Errorf("%v: Jain %.3f, utilisation %.3f, queue p99 %v", a, r.jain, r.utilisation, r.queue)
		}
	}
}

// TestBulkBesidePingPong: a bulk flow on a link with a deep buffer leaves the
// small messages of another program alone, and still fills the link. A fixed
// window that fills the buffer shows what it would be without.
func TestBulkBesidePingPong(t *testing.T) {
	run := func(cfg congestion.Config) (p50, p99 time.Duration, used float64) {
		n := New(1)
		d := n.Dumbbell(Link{Rate: 100 * megabit, Delay: 50 * us, Limit: 1 << 20}, Link{Rate: gigabit, Delay: 5 * us})
		forth, back := d.Pair(0)
		small, answer := d.Pair(0)
		p := n.PingPong(small, answer, 80)
		p.Retry = time.Second
		f := n.Flow(cfg, forth, back, -1)
		n.Run(5 * time.Second)
		return p.Quantile(0.5), p.Quantile(0.99), float64(f.Delivered) / (5 * 100 * megabit)
	}
	full := config(congestion.Fixed)
	full.Initial = 600
	_, worst, _ := run(full)
	t.Logf("a window that fills the buffer: p99 %v", worst)
	for _, a := range []congestion.Algorithm{congestion.Delay, congestion.BBR, congestion.AIMD} {
		p50, p99, used := run(config(a))
		t.Logf("%-5v: p50 %v, p99 %v, bulk uses %.3f", a, p50, p99, used)
		if p99 > worst/5 || used < 0.9 {
			t.Errorf("%v: p99 %v beside %v, bulk uses %.3f", a, p99, worst, used)
		}
	}
}

// TestIncast: 200 senders at one receiver, each with less than a packet in a
// round trip to itself, neither overflow the queue for long nor starve.
func TestIncast(t *testing.T) {
	const senders = 200
	n := New(1)
	s := n.Star(senders+1, Link{Rate: 10 * gigabit, Delay: 2 * us, Limit: 1 << 20})
	var flows []*Flow
	for i := range senders {
		flows = append(flows, n.Flow(config(congestion.Delay), s.Route(i, senders), s.Route(senders, i), -1))
	}
	n.Run(700 * ms)
	down := s.Down[senders]
	dropped := down.Dropped
	var before, shares []float64
	for _, f := range flows {
		before = append(before, float64(f.Delivered))
	}
	n.Run(300 * ms)
	total := 0.0
	for i, f := range flows {
		shares = append(shares, float64(f.Delivered)-before[i])
		total += shares[i]
	}
	used, jain := total/0.3/float64(10*gigabit), Jain(shares)
	t.Logf("utilisation %.3f, Jain %.3f, queue now %v, dropped after the start %d", used, jain, down.Wait(),
		down.Dropped-dropped)
	if used < 0.9 || jain < 0.9 || down.Dropped-dropped > down.Packets/100 {
		t.Errorf("utilisation %.3f, Jain %.3f, dropped %d of %d", used, jain, down.Dropped-dropped, down.Packets)
	}
}

// TestIncastBeyond: a thousand senders at one receiver, whose buffer does not hold a packet
// of each, lose few.
func TestIncastBeyond(t *testing.T) {
	const senders = 1000
	n := New(1)
	s := n.Star(senders+1, Link{Rate: 10 * gigabit, Delay: 2 * us, Limit: 1 << 20})
	for i := range senders {
		n.Flow(config(congestion.Delay), s.Route(i, senders), s.Route(senders, i), -1)
	}
	n.Run(200 * ms)
	down := s.Down[senders]
	dropped, packets := down.Dropped, down.Packets
	n.Run(100 * ms)
	dropped, packets = down.Dropped-dropped, down.Packets-packets
	used := float64(packets*1500) / 0.1 / float64(10*gigabit)
	t.Logf("utilisation %.3f, dropped %d of %d", used, dropped, packets)
	if used < 0.95 || dropped > packets*3/100 {
		t.Errorf("utilisation %.3f, dropped %d of %d", used, dropped, packets)
	}
}

// TestIncastSlow: a few senders at one slow port, none of which has room for more than
// a packet, fill it evenly and lose nothing once they have begun.
func TestIncastSlow(t *testing.T) {
	for _, rate := range []int64{100 * megabit, gigabit} {
		for _, senders := range []int{7, 15, 31} {
			n := New(1)
			s := n.Star(senders+1, Link{Rate: rate, Delay: 10 * us, Burst: 16 << 10, Limit: 256 << 10})
			host := Host{Work: us, Away: 200 * us, Every: 10 * ms, Room: 4 << 20}
			to := n.Host(host)
			var flows []*Flow
			for i := range senders {
				flows = append(flows, n.FlowBetween(overUDP(congestion.Delay), n.Host(host), to, s.Route(i, senders),
					s.Route(senders, i), -1))
			}
			n.Run(300 * ms)
			down := s.Down[senders]
			dropped := down.Dropped
			resent := int64(0)
			var before, shares []float64
			for _, f := range flows {
				before = append(before, float64(f.Delivered))
				resent -= f.Resent
			}
			n.Run(500 * ms)
			total := 0.0
			for i, f := range flows {
				shares = append(shares, float64(f.Delivered)-before[i])
				total += shares[i]
				resent += f.Resent
			}
			used, jain := total/0.5/float64(rate), Jain(shares)
			t.Logf("%4d Mbit/s, %2d senders: utilisation %.3f, Jain %.3f, resent %d", rate/megabit, senders, used, jain,
				resent)
			if used < 0.95 || jain < 0.95 || resent != 0 || down.Dropped != dropped {
				t.Errorf("%d Mbit/s, %d senders: utilisation %.3f, Jain %.3f, resent %d, dropped %d", rate/megabit,
					senders, used, jain, resent, down.Dropped-dropped)
			}
		}
	}
}
