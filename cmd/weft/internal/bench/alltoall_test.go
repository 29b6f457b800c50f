package bench

import (
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// networkOf finds a network by its name.
func networkOf(t *testing.T, name string) *labNetwork {
	t.Helper()
	p := allToAllPlan{networks: []string{name}}
	list, err := p.chosen()
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// sliceMs is what a slice of 256 KiB takes at 100 Mbit/s.
const sliceMs = 256.0 * 1024 * 8 / 1e5 * 1514 / 1451

// TestAllToAllBound computes the time of the port that needs longest by hand.
func TestAllToAllBound(t *testing.T) {
	for name, want := range map[string]float64{
		"alike": 7 * sliceMs, "slow": 28 * sliceMs, "halves": 14 * sliceMs, "paths": 8 * sliceMs,
		"path": 20 * sliceMs,
		"hot":  28 * sliceMs, "four": 48 * 4 * sliceMs,
		"late": 300 + 7*sliceMs, // all of the last one's
	} {
		w := networkOf(t, name)
		got := float64(w.bound(256<<10, &operation{round: 3, began: 1e9}, quiet{})) / 1e6
		if math.Abs(got-want) > 0.01 {
			t.Errorf("%s: bound of %v ms, want %v", name, got, want)
		}
	}
}

// TestThrough: a port that has another rate at times, or nothing to do.
func TestThrough(t *testing.T) {
	for _, c := range []struct {
		jobs  []job
		spans []span
		want  int64
	}{
		{[]job{{0, 100}}, nil, 1000},
		{[]job{{0, 100}}, []span{{0, 900, 0.05}, {5500, 5600, 0}}, 500 + 95*10 - 500 + 0},
		{[]job{{0, 100}}, []span{{5200, 5700, 0.02}}, 1000 + 400},
		{[]job{{0, 100}}, []span{{5200, 5700, 0}, {5700, 5800, 0.05}}, 1000 + 500 + 50},
		{[]job{{2000, 10}, {0, 100}}, nil, 2100},
		{[]job{{500, 10}, {0, 100}}, nil, 1100},
	} {
		began := int64(5000)
		if len(c.spans) != 0 && c.spans[0].from == 0 {
			c.spans, c.want = c.spans[:1], 1000 // it is over
		}
		if got := through(c.jobs, 0.1, c.spans, began); got != c.want {
			t.Errorf("%v, %v: %d ns, want %d", c.jobs, c.spans, got, c.want)
		}
	}
}

// TestOperations reads what the measuring program prints.
func TestOperations(t *testing.T) {
	got := operations([]byte("BENCH_EXCHANGE=step weft exchange step 2 1000 50 40\n" +
		"weft exchange alltoall 2 1000 50 40\n" +
		"FI_WEFT_RTT_SCHED_ENABLE=no weft@/x exchange alltoall 0 7 6 5\n" +
		"FI_WEFT_RTT_SCHED_POLICY=balanced weft exchange alltoall 0 7 6 5\n" +
		"exchange alltoall 1 2\nrate_8_mps 5\n"))
	want := []operation{{"step", 2, 1000, 50, 40}, {"alltoall", 2, 1000, 50, 40},
		{"off", 0, 7, 6, 5}, {"balanced", 0, 7, 6, 5}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	p := allToAllPlan{networks: []string{"alike"}, slices: []string{"1m"}}
	if list, err := p.chosen(); err != nil || len(list) != 1 || len(list[0].slices) != 1 {
		t.Errorf("chose %v, %v", list, err)
	}
	p = allToAllPlan{slices: []string{"3k"}}
	if _, err := p.chosen(); err == nil || !strings.Contains(err.Error(), "3k") {
		t.Errorf("a length that there is not: %v", err)
	}
	p = allToAllPlan{policies: []string{"adaptive"}}
	if _, err := p.chosen(); err == nil || !strings.Contains(err.Error(), `"adaptive" is measured`) {
		t.Errorf("a policy that is the default: %v", err)
	}
	p = allToAllPlan{policies: []string{"threshold"}}
	if ways := p.ways(); len(ways) != 5 || ways[4].name != "threshold" {
		t.Errorf("ways %v", ways)
	}
	sets := map[string]bool{}
	for _, w := range allToAllWays { // none shares ranks with another
		sets[w.of("weft")] = true
	}
	if len(sets) != len(allToAllWays) {
		t.Errorf("sets of ranks: %v", sets)
	}
	p = allToAllPlan{networks: []string{"alike", "nowhere"}}
	if _, err := p.chosen(); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a network that there is not: %v", err)
	}
}

// TestAllToAllSection shows every network that has figures, with the policies that were measured, goals that no
// order reaches, and how all stand beside the best of two providers.
func TestAllToAllSection(t *testing.T) {
	const aimd = "FI_WEFT_CC=aimd weft"
	f := newFigures()
	w := networkOf(t, "bursts")
	for i, way := range []string{"step", "linear", "off", "alltoall", "balanced"} {
		for round := range 3 {
			f.add("weft", allToAllFigure(w, 1<<20, way, "ms"), float64(400-80*i+round))
			f.add("weft", allToAllFigure(w, 1<<20, way, "bounds"), 1.25)
			f.add("weft", allToAllFigure(w, 1<<20, way, "bound_ms"), 80)
			if i < 4 {
				f.add(aimd, allToAllFigure(w, 1<<20, way, "ms"), float64(200-20*i))
				f.add(aimd, allToAllFigure(w, 1<<20, way, "bounds"), 2.5)
			}
		}
		f.add("weft", allToAllFigure(w, 1<<20, way, "stranger_lost"), 0.25)
	}
	f.add("weft", "net_use", 1)
	res := &result{Libfabric: "9.9", Machine: "a machine", Providers: []string{"weft", "shm", aimd}}
	got := allToAllSection(res, f, map[string]string{"alltoall-networks-1m.svg": "plots/x.svg"}, 1<<20)
	for _, part := range []string{
		" on | balanced | on / bound | on / step | on / fixed | balanced / fixed |",
		"| bursts of strangers into each port | 1m | 80.0 | 401 (400–402) | 321 (320–322) | 241 (240–242) |" +
			" 161 (160–162) | 81.0 (80.5–81.5) | 1.25 | 0.40 | 0.67 (off) | 0.34 | – |" +
			" 1.25 x bound, 0.5 x step (not possible: the bound is 0.80 x step) |\n",
		" 0.70 | 0.88 (off) | – | 1.25 x bound, 0.5 x step |\n", // of aimd, whose bound is 0.4 x step
		"datagrams lost beside step 0.250, all at once 0.250, off 0.250, on 0.250, balanced 0.250.\n",
		"| 1m | 200 (" + aimd + ") | 160 (" + aimd + ", off) | 0.81 | 1.01 | 0.41 | 0.51 | 0.70 | 0.88 |\n",
		"slices of 1m, in units of the bound](plots/x.svg)\n",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
	if strings.Contains(got, "all alike") {
		t.Error("a network without figures is shown")
	}
	if title := titleOf("alltoall_slow_256k_alltoall_bounds"); !strings.Contains(title, "two hosts at 1/4") {
		t.Errorf("the figure is called %q", title)
	}
}

// TestAllToAllSections: what was measured with one length replaces the section of that length, and new ones stand
// beside those of others.
func TestAllToAllSections(t *testing.T) {
	f := newFigures()
	add := func(slice int64, ms float64) {
		for _, way := range []string{"step", "linear", "off", "alltoall"} {
			f.add("weft", allToAllFigure(networkOf(t, "alike"), slice, way, "ms"), ms)
		}
	}
	res := &result{Libfabric: "9.9", Providers: []string{"weft"}}
	add(256<<10, 7)
	document := allToAllSections("before\n", res, f, nil) + "behind\n"
	f = newFigures()
	add(1<<20, 8)
	document = allToAllSections(document, res, f, nil)
	f = newFigures()
	add(256<<10, 9)
	document = allToAllSections(document, res, f, nil)
	at := 0
	for _, part := range []string{
		"before\n<!-- begin libfabric all to all, 256k, 9.9 -->\n", "| all alike | 256k | – | 9.00 |",
		"--slices 1m`", "| all alike | 1m | – | 8.00 |", "<!-- end libfabric all to all, 1m, 9.9 -->\nbehind\n",
	} {
		k := strings.Index(document[at:], part)
		if k < 0 {
			t.Fatalf("no %q behind the one before in\n%s", part, document)
		}
		at += k
	}
	if strings.Contains(document, "7.00") {
		t.Errorf("the former figures stay:\n%s", document)
	}
}

// TestAllToAllPlots draws the networks of one length that were measured, for each provider.
func TestAllToAllPlots(t *testing.T) {
	f := newFigures()
	for i, network := range []string{"alike", "paths", "tcp"} {
		w := networkOf(t, network)
		for k, way := range []string{"step", "linear", "off", "alltoall", "balanced"} {
			f.add("weft", allToAllFigure(w, w.slices[0], way, "ms"), 100)
			f.add("weft", allToAllFigure(w, w.slices[0], way, "bounds"), float64(1+10*i+k))
		}
		f.add("other weft", allToAllFigure(w, w.slices[0], "step", "bounds"), 1.5)
	}
	f.add("weft", allToAllFigure(networkOf(t, "one"), 256<<10, "step", "bounds"), 1e6) // has no bound
	dir := t.TempDir()
	providers := []string{"weft", "shm", "other weft"}
	drawn, err := drawPlots(dir, &result{Providers: providers, Figures: f.list(providers)})
	if err != nil || len(drawn) != 1 {
		t.Fatalf("drew %v, %v", drawn, err)
	}
	svg, err := os.ReadFile(drawn["alltoall-networks-256k.svg"])
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"alike", "paths", "tcp", "weft, slices of 256k", "other weft, slices", "all at once", "balanced",
	} {
		if !strings.Contains(string(svg), part) {
			t.Errorf("no %q in the plot", part)
		}
	}
	if p := allToAllPanels(&result{Providers: []string{"weft"}}, f, 256<<10); len(p) != 1 || len(p[0].ticks) != 3 ||
		len(p[0].curves) != 5 || p[0].curves[3].y[2].median != 24 {
		t.Errorf("panels %+v", p)
	}
}

// TestStrangers: what a lab's strangers send is counted, and ports are as slow as they are said to be.
func TestStrangers(t *testing.T) {
	needLab(t)
	if testing.Short() {
		t.Skip("takes a second")
	}
	for _, name := range []string{"bursts", "tcp", "ports"} {
		l := newLab(t.Context())
		w := *networkOf(t, name)
		w.hosts, w.ranks, w.in = 4, 4, alike(4, 20)
		o, err := w.build(l)
		if err != nil {
			l.close()
			t.Fatal(err)
		}
		at := operation{began: monotonic(), took: int64(600 * time.Millisecond)}
		time.Sleep(time.Duration(at.took))
		o.stop()
		l.close()
		found := o.of(&at)
		switch name {
		case "bursts":
			// a sender that has waited for a processor sends more at a time than the port holds
			if lost, ok := found["stranger_lost"]; !ok || lost > 0.8 || len(o.spans(0)) == 0 {
				t.Errorf("%s: lost %v, spans %v", name, found, o.spans(0))
			}
		case "tcp":
			if rate := found["stranger_mbps"]; rate < 10 || rate > 60 {
				t.Errorf("%s: %v", name, found)
			}
		case "ports":
			if len(o.spans(0)) == 0 || len(o.spans(3)) == 0 || o.spans(0)[0].rate != bytesPerNs(2) {
				t.Errorf("%s: %v, %v", name, o.spans(0), o.spans(3))
			}
		}
	}
}

// TestSlowPath: a host's slow path is the one to that peer only, and answers come the other way.
func TestSlowPath(t *testing.T) {
	needLab(t)
	l := newLab(t.Context())
	defer l.close()
	w := labNetwork{hosts: 3, ranks: 3, in: alike(3, 100), path: func(from, to int) float64 {
		if from == 0 && to == 2 {
			return 1
		}
		return 0
	}}
	if _, err := w.build(l); err != nil {
		t.Fatal(err)
	}
	const bytes = 40 << 10 // 328 ms on the slow path, less its bucket
	for to, slow := range map[int]bool{1: false, 2: true} {
		var listener net.Listener
		if err := inNamespace(l.hosts[to], func() (err error) {
			listener, err = net.Listen("tcp4", ":9")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		began := time.Now()
		go func() {
			var c net.Conn
			if err := inNamespace(l.hosts[0], func() (err error) {
				c, err = net.Dial("tcp4", "10.98.0."+string(rune('1'+to))+":9")
				return err
			}); err == nil {
				_, _ = c.Write(make([]byte, bytes))
				_ = c.Close()
			}
		}()
		c, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, c); n != bytes || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
		_ = c.Close()
		if took := time.Since(began); slow && took < 150*time.Millisecond {
			t.Errorf("the slow path took %v", took)
		}
	}
}

// TestAllToAll is a short run of the real thing, on a small network.
func TestAllToAll(t *testing.T) {
	o := inLab(t, allToAllGroup)
	o.perFigure = time.Millisecond
	o.exchanges.policies = []string{"balanced", "greedy", "threshold"}
	all := labNetworks
	defer func() { labNetworks = all }()
	labNetworks = []labNetwork{{
		name: "small", title: "small", reach: "no error", hosts: 3, ranks: 3, in: alike(3, labMbit),
		late: []int{0, 20, 0}, others: burstsIntoAll,
		path:  func(from, to int) float64 { return float64(from * (to / 2) * 10) },
		share: sparse, slices: []int64{64 << 10}, rounds: 1,
	}}
	document, log := measured(t, &o)
	row := ""
	for line := range strings.Lines(document) {
		if strings.HasPrefix(line, "| small | 64k |") {
			row = line
		}
	}
	if row == "" || strings.Contains(row, "–") || !strings.Contains(document, "| balanced | greedy | threshold |") {
		t.Errorf("%s\n%s", log, document)
	}
	if left := mine(t); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}
