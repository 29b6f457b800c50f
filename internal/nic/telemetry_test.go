package nic

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/internal/log"
)

// TestMeter: the log says by how much each counter that was asked for has risen, and which there is not.
func TestMeter(t *testing.T) {
	sys := t.TempDir()
	dir := filepath.Join(sys, "class/cxi/cxi0/device/telemetry")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	set := func(name, value string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	log.UseWriter(&out, func(name string) (string, bool) { return "warn", name == "FI_LOG_LEVEL" })
	t.Cleanup(func() { log.UseWriter(os.Stderr, os.LookupEnv) })
	set("pct_spt_timeouts", "17@1700000000.5\n")
	set("hni_discard_cntr_0", "4@1700000000.5\n")
	set("lpe_success_cntr", "1000@1700000000.5\n")
	var m Meter
	m.Begin(Host{Sys: sys}, "cxi0", "lpe_success_cntr,nothing_cntr,,pct_spt_timeouts,lpe_success_cntr")
	text := out.String()
	if strings.Count(text, "\n") != 1 || !strings.Contains(text, `no telemetry counter "nothing_cntr"`) {
		t.Errorf("at the beginning: %s", text)
	}
	out.Reset()
	set("lpe_success_cntr", "1234567@1700000001.5\n")
	set("hni_discard_cntr_0", "5@1700000001.5\n")
	m.End()
	want := []string{"cxi0: lpe_success_cntr has risen by 1233567", "cxi0: pct_spt_timeouts has risen by 0"}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("at the end: %q", lines)
	}
	for k := range want {
		if !strings.Contains(lines[k], want[k]) {
			t.Errorf("line %d: %q, want %q in it", k, lines[k], want[k])
		}
	}
	out.Reset()
	if m.End(); out.Len() != 0 {
		t.Errorf("a second end says %s", out.String())
	}
	m.Begin(Host{Sys: sys}, "cxi0", "")
	if m.End(); out.Len() != 0 {
		t.Errorf("nothing was asked for, and the log says %s", out.String())
	}
}
