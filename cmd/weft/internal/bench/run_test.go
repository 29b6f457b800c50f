package bench

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/cmd/weft/internal/tool"
)

func put(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestNoise(t *testing.T) {
	root := t.TempDir()
	put(t, root, "proc/loadavg", "0.10 1 1 1/1 1\n")
	put(t, root, "proc/stat", "cpu  9 9 9 9 9 9 9 9\ncpu0 100 0 0 100 0 0 0 0 0 0\ncpu1 100 0 0 100 0 0 0 50 0 0\n")
	put(t, root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3000000\n")
	put(t, root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n")
	n := watchNoise(root, [2]int{0, 1})
	n.sample()
	if got := n.warnings(); len(got) != 0 {
		t.Errorf("a quiet machine: %q", got)
	}
	put(t, root, "proc/stat", "cpu0 200 0 0 100 0 0 0 0 0 0\ncpu1 180 0 0 100 0 0 0 70 0 0\n")
	put(t, root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000\n")
	put(t, root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
	n.load = 3
	n.sample()
	got := strings.Join(n.warnings(), "\n")
	for _, part := range []string{"load average 3.00", "took 20.0 % of core 1", "core 0 ran at 2000 to 3000 MHz",
		`of core 0 is "powersave"`} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
	if n = watchNoise(t.TempDir(), [2]int{2, 2}); len(n.warnings()) != 1 {
		t.Errorf("one core for both, and nothing known: %q", n.warnings())
	}
}

func TestChooseCores(t *testing.T) {
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"0", "a,b", "0,-1", "0,1023", "0,"} {
		if _, err := chooseCores(bad, "/sys"); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if own.Count() < 2 {
		t.Skip("one processor")
	}
	first := 0
	for !own.IsSet(first) {
		first++
	}
	got, err := chooseCores("", t.TempDir())
	if err != nil || got[0] != first || got[1] == first || !own.IsSet(got[1]) {
		t.Errorf("chose %v, %v", got, err)
	}
}

func TestChooseGroups(t *testing.T) {
	all, err := chooseGroups(nil)
	if err != nil || len(all) == 0 {
		t.Fatal(err)
	}
	for _, g := range all {
		if g.asked {
			t.Errorf("%s was not asked for", g.name)
		}
	}
	if got, err := chooseGroups([]string{"threads", "latency"}); err != nil || len(got) != 2 ||
		got[0].name != "latency" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := chooseGroups([]string{"speed"}); err == nil || !strings.Contains(err.Error(), "latency") {
		t.Errorf("got %v", err)
	}
	if _, err := chooseGroups(quickGroups); err != nil {
		t.Error(err)
	}
}

// TestCannotRun: a program that does not run on this libfabric is notified before anything is measured.
func TestCannotRun(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "weft_bench", "#!/bin/sh\necho version FABRIC_9.9 not found >&2\nexit 1\n")
	var out, errs strings.Builder
	err := execute(&out, &errs, &options{program: filepath.Join(dir, "weft_bench"), providers: []string{"weft"},
		rounds: 1, perFigure: 1e6})
	if err == nil || !strings.Contains(err.Error(), "FABRIC_9.9 not found") {
		t.Errorf("error %v", err)
	}
}

// A program that measures nothing of libfabric but prints as the real one does.
func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "weft_bench", "#!/bin/sh\n[ \"$1\" = -v ] && { echo 9.9; exit; }\n"+
		"echo \"$2 $*\" >> "+dir+"/log\necho rate_8_mps 5\n[ \"$2\" = weft ] || { echo broken >&2; exit 1; }\n")
	groups, err := chooseGroups([]string{"rate", "depth"})
	if err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	saved := filepath.Join(dir, "saved.json")
	o := options{program: filepath.Join(dir, "weft_bench"), providers: []string{"weft", "other"}, rounds: 2,
		perFigure: 1e6,
		groups:    groups, save: saved, out: filepath.Join(dir, "b.md")}
	if err := execute(&out, &errs, &o); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"[1/4] round 1 of 2: weft", "[3/4] round 2 of 2: other", "[4/4] round 2 of 2: weft",
		"other: broken"} {
		if !strings.Contains(errs.String(), part) {
			t.Errorf("no %q in\n%s", part, errs.String())
		}
	}
	log, _ := os.ReadFile(filepath.Join(dir, "log"))
	if n := strings.Count(string(log), "posted"); n != 3 {
		t.Errorf("the deep tests ran %d times, want 2 for weft and one for the other:\n%s", n, log)
	}
	back, err := load(saved)
	if err != nil {
		t.Fatal(err)
	}
	if back.Libfabric != "9.9" || len(back.Figures) != 2 || len(back.Figures[0].Values) != 2 ||
		back.Figures[0].Better != "higher" {
		t.Errorf("saved %+v", back)
	}
	document, _ := os.ReadFile(o.out)
	if !strings.Contains(string(document), "| 8 B tagged message rate, window 64, M/s | 5.00 (5.00–5.00) | 5.00 "+
		"(5.00–5.00) | 1.00 x other |") {
		t.Errorf("wrote\n%s", document)
	}
	out.Reset()
	if err := execute(&out, &errs, &options{load: saved, compare: saved, providers: o.providers, rounds: 1,
		perFigure: 1e6}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "+0.0 %") {
		t.Errorf("compared:\n%s", out.String())
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "old", `{"format": 99}`)
	put(t, dir, "none", "no json")
	for _, name := range []string{"old", "none", "missing"} {
		if _, err := load(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestCompare(t *testing.T) {
	old, now := newFigures(), newFigures()
	for i := range 10 {
		d := float64(i) / 100
		old.add("weft", "pingpong_8_us", 1+d)
		now.add("weft", "pingpong_8_us", 2+d) // worse
		old.add("weft", "rate_8_mps", 1+d)
		now.add("weft", "rate_8_mps", 2+d) // better
		old.add("weft", "hop_ns", 1+d)
		now.add("weft", "hop_ns", 1.001+d) // the same
		now.add("weft", "bandwidth_65536_mbps", 1)
	}
	out := strings.Join(compareResults(text.Style{}, resultOf(old, "weft"), resultOf(now, "weft")), "\n")
	for title, want := range map[string]string{"half round trip": "  worse", "message rate": "  better",
		"cache line": "  ~"} {
		line := ""
		for l := range strings.Lines(out) {
			if strings.Contains(l, title) {
				line = strings.TrimRight(l, "\n")
			}
		}
		if !strings.HasSuffix(line, want) {
			t.Errorf("%s: %q, want%s", title, line, want)
		}
	}
	if !strings.Contains(out, "1 figures were not measured before") {
		t.Errorf("got\n%s", out)
	}
}

func TestPlots(t *testing.T) {
	f := newFigures()
	for _, p := range []string{"weft", "shm"} {
		for _, name := range []string{"pingpong_8_us", "pingpong_8_p99_us", "size_1_us", "size_4_us", "size_1_mbps",
			"size_4_mbps",
			"peers_out_1_mps", "peers_out_8_mps", "scale_own_1_mps", "scale_own_2_mps", "scale_shared_4_mps"} {
			for i := range 3 {
				f.add(p, name, float64(len(name)+i))
			}
		}
	}
	drawn, err := drawPlots(t.TempDir(), resultOf(f, "weft", "shm"))
	if err != nil {
		t.Fatal(err)
	}
	if len(drawn) != 4 {
		t.Errorf("drawn %v", drawn)
	}
	for name, path := range drawn {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for d := xml.NewDecoder(strings.NewReader(string(b))); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		for _, part := range []string{">weft<", ">shm<"} {
			if !strings.Contains(string(b), part) {
				t.Errorf("no %s in %s", part, name)
			}
		}
	}
	if drawn, err := drawPlots(t.TempDir(), resultOf(newFigures(), "weft")); err != nil || len(drawn) != 0 {
		t.Errorf("without figures: %v, %v", drawn, err)
	}
}

func TestFindProgram(t *testing.T) {
	root := t.TempDir()
	put(t, root, "libexec/weft/weft_bench", "#!/bin/sh\n")
	t.Chdir(t.TempDir())
	if got, err := findProgram("", filepath.Join(root, "bin/weft")); err != nil ||
		!strings.HasSuffix(got, "libexec/weft/weft_bench") {
		t.Errorf("got %q, %v", got, err)
	}
	if got, _ := findProgram("mine", ""); got != "mine" {
		t.Errorf("got %q", got)
	}
	t.Setenv("PATH", "")
	if got, err := findProgram("", "/nowhere/bin/weft"); err == nil {
		t.Errorf("found %q", got)
	}
}

func TestContenders(t *testing.T) {
	list, err := parseContenders([]string{"weft", " A=1  B_2=x=y weft", "tcp;ofi_rxm"})
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	if c := list[1]; c.text != "A=1 B_2=x=y weft" || c.provider != "weft" ||
		!slices.Equal(c.env, []string{"A=1", "B_2=x=y"}) {
		t.Errorf("got %+v", c)
	}
	for _, bad := range [][]string{nil, {""}, {"A=1"}, {"verbose weft"}, {"2=3 weft"}, {"weft", "shm", " weft"}} {
		if list, err := parseContenders(bad); err == nil {
			t.Errorf("%q gave %v", bad, list)
		}
	}
}

// TestVariables: a provider is measured beside itself with another variable, in
// every round, in turns of both orders; ratios are of rounds.
func TestVariables(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "weft_bench", "#!/bin/sh\n[ \"$1\" = -v ] && { echo 9.9; exit; }\n"+
		"echo \"$WEFT_SPEED\" >> "+dir+"/log\nn=$(wc -l < "+dir+"/log)\necho posted_10_ns $((${WEFT_SPEED:-2} * n))\n")
	groups, err := chooseGroups([]string{"depth"})
	if err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	o := options{program: filepath.Join(dir, "weft_bench"), providers: []string{"WEFT_SPEED=4 weft", "weft"}, rounds: 3,
		perFigure: 1e6, groups: groups}
	if err := execute(&out, &errs, &o); err != nil {
		t.Fatal(err)
	}
	if log, _ := os.ReadFile(filepath.Join(dir, "log")); string(log) != "4\n\n\n4\n4\n\n" {
		t.Errorf("order %q", log)
	}
	// 4·1/2·2, 4·4/2·3, 4·5/2·6
	if !strings.Contains(out.String(), "1.67 (1.33–2.17)") {
		t.Errorf("wrote\n%s", out.String())
	}
	o.providers = []string{"weft", "weft"}
	if err := execute(&out, &errs, &o); tool.Status(err) != 2 {
		t.Errorf("one twice: %v", err)
	}
}

// TestEnviron: only weft's own processes find weft.
func TestEnviron(t *testing.T) {
	o := options{providerPath: "/weft", libfabric: "/fabric"}
	for provider, want := range map[string]bool{"weft": true, "shm": false, "": false} {
		env := o.environ(provider)
		if got := slices.Contains(env, "FI_PROVIDER_PATH=/weft"); got != want {
			t.Errorf("%q finds weft: %t", provider, got)
		}
		if !slices.Contains(env, "LD_LIBRARY_PATH=/fabric/lib") {
			t.Errorf("%q does not find its libfabric", provider)
		}
	}
	if env := o.environ("weft", "FI_PROVIDER_PATH=/old"); slices.Index(env, "FI_PROVIDER_PATH=/old") < slices.Index(env,
		"FI_PROVIDER_PATH=/weft") {
		t.Error("a contender's own variables do not count")
	}
}
