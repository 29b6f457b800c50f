// Package export is "weft export": the counters of the processes that use weft
// as Prometheus metrics, on a local address that the user names.
package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cmd/weft/internal/tool"
	"github.com/weft-fabric/weft/cmd/weft/internal/top"
	"github.com/weft-fabric/weft/cmd/weft/internal/watch"
	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/internal/stats"
)

// Command is "weft export".
func Command() *cobra.Command {
	var listen, dir string
	var once bool
	c := &cobra.Command{
		Use:   "export --listen ADDRESS",
		Short: "Serve the counters as Prometheus metrics on a local address",
		Long: `Serves the counters that weft top shows as Prometheus metrics, at /metrics of a
local address: 127.0.0.1:9464, [::1]:9464, or unix:/run/weft.sock, which only
its owner can open. There is no default, and addresses that other hosts reach
are refused: the names of users' commands are in the metrics. With --once the
metrics are written to standard output instead.

The metric weft_process_info has the batch system's job, the rank, and the pod,
its namespace and container of each process as labels, as far as the process's
environment and control groups say and may be read: those of one's own
processes, for root all. A query joins them by the label pid.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := top.Directory(dir)
			if err != nil {
				return err
			}
			reg, err := registry(dir)
			if err != nil {
				return err
			}
			if once {
				return write(cmd.OutOrStdout(), reg)
			}
			if listen == "" {
				return tool.Usage(errors.New("export needs --listen ADDRESS, such as 127.0.0.1:9464, or --once"))
			}
			ctx := cmd.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM)
			defer stop()
			return serve(ctx, listen, reg, cmd.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVarP(&listen, "listen", "l", "", "local `ADDRESS` to serve on: HOST:PORT or unix:PATH")
	f.StringVar(&dir, "dir", "", "`DIRECTORY` of the shared segments (default FI_WEFT_SHM_DIR)")
	f.BoolVar(&once, "once", false, "write the metrics once and end")
	return c
}

// Labels of the three levels.
var (
	processLabels  = []string{"pid", "command", "user"}
	endpointLabels = append(processLabels[:3:3], "endpoint")
	peerLabels     = append(endpointLabels[:4:4], "peer")
)

// collector makes metrics of a sample of all pages.
type collector struct {
	mu      sync.Mutex // one sample at a time
	watcher *watch.Watcher
	known   map[process]found  // the processes of the last sample, under mu
	pidns   uint64             // inode of our pid namespace
	descs   []*prometheus.Desc // by index in the table
	info    *prometheus.Desc
	bad     *prometheus.Desc
}

// found is what is found once for a process.
type found struct {
	pid string // the label
	job job
}

// process is what no two processes have in common.
type process struct {
	pid          uint32
	start, pidns uint64
}

func registry(dir string) (*prometheus.Registry, error) {
	w, err := watch.New(dir, os.Geteuid() == 0)
	if err != nil {
		return nil, err
	}
	host, err := proc.This()
	if err != nil {
		return nil, fmt.Errorf("this host: %w", err)
	}
	c := &collector{
		watcher: w,
		pidns:   host.PIDNS,
		info: prometheus.NewDesc("weft_process_info", "Processes that use weft: its version in each, and the batch "+
			"job and the pod that each is of.",
			append(append(processLabels[:3:3], "version"), jobLabels...), nil),
		bad: prometheus.NewDesc("weft_pages_unreadable", "Pages of counters that cannot be read.", nil, nil),
	}
	for _, t := range stats.Table() {
		labels := map[stats.Area][]string{stats.Process: processLabels, stats.Rx: endpointLabels,
			stats.Peer: peerLabels}[t.Level()]
		c.descs = append(c.descs, prometheus.NewDesc(t.Metric(), t.Help+" ("+t.Unit+")", labels, nil))
	}
	reg := prometheus.NewRegistry()
	return reg, reg.Register(c)
}

// Describe sends what there can be.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range append(c.descs, c.info, c.bad) {
		ch <- d
	}
}

// Collect reads all pages and sends what they say.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sample, err := c.watcher.Read()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.bad, err)
		return
	}
	ch <- prometheus.MustNewConstMetric(c.bad, prometheus.GaugeValue, float64(len(sample.Problems)))
	known := map[process]found{}
	for i := range sample.Processes {
		p := &sample.Processes[i]
		if p.Ended || p.Idle {
			continue
		}
		key := process{p.PID, p.Start, p.PIDNS}
		known[key] = c.find(key)
		labels := []string{known[key].pid, p.Command, p.User}
		ch <- prometheus.MustNewConstMetric(c.info, prometheus.GaugeValue, 1, append(append(labels[:3:3], p.Weft),
			known[key].job.labels()...)...)
		if p.Strange == "" {
			c.counters(ch, p, labels)
		}
	}
	c.known = known
}

// find gives the number of a process, and its job. A process of another pid namespace has the
// number that it has here; where it is not seen here, its own and the namespace's: others have the same.
func (c *collector) find(p process) found {
	if f, known := c.known[p]; known {
		return f
	}
	pid := p.pid
	if p.pidns != c.pidns {
		if pid = pidHere("/proc", p.pidns, p.pid); pid == 0 {
			return found{pid: fmt.Sprintf("%d@%d", p.pid, p.pidns)}
		}
	}
	return found{pid: strconv.FormatUint(uint64(pid), 10), job: jobOf("/proc", pid)}
}

func (c *collector) counters(ch chan<- prometheus.Metric, p *watch.Process, labels []string) {
	c.send(ch, stats.Process, p.Values, labels)
	seen := map[string]bool{} // two of one name would spoil all
	for _, e := range p.Endpoints {
		if seen[e.Name] {
			continue
		}
		seen[e.Name] = true
		at := append(labels[:3:3], e.Name)
		c.send(ch, stats.Rx, e.Values, at)
		for _, peer := range e.Peers {
			if key := e.Name + " " + peer.Name; !seen[key] {
				seen[key] = true
				c.send(ch, stats.Peer, peer.Values, append(at[:4:4], peer.Name))
			}
		}
	}
}

// send sends the counters of one level.
func (c *collector) send(ch chan<- prometheus.Metric, level stats.Area, values []uint64, labels []string) {
	for i, t := range stats.Table() {
		if t.Level() != level {
			continue
		}
		kind := prometheus.GaugeValue
		if t.Kind == stats.Sum {
			kind = prometheus.CounterValue
		}
		ch <- prometheus.MustNewConstMetric(c.descs[i], kind, float64(values[i]), labels...)
	}
}

// write writes the metrics as text.
func write(w io.Writer, reg *prometheus.Registry) error {
	families, err := reg.Gather()
	if err != nil {
		return fmt.Errorf("gather: %w", err)
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(w, f); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// open listens on a local address. Others are errors of usage.
func open(address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		old := unix.Umask(0o177)
		defer unix.Umask(old)
		l, err := net.Listen("unix", path)
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		return l, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, tool.Usage(fmt.Errorf("--listen: %w", err))
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.IsLoopback() {
		return nil, tool.Usage(fmt.Errorf("--listen %s: %q is not a local address; use 127.0.0.1, [::1] or unix:PATH",
			address, host))
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// serve answers until the context ends.
func serve(ctx context.Context, address string, reg *prometheus.Registry, log io.Writer) error {
	l, err := open(address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: 4,
	}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "weft export: the metrics are at /metrics\n") // the client may be gone
	})
	s := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
	}
	fmt.Fprintf(log, "weft export: serving %s\n", location(l))
	go func() {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = s.Shutdown(end) // what still runs then is cut off
	}()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// location is where l listens, as a browser or curl takes it.
func location(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	return "http://" + l.Addr().String() + "/metrics"
}
