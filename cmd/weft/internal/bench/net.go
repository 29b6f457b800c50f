package bench

import (
	"context"
	"fmt"
	"math"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weft-fabric/weft/internal/impair"
)

// netGroup is measured between network namespaces.
const netGroup = "net"

// netProviders are weft and those of libfabric that reach other hosts through
// the kernel's TCP. The section compares weft with each of them.
var netProviders = []string{"weft", "tcp;ofi_rxm", "tcp"}

// netPlan is how often and how long the network is measured. A run of netRuns
// takes less than five minutes.
type netPlan struct {
	rounds       int           // over the cable, each of all providers in time slices
	slowRounds   int           // through the switch, and of lists
	perFigure    time.Duration // over the cable
	shared, fair time.Duration
	goodput      time.Duration
	million      bool
	providers    []string // of the cable and of the shared link; the first two of the others
}

var netRuns = netPlan{
	rounds: 15, slowRounds: 3, perFigure: 100 * time.Millisecond,
	shared: 3 * time.Second, fair: 10 * time.Second, goodput: 1500 * time.Millisecond, million: true,
	providers: netProviders,
}

// The slow link. Its buffer is deep: 84 ms of what it carries.
const (
	slowMbit  = 100
	slowQueue = 1 << 20
)

// badNetworks are what happens on the way in both directions.
var badNetworks = []struct {
	name, title string
	impair.Impairment
	target float64 // of the goodput without
}{
	{name: "clean", title: "nothing lost"},
	{"lost01", "0.1 % lost", impair.Impairment{Loss: 0.001}, 0.9},
	{"lost1", "1 % lost", impair.Impairment{Loss: 0.01}, 0.8},
	{"lost5", "5 % lost", impair.Impairment{Loss: 0.05}, 0.5},
	{"reordered5", "5 % reordered", impair.Impairment{Delay: 0.05, Detour: 20000}, 0.9},
}

// millionNetwork does all of it.
var millionNetwork = impair.Impairment{Loss: 0.01, Double: 0.01, Delay: 0.05, Detour: 20000}

// netSteps is how often net says what it does.
func (p *netPlan) steps() int {
	n := p.rounds + p.slowRounds*(1+len(p.providers)+min(2, len(p.providers))*(1+len(badNetworks)))
	if p.million {
		n++
	}
	return n
}

// net measures the network. Its figures begin with "net_". An interrupt ends it
// with an error, and the networks go in any case.
func (r *run) net() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	p := &r.plan
	few := p.providers[:min(2, len(p.providers))]
	err := r.between(ctx, (*lab).pair, func(hosts [2]string) {
		for round := range p.rounds {
			r.step("network, round %d of %d", round+1, p.rounds)
			r.netOnce(ctx, p.providers, "net_", hosts, p.perFigure, "pingpong", "rate", "bandwidth")
		}
		for round := range p.slowRounds {
			r.step("lists over the network, round %d of %d", round+1, p.slowRounds)
			r.netOnce(ctx, p.providers[:1], "net_", hosts, p.perFigure, "token")
		}
	})
	slow := func(l *lab) ([2]string, error) { return l.switched(slowMbit, slowQueue) }
	if err == nil {
		err = r.between(ctx, slow, func(hosts [2]string) {
			for round := range p.slowRounds {
				for _, provider := range p.providers {
					r.step("ping-pong beside bulk, round %d of %d: %s", round+1, p.slowRounds, provider)
					r.netOnce(ctx, []string{provider}, "net_", hosts, p.shared, "shared")
				}
				for _, provider := range few {
					r.step("four flows, round %d of %d: %s", round+1, p.slowRounds, provider)
					r.netOnce(ctx, []string{provider}, "net_", hosts, p.fair, "fair")
				}
			}
		})
	}
	for round := range p.slowRounds {
		for _, bad := range badNetworks {
			if err != nil {
				return err
			}
			err = r.between(ctx, badly(slow, bad.Impairment), func(hosts [2]string) {
				for _, provider := range few {
					r.step("%s, round %d of %d: %s", bad.title, round+1, p.slowRounds, provider)
					r.netOnce(ctx, []string{provider}, "net_"+bad.name+"_", hosts, p.goodput, "goodput")
				}
			})
		}
	}
	if err == nil && p.million {
		err = r.between(ctx, badly(slow, millionNetwork), func(hosts [2]string) {
			r.step("a million messages: %s", p.providers[0])
			r.netOnce(ctx, p.providers[:1], "net_", hosts, p.goodput, "million")
		})
	}
	return err
}

// badly makes a network on which something happens.
func badly(build func(*lab) ([2]string, error), p impair.Impairment) func(*lab) ([2]string, error) {
	return func(l *lab) ([2]string, error) {
		hosts, err := build(l)
		if err == nil && p != (impair.Impairment{}) {
			p.TCP = true
			err = l.impair(hosts, p)
		}
		return hosts, err
	}
}

// between makes a network of two hosts, measures, and removes it.
func (r *run) between(ctx context.Context, build func(*lab) ([2]string, error), measure func([2]string)) error {
	l := newLab(ctx)
	defer l.close()
	hosts, err := build(l)
	if err == nil {
		measure(hosts)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the benchmark of the network was interrupted: %w", ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("make the network: %w", err)
	}
	return nil
}

// netOnce runs tests of providers between hosts, whose figures get a prefix. Those that the
// measuring program can it takes of all providers in time slices.
func (r *run) netOnce(
	ctx context.Context, providers []string, prefix string, hosts [2]string, each time.Duration, tests ...string,
) {
	if ctx.Err() != nil {
		return
	}
	args := []string{"-n", hosts[0] + "," + hosts[1]}
	for _, p := range providers {
		if p == "weft" && r.providerPath != "" {
			p += "@" + r.providerPath
		}
		args = append(args, "-p", p)
	}
	found := newFigures()
	addLines(found, providers[0], r.output(ctx, strings.Join(providers, ", "), r.environ(""), each,
		append(args, tests...)))
	for provider, values := range found.values {
		for name, list := range values {
			for _, v := range list {
				r.found.add(provider, prefix+name, v)
				if share, ok := shareOf[prefix+name]; ok {
					r.found.add(provider, share, v*8/slowMbit)
				}
			}
		}
	}
	r.noise.sample()
}

// shareOf names the figure that is a rate in MB/s divided by the slow link's.
var shareOf = map[string]string{"net_shared_bulk_mbps": "net_shared_use", "net_fair_sum_mbps": "net_fair_use"}

// netTable is what the section shows and judges. Rows without by and not
// absolute are compared with the other providers.
var netTable = []row{
	{name: "net_pingpong_8_us", title: "8 B tagged ping-pong, half round trip, us", target: 0.9},
	{name: "net_pingpong_8_p99_us", title: "the same, p99, us", target: math.NaN()},
	{name: "net_pingpong_4096_us", title: "4 KiB tagged ping-pong, us", target: math.NaN()},
	{name: "net_pingpong_65536_us", title: "64 KiB tagged ping-pong, us", target: math.NaN()},
	{name: "net_rate_8_mps", title: "8 B tagged message rate, window 64, M/s", target: math.NaN()},
	{name: "net_bandwidth_65536_mbps", title: "64 KiB tagged bandwidth, MB/s", target: 1, atLeast: true},
	{name: "net_bandwidth_1048576_mbps", title: "1 MiB tagged bandwidth, MB/s", target: 1, atLeast: true},
	{
		name: "net_list_4096_mbps", title: "list of scattered pieces of 4 KiB, MB/s, beside one write as long",
		target: 0.95, atLeast: true, by: "net_list_whole_4096_mbps",
	},
	{
		name: "net_list_16384_mbps", title: "the same, 16 KiB",
		target: 0.95, atLeast: true, by: "net_list_whole_16384_mbps",
	},
	{
		name: "net_list_65536_mbps", title: "the same, 64 KiB",
		target: 0.95, atLeast: true, by: "net_list_whole_65536_mbps",
	},
	{
		name: "net_alone_list_8_ns", title: "list of one element of 8 B beside fi_write, ns",
		target: 1.03, by: "net_alone_write_8_ns",
	},
	{name: "net_alone_list_65536_ns", title: "the same, 64 KiB", target: 1.03, by: "net_alone_write_65536_ns"},
	{name: "net_shared_8_p50_us", title: "8 B ping-pong beside bulk, median, us", target: math.NaN()},
	{name: "net_shared_8_p99_us", title: "8 B ping-pong beside bulk, p99, us", target: 0.2},
	{name: "net_shared_use", title: "the bulk's share of the link", target: 0.9, atLeast: true, absolute: true},
	{name: "net_fair_jain", title: "four flows, Jain's index", target: 0.95, atLeast: true, absolute: true},
	{name: "net_fair_use", title: "four flows, share of the link", target: 0.9, atLeast: true, absolute: true},
}

func init() {
	for _, bad := range badNetworks {
		r := row{name: "net_" + bad.name + "_goodput_mbps", title: "goodput, " + bad.title + ", MB/s",
			target: math.NaN()}
		if bad.target != 0 {
			r.target, r.atLeast, r.by = bad.target, true, "net_clean_goodput_mbps"
		}
		netTable = append(netTable, r)
	}
	netTable = append(netTable,
		row{name: "net_million_kps", title: "10^6 messages of 64 B, 1 % lost, 1 % doubled, 5 % reordered, thousands/s",
			target: math.NaN()},
		row{name: "net_wrong", title: "messages lost, doubled or corrupted in all of these", target: 0, absolute: true},
	)
}

// countWrong adds up what came wrong, for each provider.
func countWrong(found *figures) {
	for provider, values := range found.values {
		delete(values, "net_wrong")
		wrong, seen := 0.0, false
		for name, list := range values {
			if strings.HasPrefix(name, "net_") && strings.HasSuffix(name, "_wrong") {
				for _, v := range list {
					wrong, seen = wrong+v, true
				}
			}
		}
		if seen {
			found.add(provider, "net_wrong", wrong)
		}
	}
}

// netSection writes the table.
func netSection(res *result, found *figures) string {
	var took []string
	for _, p := range append(slices.Clone(netProviders), res.Providers...) {
		if found.has(p, "net_") && !slices.Contains(took, p) {
			took = append(took, p)
		}
	}
	if len(took) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## Network, libfabric %s, %s\n\n", res.Libfabric, res.date())
	fmt.Fprintf(&b, "Two processes in two network namespaces, %s; medians (quartiles), and ratios of slice by slice "+
		"or run by run.%s\n\n", res.Machine, res.noiseText())
	fmt.Fprintf(&b, "The first rows are over a pair of veth interfaces, without limit; the providers take time "+
		"slices of 20 ms in turn. The others run in turn and go through a switch that sends %d Mbit/s with a buffer\n"+
		"of %d KiB; loss and reordering are in both directions. The kernel's TCP uses %s.\n\n", slowMbit, slowQueue>>10,
		tcpControl())
	fmt.Fprintf(&b, "Command: `weft bench net`, as root\n\n")
	fmt.Fprintf(&b, "| what | %s | ratio | to reach | reached |\n", strings.Join(took, " | "))
	fmt.Fprintf(&b, "| --- |%s\n", strings.Repeat(" --- |", len(took)+3))
	for _, r := range netTable {
		if found.of(took[0], r.name).count == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s |", r.title)
		for _, p := range took {
			fmt.Fprintf(&b, " %v |", found.of(p, r.name))
		}
		ratios, reached := r.judgeAll(found, took)
		fmt.Fprintf(&b, " %s | %s | %s |\n", ratios, r.goal(), reached)
	}
	fmt.Fprintln(&b)
	return b.String()
}

// judgeAll judges against every other provider that has the figure; reached is
// what is reached against all.
func (r row) judgeAll(found *figures, providers []string) (ratios, reached string) {
	if r.absolute || r.by != "" || math.IsNaN(r.target) {
		v, text := r.judge(found, providers)
		return text, r.reached(v)
	}
	var all []string
	reached = "not measured"
	for _, other := range providers[1:] {
		if found.of(other, r.name).count == 0 {
			continue
		}
		v, text := r.judge(found, []string{providers[0], other})
		all = append(all, text)
		if reached != "no" {
			reached = r.reached(v)
		}
	}
	return strings.Join(all, ", "), reached
}

// tcpControl names the congestion control of the kernel's TCP.
func tcpControl() string {
	if name := readLine("/proc/sys/net/ipv4/tcp_congestion_control"); name != "" {
		return name
	}
	return "an unknown congestion control"
}
