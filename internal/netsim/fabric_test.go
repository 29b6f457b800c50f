package netsim

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

// tryFabric runs one operation of each case, and checks that it ends soon after what ports and paths take, and that no
// peer waits for longer than the engine promises.
func tryFabric(t *testing.T, hosts, count int, slice int64, most float64) {
	partners := partnersOf(hosts, count)
	promised := max(64, 8*uint64(count)) + 2*uint64(hosts-1) + exchange.Early
	t.Logf("%d hosts with %d partners each:", hosts, count)
	for _, c := range fabricCases {
		before, began := heapInUse(), processorTime()
		f, took, bound := c.run(hosts, slice, partners)
		used := processorTime() - began
		bytes := (heapInUse() - before) / int64(hosts)
		ratio := took.Seconds() / bound.Seconds()
		t.Logf("%s: %v, %.3f of the bound, waited %d of %d choices, %d bytes a host, %.1f s of processor time",
			c.name, took, ratio, f.Waited, promised, bytes, used.Seconds())
		if ratio > most || ratio < 1 {
			t.Errorf("%s: %.3f of the bound, at most %v", c.name, ratio, most)
		}
		if f.Waited > promised {
			t.Errorf("%s: a peer waited for %d choices, at most %d", c.name, f.Waited, promised)
		}
		if hosts >= 1000 && bytes > 1<<20 {
			t.Errorf("%s: %d bytes a host, at most 1 MiB", c.name, bytes)
		}
		runtime.KeepAlive(f)
	}
}

// heapInUse is what the heap keeps.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// processorTime is what the process has used.
func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestFlows: the engine is within a few percent of what ports and paths take, with all others as partners and
// with some.
func TestFlows(t *testing.T) {
	tryFabric(t, 40, 39, 1<<20, 1.10)
	tryFabric(t, 100, 32, 1<<20, 1.10)
	tryFabric(t, 200, 100, 256<<10, 1.10) // several flows meet in a port now and then
}

// TestFlowsMany is the same with thousands of hosts, each case of which takes a minute or two: NETSIM_FLOWS=1
// runs it.
func TestFlowsMany(t *testing.T) {
	if os.Getenv("NETSIM_FLOWS") == "" {
		t.Skip("takes minutes: NETSIM_FLOWS=1")
	}
	t.Run("1000", func(t *testing.T) { tryFabric(t, 1000, 999, 128<<10, 1.10) })
	t.Run("10000", func(t *testing.T) { tryFabric(t, 10_000, 128, 256<<10, 1.12) })
}

// TestPercent: at a share of the link an operation takes as much longer, and not more.
func TestPercent(t *testing.T) {
	const hosts, slice = 16, 2 << 20
	partners := partnersOf(hosts, hosts-1)
	for _, percent := range []int{90, 50, 20} {
		cfg := exchange.DefaultConfig(hosts - 1)
		cfg.Percent = percent
		f := New(1).Fabric(hosts, cfg, FlowLinks{Path: fastPaths, Delay: 10 * us,
			Ports: func(int) (up, down Port) { return Port{Rate: gigabit}, Port{Rate: gigabit} }})
		took, bound := f.Exchange(func(rank int, give func(to int, bytes int64)) {
			partners(rank, func(to int) { give(to, slice) })
		}, time.Minute)
		share := bound.Seconds() / took.Seconds() * 100
		t.Logf("%d percent of the link: %.1f were used", percent, share)
		if share > float64(percent)*1.03 || share < float64(percent)*0.9 {
			t.Errorf("%.1f percent of the link were used, of %d", share, percent)
		}
	}
}

// TestPort: a port serves at its rate, in order, and slower while strangers are on.
func TestPort(t *testing.T) {
	p := Port{Rate: 1000}
	for _, c := range []struct{ at, begins, ends time.Duration }{
		{10 * time.Second, 10 * time.Second, 11 * time.Second},
		{10 * time.Second, 11 * time.Second, 12 * time.Second},
		{20 * time.Second, 20 * time.Second, 21 * time.Second},
	} {
		begins, ends := p.serve(congestion.Time(c.at), 1000)
		if begins != congestion.Time(c.begins) || ends != congestion.Time(c.ends) {
			t.Errorf("a chunk at %v: from %v to %v", c.at, begins, ends)
		}
	}
	for _, c := range []struct {
		at    time.Duration
		bytes int64
		ends  time.Duration
	}{
		{5 * time.Second, 250, 6 * time.Second},         // half a period on, a quarter of the rate
		{9 * time.Second, 1000, 10 * time.Second},       // off
		{6 * time.Second, 250 + 3000, 10 * time.Second}, // the rest of on, and all of off
		{7 * time.Second, 3000 + 500 + 3000, 15 * time.Second},
	} {
		p := Port{Rate: 1000, Share: 0.75, On: 2 * time.Second, Period: 5 * time.Second, Phase: 0}
		_, ends := p.serve(congestion.Time(c.at), c.bytes)
		if off := ends.Sub(congestion.Time(c.ends)); off < -time.Microsecond || off > time.Microsecond {
			t.Errorf("%d bytes at %v end at %v", c.bytes, c.at, time.Duration(ends))
		}
	}
}
