package bench

import (
	"regexp"
	"strings"
	"testing"
)

// TestTokenSection: a row for each figure on one host and over UDP, judged by what was measured in turn, and a word on
// what no machine had.
func TestTokenSection(t *testing.T) {
	f := newFigures()
	for _, round := range []float64{1, 2, 3} {
		f.add("weft", "token_bytes", 156)
		f.add("weft", "list_strides_kib", 4+round/10)
		f.add("weft", "list_4096_mbps", 1000*round)
		f.add("weft", "list_whole_4096_mbps", 2000*round)
		f.add("weft", "list_msg_4096_mbps", 250*round)
		f.add("weft", "alone_list_read_1048576_ns", 103*round)
		f.add("weft", "alone_read_1048576_ns", 100*round)
		f.add("weft", "udp_list_16384_mbps", 90*round)
		f.add("weft", "udp_list_whole_16384_mbps", 100*round)
		f.add("weft", "udp_alone_list_8_ns", 100*round)
		f.add("weft", "udp_alone_write_8_ns", 100*round)
	}
	got := tokenSection(resultOf(f, "shm", "weft"), f)
	for _, line := range []string{
		"| token of a region, bytes | 156 (156–156) | 156 | <= 512 | yes |\n",
		"| memory of a list of 10^6 elements in strides, KiB | 4.20 (4.15–4.25) | 4.20 | <= 4 | no |\n",
		"| list of scattered pieces of 4 KiB, MB/s, beside one write as long | 2000 (1500–2500) |  |  |  |\n",
		"MB/s, beside fi_writemsg with 4 pieces each | 2000 (1500–2500) | 4.00 x | >= 2 x | yes |\n",
		"| list of one element of 1 MiB beside fi_read, ns | 206 (154–258) | 1.03 x | <= 1.03 x | yes |\n",
		"| the same, 16 KiB | 180 (135–225) | 0.90 x | >= 0.95 x | no |\n",
		"| list of one element of 8 B over UDP beside fi_write, ns | 200 (150–250) | 1.00 x | <= 1.03 x | yes |\n",
		"| GPU to GPU by mapping, two processes, 1 MiB, MB/s, beside the copy within one | – | – | >= 0.9 x | not ",
		"| the same where it is mapped already, us | – | – | <= 10 | not measured: ",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
	if strings.Contains(got, "notification") {
		t.Error("a row without a figure is shown")
	}
	for name := range f.values["weft"] {
		beside := regexp.MustCompile("whole|msg|alone_read|alone_write|copy").MatchString(name)
		if !beside && titleOf(name) == name {
			t.Errorf("%s has no title", name)
		}
	}
}

// TestTokenGPUTable: a GPU's figures are judged beside copies and messages; of those that there are not the reason and
// the day are given.
func TestTokenGPUTable(t *testing.T) {
	f := newFigures()
	f.add("weft", "gpu_gpu_16777216_mbps", 90)
	f.add("weft", "gpu_gpu_copy_16777216_mbps", 100)
	f.add("weft", tokenMessages+"gpu_gpu_16777216_mbps", 30)
	f.add("weft", "gpu_map_again_us", 9)
	var b strings.Builder
	tokenGPUTable(&b, f, "weft", t.TempDir(), "2026-11-30")
	for _, line := range []string{
		"16 MiB, MB/s, beside the copy within one | 90.0 | 0.90 x | >= 0.9 x | yes |\n",
		"| GPU to GPU by mapping, 16 MiB, MB/s, beside messages | 90.0 | 3.00 x | >= 5 x | no |\n",
		"| the same where it is mapped already, us | 9.00 | 9.00 | <= 10 | yes |\n",
		"64 KiB, MB/s, beside the copy within one | – | – | >= 0.9 x | " +
			"not measured: no GPU was at hand (2026-11-30) |\n",
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no %q in\n%s", line, b.String())
		}
	}
	f.add("weft", gpuDevices, 1)
	b.Reset()
	tokenGPUTable(&b, f, "weft", t.TempDir(), "2026-11-30")
	got := b.String()
	if strings.Contains(got, "GPU to GPU") || strings.Count(got, "| within one GPU by mapping, ") != 4 {
		t.Errorf("with one GPU:\n%s", got)
	}
	if !strings.Contains(got, "| – | – | >= 0.9 x | not measured: the test failed (2026-11-30) |\n") {
		t.Errorf("a test that did not come to its end:\n%s", got)
	}
}

// TestGPUAtHand says why there are no figures of a GPU.
func TestGPUAtHand(t *testing.T) {
	dir := t.TempDir()
	if got := gpuAtHand(dir); got != "no GPU was at hand" {
		t.Errorf("without a device: %q", got)
	}
	put(t, dir, "nvidia0", "")
	if got := gpuAtHand(dir); strings.Contains(got, "at hand") {
		t.Errorf("with a device: %q", got)
	}
}

// TestListArgs: lists of the measuring program have as many pieces as the table says, if the table is measured.
func TestListArgs(t *testing.T) {
	groups, err := chooseGroups([]string{tokenGroup})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join((&options{groups: groups}).listArgs(), " "); got != "-e 20000" {
		t.Errorf("%q", got)
	}
	if got := (&options{}).listArgs(); got != nil {
		t.Errorf("without the subject: %q", got)
	}
}
