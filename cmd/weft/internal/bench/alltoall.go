package bench

import (
	"context"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// allToAllGroup is measured between eight network namespaces.
const allToAllGroup = "alltoall"

// allToAllPlan is how often and how long.
type allToAllPlan struct {
	rounds int           // of every network, each of all contenders
	each   time.Duration // of one contender, in which it does several exchanges each way
}

var allToAllRuns = allToAllPlan{rounds: 5, each: 2 * time.Second}

// What the measuring program exchanges: a slice between each two of so many ranks.
const (
	allToAllHosts = 8
	allToAllSlice = 256 << 10
	allToAllQueue = 256 << 10 // of each port, bytes
)

// wireShare is how many bytes are on the wire for one of payload: a packet has 1472 bytes
// behind IP and UDP, of which weft's header takes 21, and Ethernet's 14 count for the port.
const wireShare = 1514.0 / 1451

// allToAllNetworks are the rates of hosts, in Mbit/s: of what the switch sends to them, and
// of what they send, 0 for no limit.
var allToAllNetworks = []struct {
	name, title string
	in, out     [allToAllHosts]int
}{
	{
		name: "alike", title: "all alike",
		in: [allToAllHosts]int{100, 100, 100, 100, 100, 100, 100, 100},
	},
	{
		name: "slow", title: "two hosts at 1/4, two at 1/2 of the rate",
		in:  [allToAllHosts]int{100, 25, 100, 50, 100, 25, 100, 50},
		out: [allToAllHosts]int{0, 25, 0, 50, 0, 25, 0, 50},
	},
	{
		name: "halves", title: "half of the hosts slow out, half slow in (1/2)",
		in:  [allToAllHosts]int{50, 100, 50, 100, 50, 100, 50, 100},
		out: [allToAllHosts]int{0, 50, 0, 50, 0, 50, 0, 50},
	},
}

// The ways of the measuring program.
var allToAllWays = []struct {
	name, title string
	all         bool // all hosts get slices, not only the first
}{
	{"step_ms", "one peer at a time", true},
	{"alltoall_ms", "`fi_alltoall`", true},
	{"incast_ms", "all to the first", false},
}

func allToAllFigure(network, way string) string { return "alltoall_" + network + "_" + way }

// allToAllBound is what no order can beat, in ms: the time of the slowest port.
func allToAllBound(in, out [allToAllHosts]int, all bool) float64 {
	one := allToAllSlice * 8 * wireShare / 1000 // ms at 1 Mbit/s
	least := 0.0
	for i := range in {
		got, sent := allToAllHosts-1, allToAllHosts-1
		if !all {
			got, sent = 0, 1
			if i == 0 {
				got, sent = allToAllHosts-1, 0
			}
		}
		least = max(least, one*float64(got)/float64(in[i]))
		if out[i] != 0 {
			least = max(least, one*float64(sent)/float64(out[i]))
		}
	}
	return least
}

// steps is how often allToAll says what it does.
func (p *allToAllPlan) steps(contenders int) int {
	return p.rounds * len(allToAllNetworks) * contenders
}

// exchangers are the contenders that have collective operations between hosts.
func (o *options) exchangers() []contender {
	return slices.DeleteFunc(slices.Clone(o.contenders), func(c contender) bool { return c.provider != "weft" })
}

// allToAll measures every network, the contenders in turn in each round.
func (r *run) allToAll() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	for _, network := range allToAllNetworks {
		l := newLab(ctx)
		err := l.star(network.in[:], network.out[:], allToAllQueue)
		for round := range r.exchanges.rounds {
			for _, c := range r.exchangers() {
				if err != nil {
					break
				}
				r.step("all to all, %s, round %d of %d: %s", network.title, round+1, r.exchanges.rounds, c.text)
				out := r.figuresOf(ctx, c, r.exchanges.each, []string{"-n", strings.Join(l.hosts[:allToAllHosts], ","), "alltoall"})
				r.found.addPrefixed(c.text, "alltoall_"+network.name+"_", out)
				r.noise.look()
				err = ctx.Err()
			}
		}
		l.close()
		if err != nil {
			return fmt.Errorf("all to all: %w", err)
		}
	}
	return nil
}

// addPrefixed takes the lines of the measuring program, with a prefix to the names.
func (f *figures) addPrefixed(provider, prefix string, out []byte) {
	found := newFigures()
	addLines(found, provider, out)
	for name, list := range found.values[provider] {
		for _, v := range list {
			f.add(provider, prefix+name, v)
		}
	}
}

// star makes hosts around a switch, which keeps up to queue bytes for each: in and out are
// the rates to and from every host in Mbit/s, 0 for no limit.
func (l *lab) star(in, out []int, queue int) error {
	var hosts []string
	for range in {
		h, err := l.host()
		if err != nil {
			return err
		}
		hosts = append(hosts, h)
	}
	if err := l.join(hosts, in, queue); err != nil {
		return err
	}
	for i, mbit := range out {
		if mbit == 0 {
			continue
		}
		if err := l.shape(hosts[i], port, mbit, queue); err != nil {
			return err
		}
	}
	return nil
}

// allToAllSection writes a row for each network and way.
func allToAllSection(res *result, found *figures) string {
	var took []string
	for _, p := range res.Providers {
		if found.has(p, "alltoall_") {
			took = append(took, p)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## All to all, libfabric %s, %s\n\n", res.Libfabric, res.date())
	fmt.Fprintf(&b, "%d hosts, which are network namespaces, around a switch that sends 100 Mbit/s to each and keeps %d KiB; slices of %d KiB, all ranks poll on two cores, %s.\n"+
		"Time of the last rank in ms, medians (quartiles); the ways take turns in every round, the contenders too. The bound is the time of the slowest port,\n"+
		"headers included.%s\n\n", allToAllHosts, allToAllQueue>>10, allToAllSlice>>10, res.Machine, res.noiseText())
	fmt.Fprintf(&b, "Command: `weft bench alltoall`, as root\n\n")
	fmt.Fprintf(&b, "| network | way | bound | %s |\n", strings.Join(took, " | "))
	fmt.Fprintf(&b, "| --- | --- | --- |%s\n", strings.Repeat(" --- |", len(took)))
	for _, network := range allToAllNetworks {
		for _, way := range allToAllWays {
			fmt.Fprintf(&b, "| %s | %s | %s |", network.title, way.title, number(allToAllBound(network.in, network.out, way.all)))
			for _, p := range took {
				fmt.Fprintf(&b, " %v |", found.of(p, allToAllFigure(network.name, way.name)))
			}
			b.WriteByte('\n')
		}
	}
	b.WriteByte('\n')
	return b.String()
}
