// Package trace is "weft trace": how long libfabric's calls take in a running
// process, and operations from their post to their completion. The process needs
// no preparation: probes (uprobes, uretprobes) are set on the functions of the
// library that it has mapped, and programs of eBPF count in the kernel.
//
// Only functions of C are probed. A probe on a return puts an address of the
// kernel's onto the stack, which Go's runtime would not know when it walks its
// stacks; it never walks those of C.
package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/cmd/weft/internal/tool"
)

// options are the command line's.
type options struct {
	duration time.Duration
	calls    []string
	folded   bool
	json     bool
}

// Command is "weft trace".
func Command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "trace PID",
		Short: "Show how long libfabric's calls take in a running process",
		Long: `Shows histograms of how long libfabric's calls take in a running process, and
its operations from their post to the read of their completion. The process need
not have been started for it. It is traced until Ctrl-C, for the time of
--duration, or until it ends; on a terminal the table is shown meanwhile.

The kernel counts, by eBPF programs on probes in the library that the process has
mapped. They go when weft trace ends, however it ends. Until then each traced call
takes one to three microseconds longer, about one of which is in the times shown: go
by tails and by differences, and name few calls with --call. An operation is recognised
by its context; two that have the same one at the same time are not measured.

It needs CAP_BPF and CAP_PERFMON, or root, and Linux 5.5 with uprobes. Programs in Go
that import weft have no functions to trace.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pid, err := strconv.Atoi(args[0])
			if err != nil || pid <= 0 {
				return tool.Usage(fmt.Errorf("%q is no process id", args[0]))
			}
			return run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), pid, &o)
		},
	}
	f := c.Flags()
	f.DurationVarP(&o.duration, "duration", "d", 0, "trace for this `TIME`, until Ctrl-C if 0")
	f.StringSliceVar(&o.calls, "call", nil, "trace only these calls, a `LIST` of names such as fi_tsend")
	f.BoolVar(&o.folded, "folded", false, "write thread, call and nanoseconds as programs for flame graphs read them")
	f.BoolVar(&o.json, "json", false, "write JSON")
	return c
}

func run(ctx context.Context, w, progress io.Writer, pid int, o *options) error {
	if o.folded && o.json {
		return tool.Usage(errors.New("--folded and --json exclude each other"))
	}
	if o.duration < 0 {
		return tool.Usage(fmt.Errorf("duration %v is negative", o.duration))
	}
	ended, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	defer unix.Close(ended)
	caps, err := effective()
	if err != nil {
		return err
	}
	if err := missing("/", caps); err != nil {
		return fmt.Errorf("cannot trace here:\n%w", err)
	}
	lib, err := findLibrary(pid)
	if err != nil {
		return err
	}
	if lib.points, err = choose(lib.points, o.calls); err != nil {
		return tool.Usage(err)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	p, err := attach(lib, pid, o.folded)
	if err != nil {
		return explain(err)
	}
	defer p.close()
	return follow(ctx, w, progress, &session{p, pid, command(pid), time.Now(), ended}, o)
}

// choose returns the points with these names, all if there are none.
func choose(points []point, names []string) ([]point, error) {
	if len(names) == 0 {
		return points, nil
	}
	var chosen []point
	for _, name := range names {
		before := len(chosen)
		for i := range points {
			if points[i].name == name {
				chosen = append(chosen, points[i])
			}
		}
		if len(chosen) == before {
			var all []string
			for i := range points {
				all = append(all, points[i].name)
			}
			return nil, fmt.Errorf("no call %q; there are %s", name, strings.Join(all, ", "))
		}
	}
	return chosen, nil
}

// command is the name of a process.
func command(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "?"
	}
	return strings.TrimSpace(string(b))
}

// session is a trace that runs.
type session struct {
	*probe
	pid     int
	command string
	began   time.Time
	ended   int // readable when the process has ended
}

// refresh is the time between two screens.
const refresh = time.Second

// follow waits until the trace is to end, and writes what it found.
func follow(ctx context.Context, w, progress io.Writer, s *session, o *options) error {
	live := !o.folded && !o.json && text.IsTerminal(w)
	if !live {
		fmt.Fprintf(progress, "tracing process %d (%s); Ctrl-C ends\n", s.pid, s.command)
	}
	limit := make(<-chan time.Time)
	if o.duration > 0 {
		limit = time.After(o.duration)
	}
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	gone := waitEnd(s.ended)
	for {
		select {
		case <-ctx.Done():
		case <-limit:
		case <-gone:
			fmt.Fprintf(progress, "process %d has ended\n", s.pid)
		case <-tick.C:
			if live {
				if err := s.screen(w); err != nil {
					return err
				}
			}
			continue
		}
		return s.write(w, o, live)
	}
}

// waitEnd closes its result when the process has ended.
func waitEnd(pidfd int) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, -1)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if n > 0 {
				close(gone)
			}
			return
		}
	}()
	return gone
}

func (s *session) take() (*sample, error) {
	l, err := s.read()
	if err != nil {
		return nil, err
	}
	l.pid, l.command, l.taken = s.pid, s.command, time.Since(s.began)
	return l, nil
}
