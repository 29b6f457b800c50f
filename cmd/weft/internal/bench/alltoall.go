package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// allToAllGroup is measured between network namespaces.
const allToAllGroup = "alltoall"

// allToAllPlan is what is measured and how often.
type allToAllPlan struct {
	rounds   int      // of every network, 0: its own
	networks []string // names, empty: all
	slices   []string // lengths as sizeText has them, empty: all that a network has
	policies []string // that are measured beside the default
}

// allToAllWay is an order. Each has a set of ranks of its own, which has the variable in its
// environment: what a connection's congestion control has found out in one order is not used by another.
// A policy is measured if it is asked for.
type allToAllWay struct {
	name, title, variable string
	fixed, policy         bool // fixed: it does not follow the network
}

var allToAllWays = []allToAllWay{
	{name: "step", title: "step", variable: "BENCH_EXCHANGE=step", fixed: true},
	{name: "linear", title: "all at once", variable: "BENCH_EXCHANGE=linear", fixed: true},
	{name: "off", title: "off", variable: "FI_WEFT_RTT_SCHED_ENABLE=no", fixed: true},
	{name: "alltoall", title: "on"},
	policyWay("balanced"), policyWay("greedy"), policyWay("threshold"),
}

func policyWay(name string) allToAllWay {
	return allToAllWay{name: name, title: name, variable: "FI_WEFT_RTT_SCHED_POLICY=" + name, policy: true}
}

// of is a provider as the measuring program takes it, with the way's variable.
func (w *allToAllWay) of(provider string) string {
	return strings.TrimSpace(w.variable + " " + provider)
}

// ways are those that are measured.
func (p *allToAllPlan) ways() []allToAllWay {
	return slices.DeleteFunc(slices.Clone(allToAllWays), func(w allToAllWay) bool {
		return w.policy && !slices.Contains(p.policies, w.name)
	})
}

// policyNames are those that may be measured beside the default.
func policyNames() string {
	var names []string
	for _, w := range allToAllWays {
		if w.policy {
			names = append(names, w.name)
		}
	}
	return strings.Join(names, ", ")
}

// allToAllFigure names a figure of a network, a slice's length and a way.
func allToAllFigure(w *labNetwork, slice int64, way, unit string) string {
	return fmt.Sprintf("alltoall_%s_%s_%s_%s", w.name, sizeText(slice), way, unit)
}

// sizeText is a length as variables have it.
func sizeText(bytes int64) string {
	if bytes >= 1<<20 {
		return fmt.Sprintf("%dm", bytes>>20)
	}
	return fmt.Sprintf("%dk", bytes>>10)
}

// chosen are the networks to be measured.
func (p *allToAllPlan) chosen() (list []*labNetwork, err error) {
	for _, name := range p.networks {
		if !slices.ContainsFunc(labNetworks, func(w labNetwork) bool { return w.name == name }) {
			return nil, fmt.Errorf("no network is called %q; there are %s", name, labNetworkNames())
		}
	}
	for _, name := range p.policies {
		if !slices.ContainsFunc(allToAllWays, func(w allToAllWay) bool { return w.policy && w.name == name }) {
			return nil, fmt.Errorf("no policy %q is measured beside the default; there are %s", name, policyNames())
		}
	}
	for _, w := range labNetworks {
		w.slices = slices.DeleteFunc(slices.Clone(w.slices), func(bytes int64) bool {
			return len(p.slices) != 0 && !slices.Contains(p.slices, sizeText(bytes))
		})
		if len(w.slices) != 0 && (len(p.networks) == 0 || slices.Contains(p.networks, w.name)) {
			list = append(list, &w)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("these networks have no slices of %s", strings.Join(p.slices, ", "))
	}
	return list, nil
}

func labNetworkNames() string {
	var names []string
	for i := range labNetworks {
		names = append(names, labNetworks[i].name)
	}
	return strings.Join(names, ", ")
}

// steps is how often allToAll says what it does.
func (p *allToAllPlan) steps(contenders int) int {
	n := 0
	list, _ := p.chosen() // checked before
	for _, w := range list {
		n += len(w.slices) * contenders
	}
	return n
}

// exchangers are the contenders that have collective operations between hosts.
func (o *options) exchangers() []contender {
	return slices.DeleteFunc(slices.Clone(o.contenders), func(c contender) bool { return c.provider != "weft" })
}

// allToAll measures every network, all ways in turn in each round.
func (r *run) allToAll() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	list, err := r.exchanges.chosen()
	if err != nil {
		return err
	}
	for _, w := range list {
		for _, slice := range w.slices {
			for _, c := range r.exchangers() {
				r.step("all to all, %s, slices of %s: %s", w.title, sizeText(slice), c.text)
				if err := r.allToAllOnce(ctx, w, slice, c); err != nil {
					return fmt.Errorf("all to all, %s: %w", w.title, err)
				}
				r.noise.sample()
			}
		}
	}
	return nil
}

// patient has ranks wait for each other while those of other orders, one after the other, have their turn.
const patient = "FI_WEFT_PEER_TIMEOUT=10m"

// allToAllOnce measures a network with slices of one length.
func (r *run) allToAllOnce(ctx context.Context, w *labNetwork, slice int64, c contender) error {
	l := newLab(ctx)
	defer l.close()
	net, err := w.build(l)
	if err != nil {
		return err
	}
	defer net.stop()
	rounds := w.rounds
	if r.exchanges.rounds != 0 {
		rounds = r.exchanges.rounds
	}
	alone, ways := time.Duration(w.bound(slice, &operation{}, nil)), r.exchanges.ways()
	each := time.Duration(rounds+1)*time.Duration(len(ways))*(8*alone+time.Second) + 10*time.Second
	args := append(w.args(l, slice), "-i", strconv.Itoa(rounds))
	for _, way := range ways {
		args = append(args, "-p", way.of(c.provider))
	}
	env := append(r.environ(c.provider, c.env...), patient)
	list := operations(r.output(ctx, c.text, env, each, append(args, "alltoall")))
	net.stop()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i := range list {
		o := &list[i]
		bound := w.bound(slice, o, net)
		add := func(unit string, v float64) { r.found.add(c.text, allToAllFigure(w, slice, o.way, unit), v) }
		add("ms", float64(o.took)/1e6)
		add("mean_ms", float64(o.mean)/1e6)
		add("bound_ms", float64(bound)/1e6)
		add("bounds", float64(o.took)/float64(bound))
		if last := w.lastArrival(); last != 0 {
			add("rests", float64(o.took-last)/float64(bound-last))
		}
		for unit, v := range net.of(o) {
			add(unit, v)
		}
	}
	return nil
}

// operation is one all-to-all. Times are in ns, began of CLOCK_MONOTONIC.
type operation struct {
	way        string
	round      int
	began      int64
	took, mean int64
}

func (o *operation) end() int64 { return o.began + o.took }

// operations reads what the measuring program printed.
func operations(out []byte) (list []operation) {
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		before, line, found := strings.Cut(lines.Text(), "exchange ")
		if !found {
			continue
		}
		var o operation
		n, err := fmt.Sscanf(line, "%s %d %d %d %d", &o.way, &o.round, &o.began, &o.took, &o.mean)
		if n != 5 || err != nil {
			continue
		}
		for _, way := range allToAllWays {
			if way.variable != "" && strings.Contains(before, way.variable) {
				o.way = way.name
			}
		}
		list = append(list, o)
	}
	return list
}
