package root

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/weft-fabric/weft/cmd/weft/internal/tooltest"
	"github.com/weft-fabric/weft/internal/stats"
)

// labels are those of a metric.
func labels(m *dto.Metric) map[string]string {
	l := map[string]string{}
	for _, p := range m.GetLabel() {
		l[p.GetName()] = p.GetValue()
	}
	return l
}

// TestExportJobs serves processes of a batch job and of two pods, which have the same number, 1, each
// in a pid namespace of its own.
func TestExportJobs(t *testing.T) {
	dir, env := shm(t)
	job := tooltest.LoadCommand(dir)
	job.Env = append(job.Env, "SLURM_JOB_ID=4711", "SLURM_PROCID=3")
	tooltest.StartLoad(t, job)
	want := []string{"4711/3/"}
	if os.Geteuid() == 0 {
		for _, pod := range []string{"a", "b"} {
			cmd := tooltest.LoadCommand(dir)
			cmd.Env = append(cmd.Env, "POD_NAME="+pod)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
			tooltest.StartLoad(t, cmd)
			want = append(want, "//"+pod)
		}
	}
	out, err := tooltest.Weft([]string{env}, "export", "--once").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	pids := map[string]bool{}
	for _, m := range parseMetrics(t, bytes.NewReader(out))["weft_process_info"].GetMetric() {
		l := labels(m)
		got = append(got, l["job_id"]+"/"+l["rank"]+"/"+l["pod"])
		pids[l["pid"]] = true
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(pids) != len(want) {
		t.Errorf("%q with numbers %v, not %q", got, pids, want)
	}
}

var (
	metricName = regexp.MustCompile(`\bweft_[a-z_]+`)
	grouping   = regexp.MustCompile(`(?:by|on|group_left) \(([^)]*)\)`)
	comparison = regexp.MustCompile(`([a-z_]+)=~`)
)

// texts gives all strings under the keys of a JSON value.
func texts(v any, keys ...string) (all []string) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if s, ok := x.(string); ok && slices.Contains(keys, k) {
				all = append(all, s)
			}
			all = append(all, texts(x, keys...)...)
		}
	case []any:
		for _, x := range v {
			all = append(all, texts(x, keys...)...)
		}
	}
	return all
}

// TestDashboard holds Grafana's dashboard to the metrics and labels that there are.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../../../packaging/grafana/weft.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard any
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	dir, env := shm(t)
	tooltest.Load(t, dir)
	out, err := tooltest.Weft([]string{env}, "export", "--once").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"instance": true} // which Prometheus adds
	metrics := map[string]bool{"weft_process_info": true}
	for _, f := range parseMetrics(t, bytes.NewReader(out)) {
		for name := range labels(f.GetMetric()[0]) {
			known[name] = true
		}
	}
	for _, c := range stats.Table() {
		metrics[c.Metric()] = true
	}
	expressions := texts(dashboard, "expr", "query")
	used := 0
	for _, e := range expressions {
		for _, m := range metricName.FindAllString(e, -1) {
			used++
			if !metrics[m] {
				t.Errorf("there is no metric %s: %s", m, e)
			}
		}
		names := comparison.FindAllStringSubmatch(e, -1)
		for _, g := range grouping.FindAllStringSubmatch(e, -1) {
			for n := range strings.SplitSeq(g[1], ",") {
				names = append(names, []string{"", strings.TrimSpace(n)})
			}
		}
		for _, n := range names {
			if !known[n[1]] {
				t.Errorf("there is no label %s: %s", n[1], e)
			}
		}
		if strings.Count(e, "(") != strings.Count(e, ")") {
			t.Errorf("parentheses: %s", e)
		}
	}
	if len(expressions) < 10 || used < 20 {
		t.Errorf("%d expressions with %d metrics", len(expressions), used)
	}
}
