package root

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weft-fabric/weft/cmd/weft/internal/tooltest"
	"github.com/weft-fabric/weft/internal/stats"
)

func parseMetrics(t *testing.T, text io.Reader) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(text)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// sum adds a counter up over endpoints.
func sum(f *dto.MetricFamily) (n float64) {
	for _, m := range f.GetMetric() {
		n += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return n
}

// serveExport starts weft export and returns what it says it serves, and a
// function that ends it.
func serveExport(t *testing.T, env, address string) (location string, end func()) {
	t.Helper()
	cmd := tooltest.Weft([]string{env}, "export", "--listen", address)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(pipe).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "weft export: serving ")), func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("export ends with %v", err)
		}
	}
}

func get(t *testing.T, c *http.Client, url string) (string, *http.Response) {
	t.Helper()
	r, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), r
}

func TestExport(t *testing.T) {
	dir, env := shm(t)
	load := tooltest.Load(t, dir)
	url, end := serveExport(t, env, "127.0.0.1:0")
	defer end()
	c := &http.Client{Timeout: time.Minute}
	text, r := get(t, c, url)
	if r.StatusCode != http.StatusOK {
		t.Fatal(r.Status, text)
	}
	first := parseMetrics(t, strings.NewReader(text))
	for _, counter := range stats.Table() {
		if f := first[counter.Metric()]; f == nil { // the load has peers, too
			t.Errorf("no metric %s", counter.Metric())
		} else if f != nil && (f.GetType() == dto.MetricType_COUNTER) != (counter.Kind == stats.Sum) {
			t.Errorf("%s is a %s", counter.Metric(), f.GetType())
		}
	}
	messages := sum(first["weft_tx_inline_total"])
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // until the load has had its turn
		text, _ = get(t, c, url)
		now := sum(parseMetrics(t, strings.NewReader(text))["weft_tx_inline_total"])
		if messages >= 10 && now > messages {
			break
		}
		if messages < 10 || now < messages || time.Now().After(end) {
			t.Fatalf("%g, then %g messages", messages, now)
		}
	}
	if text, _ := get(t, c, strings.TrimSuffix(url, "metrics")); !strings.Contains(text, "/metrics") {
		t.Error(text)
	}
	if _, r := get(t, c, strings.TrimSuffix(url, "metrics")+"etc/passwd"); r.StatusCode != http.StatusNotFound {
		t.Error(r.Status)
	}
	if err := load.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = load.Process.Wait()
	text, _ = get(t, c, url)
	if f := parseMetrics(t, strings.NewReader(text)); f["weft_process_info"] != nil {
		t.Errorf("a dead process is served: %v", f["weft_process_info"])
	}
	if err := os.Rename(dir, dir+".gone"); err != nil {
		t.Fatal(err)
	}
	text, r = get(t, c, url)
	if err := os.Rename(dir+".gone", dir); err != nil {
		t.Fatal(err)
	}
	if r.StatusCode != http.StatusInternalServerError || !strings.Contains(text, "no such file") {
		t.Errorf("without the directory: %s %s", r.Status, text)
	}
	sweep(t, env)
}

func TestExportUnix(t *testing.T) {
	_, env := shm(t)
	path := t.TempDir() + "/weft.sock"
	_, end := serveExport(t, env, "unix:"+path)
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", st, err)
	}
	c := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", path)
	}}}
	text, _ := get(t, c, "http://weft/metrics")
	if !strings.Contains(text, "weft_pages_unreadable 0") {
		t.Error(text)
	}
	c.CloseIdleConnections()
	if r := run(t, []string{env}, "export", "--listen", "unix:"+path); r.Status != 1 ||
		!strings.Contains(r.Err, "address already in use") {
		t.Errorf("%+v", r)
	}
	end()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error("the socket is left", err)
	}
}
