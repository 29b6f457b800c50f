package top

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/cmd/weft/internal/watch"
	"github.com/weft-fabric/weft/internal/nic"
)

// TestNICs: the screen shows the telemetry of a made-up host, with rates from the second poll on.
func TestNICs(t *testing.T) {
	root := t.TempDir()
	put := func(path, content string) {
		t.Helper()
		file := filepath.Join(root, "class/cxi/cxi0/device", path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := &model{nics: nics{host: nic.Host{Sys: root, Dev: root}}, mode: modeNICs}
	screen := func() string { return strings.Join(m.view(120, 30), "\n") }
	at := time.Unix(1000, 0)
	m.update(&watch.Sample{Taken: at}, nil)
	if got := screen(); !strings.Contains(got, "no NIC of Slingshot") {
		t.Errorf("without one:\n%s", got)
	}
	put("properties/nid", "0x2b")
	m.update(&watch.Sample{Taken: at}, nil)
	if got := screen(); !strings.Contains(got, "cxi0  NID 0x2b  link down") || !strings.Contains(got, "no telemetry") {
		t.Errorf("without telemetry:\n%s", got)
	}
	put("telemetry/pct_retry_srb_requests", "100@1.2")
	put("telemetry/hni_rx_paused_0", "0@1.2")
	m.update(&watch.Sample{Taken: at.Add(time.Second)}, nil)
	if got := screen(); !strings.Contains(got, "pct_retry_srb_requests  100") || strings.Contains(got, "/s  ") &&
		strings.Contains(got, "hni_rx") {
		t.Errorf("the first values:\n%s", got)
	}
	put("telemetry/pct_retry_srb_requests", "400@2.2")
	m.update(&watch.Sample{Taken: at.Add(3 * time.Second)}, nil)
	if got := screen(); !strings.Contains(got, "150/s") {
		t.Errorf("300 more in two seconds:\n%s", got)
	}
	if lines := strings.Join(m.nics.lines(text.Style{}, true), "\n"); !strings.Contains(lines, "hni_rx_paused_0") {
		t.Errorf("with those that are 0:\n%s", lines)
	}
	if j := toJSON(m.sample, nil, m.nics.host); len(j.Slingshot) != 1 ||
		j.Slingshot[0].Telemetry["pct_retry_srb_requests"] != 400 {
		t.Errorf("JSON: %+v", j.Slingshot)
	}
	if m.key("esc"); m.mode != modeList {
		t.Error("Esc does not lead back")
	}
	if m.key("n"); m.mode != modeNICs {
		t.Error("n does not show NICs")
	}
}
