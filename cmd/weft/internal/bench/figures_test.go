package bench

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestDistribution(t *testing.T) {
	s := distribution([]float64{5, 1, 3, 2, 4})
	if s.median != 3 || s.low != 2 || s.high != 4 || s.count != 5 {
		t.Errorf("got %+v", s)
	}
	if s := distribution([]float64{1, 2}); s.median != 1.5 {
		t.Errorf("median of 1 and 2: %v", s.median)
	}
	if got := distribution(nil).String(); got != "–" {
		t.Errorf("nothing reads %q", got)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0.2064: "0.206", 4.5678: "4.57", 12.345: "12.3", 12668.4: "12668", 0: "0.00", 0.00012: "0.000",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestAddLines(t *testing.T) {
	f := newFigures()
	addLines(f, "weft", []byte("rate_8_mps 4.5\nnoise\nrate_8_mps 5.5\n"))
	if got := f.of("weft", "rate_8_mps"); got.count != 2 || got.median != 5 {
		t.Errorf("got %+v", got)
	}
	addLines(f, "weft", []byte("tcp;ofi_rxm rate_8_mps 7\nweft@build/lib rate_8_mps 6\na line of noise\n"))
	if a, b := f.of("weft", "rate_8_mps"), f.of("tcp;ofi_rxm", "rate_8_mps"); a.count != 3 || a.high < 5.5 ||
		b.median != 7 {
		t.Errorf("got %+v and %+v", a, b)
	}
	addLines(f, "weft", []byte("tcp rate_8_mps 7\nrate_8_mps inf\nrate_8_mps NaN\nrate_8_mps 8\n"))
	if a, b := f.of("weft", "rate_8_mps"), f.of("tcp", "rate_8_mps"); a.count != 4 || b.count != 1 {
		t.Errorf("a line that names a provider, and lines that name none: %+v and %+v", a, b)
	}
	want := []string{"rate_8_mps of weft was +Inf once", "rate_8_mps of weft was NaN once"}
	if !slices.Equal(f.odd, want) {
		t.Errorf("what is no value: %q", f.odd)
	}
	if b, err := json.Marshal(f.list([]string{"weft", "tcp"})); err != nil {
		t.Errorf("%v: %s", err, b)
	}
}

func TestJudge(t *testing.T) {
	f := newFigures()
	for name, v := range map[string]float64{"pingpong_8_us": 0.2, "cq_read_empty_ns": 12, "post_1_safe_mps": 10,
		"post_2_safe_mps": 19} {
		f.add("weft", name, v)
		f.add("shm", name, 2*v)
	}
	want := map[string]string{
		"pingpong_8_us": "yes", "cq_read_empty_ns": "no", "post_1_safe_mps": "",
		"post_2_safe_mps": "yes", "post_1_domain_mps": "not measured", "rss_open_kib": "not measured",
	}
	for _, r := range rows {
		expect, ok := want[r.name]
		if !ok {
			continue
		}
		v, _ := r.judge(f, []string{"weft", "shm"})
		if got := r.reached(v); got != expect {
			t.Errorf("%s (%v): reached %q, want %q", r.name, v, got, expect)
		}
	}
	if v, text := findRow("pingpong_8_us").judge(f, []string{"weft", "shm"}); math.Abs(v-0.5) > 1e-9 ||
		text != "0.50 x shm" {
		t.Errorf("ratio %v %q", v, text)
	}
}

func TestPlaceSection(t *testing.T) {
	doc := placeSection("", "1.17.0", "FIRST\n")
	doc = placeSection(doc, "2.0.0", "SECOND\n")
	doc = placeSection(doc, "1.17.0", "THIRD\n")
	if strings.Contains(doc, "FIRST") || !strings.Contains(doc, "SECOND") || !strings.Contains(doc, "THIRD") {
		t.Errorf("got:\n%s", doc)
	}
	if strings.Index(doc, "THIRD") > strings.Index(doc, "SECOND") {
		t.Error("a replaced section moved")
	}
	if !strings.HasPrefix(doc, "# Benchmarks\n") {
		t.Error("no head")
	}
}

func TestNetPIPELine(t *testing.T) {
	m := netpipeLine.FindStringSubmatch("  0:       8 bytes    500 times -->      0.51 Mbps in     120.34 usec")
	if m == nil || m[1] != "120.34" {
		t.Errorf("got %v", m)
	}
}

func TestPairs(t *testing.T) {
	f := newFigures()
	for _, v := range []float64{1, 10, 1} {
		f.add("weft", "one", v)
		f.add("weft", "two", 2*v)
	}
	if got := f.pairs("weft", "two", "one"); got.median != 2 || got.count != 3 {
		t.Errorf("got %+v", got)
	}
	f.add("weft", "one", 1)
	if got := f.pairs("weft", "two", "one"); got.count != 0 {
		t.Errorf("pairs of 3 and 4 values: %+v", got)
	}
}

func TestPlain(t *testing.T) {
	f := newFigures()
	f.add("weft", "rate_8_mps", 20)
	f.add("shm", "rate_8_mps", 10)
	f.add("weft", "size_4_us", 3)
	var out strings.Builder
	if err := plain(&out, resultOf(f, "weft", "shm")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"8 B tagged message rate, window 64, M/s  20.0  10.0   2.00\n",
		"size_4_us                                3.00     –      –\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// resultOf is a run that found these figures.
func resultOf(f *figures, providers ...string) *result {
	return &result{Format: resultFormat, Libfabric: "2.0", Machine: "M", Rounds: 3, Seconds: 0.1, Providers: providers,
		Figures: f.list(providers)}
}

func findRow(name string) row {
	for _, r := range rows {
		if r.name == name {
			return r
		}
	}
	return row{}
}
