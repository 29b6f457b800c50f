package bench

import (
	"fmt"
	"slices"
	"strings"
)

// group is a subject that can be measured by itself: tests of the measuring
// program.
type group struct {
	name, title string
	tests       []string
	// rare: other providers than the first are measured in the first round only,
	// because their searches are linear and take their time
	rare bool
	// asked: only when it is named
	asked bool
}

var groups = []group{
	{name: "latency", title: "ping-pong, with percentiles", tests: []string{"hop", "pingpong"}},
	{name: "rate", title: "messages of 8 bytes", tests: []string{"rate"}},
	{name: "bandwidth", title: "long messages", tests: []string{"bandwidth"}},
	{name: "onesided", title: "reads and writes of the peer's memory", tests: []string{"write_rate", "one_sided"}},
	{name: "atomics", title: "a fetch-add and its answer", tests: []string{"fetch_add"}},
	{name: tokenGroup, tests: []string{"token", "note", "gpu"}, asked: true, title: "memory tokens, lists of pieces " +
		"beside whole writes, notifications beside messages (weft only), also of a GPU, and over UDP as root"},
	{name: "polling", title: "an idle completion queue, and a call that enters Go",
		tests: []string{"cq_read", "enter"}},
	{name: "posting", title: "injected messages, one thread and two", tests: []string{"post_safe", "post_domain"}},
	{name: "memory", title: "resident memory", tests: []string{"memory"}},
	{name: "depth", title: "matching with many receives or unexpected messages",
		tests: []string{"posted", "unexpected"}, rare: true},
	{name: "progress", title: "automatic progress", tests: []string{"one_core_manual", "one_core_auto", "apart",
		"served", "idle"}, rare: true},
	{name: "peers", title: "one endpoint and up to 64 peers", tests: []string{"peers_out", "peers_in"}, rare: true},
	{name: "sizes", title: "latency and bandwidth over the size, for plots", tests: []string{"sizes", "streams"},
		asked: true},
	{name: "threads", title: "rates over the number of threads", tests: []string{"scale_own", "scale_shared",
		"scale_readers"}, asked: true},
	{name: mpiGroup, title: "MPI programs over Open MPI and MPICH, on weft and on what they have else", asked: true},
	{name: ucxGroup, title: "ucx_perftest beside the measuring program", asked: true},
	{name: netpipeGroup, title: "NetPIPE over Open MPI", asked: true},
	{name: mpiThreadsGroup, title: "2 ranks of 2 threads over Open MPI", asked: true},
	{name: allToAllGroup, title: "all to all between network namespaces, orders in turn, as root", asked: true},
	{name: mpiJobsGroup, title: "MPI programs between network namespaces, with libweft-mpi and without, as root",
		asked: true},
	{name: netGroup, title: "between network namespaces, as root", asked: true},
}

// Groups that are measured by other programs than the measuring program.
const (
	netpipeGroup    = "netpipe"
	mpiThreadsGroup = "mpi-threads"
	mpiGroup        = "mpi"
	ucxGroup        = "ucx"
)

// quickGroups fit into seconds.
var quickGroups = []string{"latency", "rate", "bandwidth", "polling"}

// chooseGroups returns the groups with these names, in their own order; without
// names all but those that are to be asked for.
func chooseGroups(names []string) ([]group, error) {
	for _, n := range names {
		if !slices.ContainsFunc(groups, func(g group) bool { return g.name == n }) {
			return nil, fmt.Errorf("nothing to measure is called %q; there are %s", n, groupNames())
		}
	}
	var chosen []group
	for _, g := range groups {
		if slices.Contains(names, g.name) || len(names) == 0 && !g.asked {
			chosen = append(chosen, g)
		}
	}
	return chosen, nil
}

func groupNames() string {
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
	return strings.Join(names, ", ")
}

// groupHelp lists the groups.
func groupHelp() string {
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "  %-12s %s", g.name, g.title)
		if g.asked {
			b.WriteString(" (only if named)")
		}
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n")
}
