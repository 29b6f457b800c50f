package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// netFigures are figures as two rounds leave them.
func netFigures() *figures {
	f := newFigures()
	for _, v := range []float64{1, 3} {
		f.add("weft", "net_pingpong_8_us", 8*v)
		f.add("tcp;ofi_rxm", "net_pingpong_8_us", 10*v)
		f.add("tcp", "net_pingpong_8_us", 8.5*v)
		f.add("weft", "net_shared_use", 0.8+0.05*v)
		f.add("weft", "net_clean_goodput_mbps", 10*v)
		f.add("weft", "net_lost1_goodput_mbps", 9*v)
		f.add("weft", "net_lost5_goodput_mbps", 4*v)
		f.add("weft", "net_clean_goodput_wrong", 0)
		f.add("weft", "net_million_wrong", v)
		f.add("tcp", "net_lost1_goodput_wrong", 0)
	}
	return f
}

func TestNetSection(t *testing.T) {
	f := netFigures()
	countWrong(f)
	countWrong(f) // a second time changes nothing
	got := netSection(&result{Libfabric: "9.9", Machine: "a machine"}, f)
	for _, part := range []string{
		"| 0.80 x tcp;ofi_rxm, 0.94 x tcp | <= 0.9 x | no |", // reached against one of them only
		"| what | weft | tcp;ofi_rxm | tcp | ratio |",
		"the bulk's share of the link | 0.900 (0.875–0.925) | – | – | 0.900 | >= 0.9 | yes |",
		"| goodput, 1 % lost, MB/s | 18.0 (13.5–22.5) | – | – | 0.90 x | >= 0.8 x | yes |",
		"| goodput, 5 % lost, MB/s | 8.00 (6.00–10.0) | – | – | 0.40 x | >= 0.5 x | no |",
		"corrupted in all of these | 4.00 | – | 0.00 | 4.00 | <= 0 | no |",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
	if strings.Contains(got, "Jain") {
		t.Error("a row without a figure is shown")
	}
}

// TestNetSectionOthers: figures of providers that are not measured over a network now are shown, too.
func TestNetSectionOthers(t *testing.T) {
	f := newFigures()
	f.add("FI_X=1 weft", "net_pingpong_8_us", 8)
	got := netSection(&result{Providers: []string{"tcp", "FI_X=1 weft"}}, f)
	if !strings.Contains(got, "| what | FI_X=1 weft | ratio |") || !strings.Contains(got, "| 8.00 |") {
		t.Errorf("%s", got)
	}
	if got := netSection(&result{}, newFigures()); got != "" {
		t.Errorf("without figures: %s", got)
	}
}

// TestNetTable: every row is of a figure that the measuring program gives.
func TestNetTable(t *testing.T) {
	for _, share := range shareOf {
		if rowOf(netTable, share) < 0 {
			t.Errorf("%s is not in the table", share)
		}
	}
	for _, r := range netTable {
		if r.atLeast != higherIsBetter(r.name) && !math.IsNaN(r.target) {
			t.Errorf("%s: more is better in one place only", r.name)
		}
	}
}

func TestOrphaned(t *testing.T) {
	proc := t.TempDir()
	put(t, proc, "17/stat", "")
	for name, want := range map[string]bool{
		labPrefix + "16-0": true, labPrefix + "17-0": false, labPrefix + "x-0": false, labPrefix + "16": false,
		"other-16-0": false,
	} {
		if got := orphaned(name, proc); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// mine are the namespaces that this process has left.
func mine(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob(fmt.Sprintf("/run/netns/%s%d-*", labPrefix, os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// needLab skips a test where there can be no namespaces.
func needLab(t *testing.T) {
	t.Helper()
	if err := labPossible(); err != nil {
		t.Skip(err)
	}
	l := newLab(t.Context())
	defer l.close()
	if _, err := l.host(); err != nil {
		t.Skipf("no network namespaces here: %v", err)
	}
}

// TestLabInterrupted: what was made goes, also when the making was interrupted.
func TestLabInterrupted(t *testing.T) {
	needLab(t)
	ctx, cancel := context.WithCancel(t.Context())
	r := &run{options: &options{}}
	err := r.between(ctx, (*lab).pair, func([2]string) {
		if len(mine(t)) != 2 {
			t.Errorf("hosts: %v", mine(t))
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := r.between(ctx, (*lab).pair, func([2]string) { t.Error("measured after an interrupt") }); !errors.Is(err,
		context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left := mine(t); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// inLab are options for one round of a subject between namespaces. It skips the test where that cannot be.
func inLab(t *testing.T, subject string) options {
	t.Helper()
	needLab(t)
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Chdir("../../../..")
	program, err := findProgram("", "")
	if err != nil {
		t.Skip(err)
	}
	path, err := findProvider("")
	if err != nil || path == "" {
		t.Skip("build/lib has no libweft-fi.so; make lib builds it")
	}
	groups, err := chooseGroups([]string{subject})
	if err != nil {
		t.Fatal(err)
	}
	return options{
		program: program, providerPath: path, providers: []string{"weft"}, rounds: 1, groups: groups,
		out: filepath.Join(t.TempDir(), "b.md"),
	}
}

// measured measures and returns what the document and the log say.
func measured(t *testing.T, o *options) (document, log string) {
	t.Helper()
	var errs strings.Builder
	if err := execute(io.Discard, &errs, o); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	b, err := os.ReadFile(o.out)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), errs.String()
}

// TestNetwork is a short run of the real thing.
func TestNetwork(t *testing.T) {
	o := inLab(t, netGroup)
	const short = 50 * time.Millisecond
	o.perFigure = short
	o.plan = netPlan{
		rounds: 1, slowRounds: 1, perFigure: short, shared: 6 * short, fair: short, goodput: short,
		providers: []string{"weft"},
	}
	document, log := measured(t, &o)
	for _, r := range netTable {
		if !strings.Contains(document, "| "+r.title+" |") && r.name != "net_million_kps" {
			t.Errorf("no figure %s", r.name)
		}
	}
	if !strings.Contains(document, "corrupted in all of these | 0.00 |") {
		t.Errorf("messages came wrong:\n%s", document)
	}
	if left := mine(t); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	if t.Failed() {
		t.Log(log)
	}
}
