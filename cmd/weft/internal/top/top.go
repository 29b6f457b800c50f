// Package top is "weft top": a live view of the processes that use weft, from
// their pages of counters. Nothing is stopped or loaded into them.
package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cmd/weft/internal/fabric"
	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/cmd/weft/internal/tool"
	"github.com/weft-fabric/weft/cmd/weft/internal/watch"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/nic"
)

// options are the command line's.
type options struct {
	dir      string
	interval time.Duration
	sort     string
	reverse  bool
	filter   string
	once     bool
	peers    bool
	json     bool
	dump     int // process id, 0: none
	events   int // likewise
}

// Command is "weft top".
func Command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "top",
		Short: "Show live what the processes that use weft are doing",
		Long: `Shows the processes of this user (of all users, for root) that use weft: message
rates, bytes, peers, depths of queues, refused posts, errors. The counters come
from a page of shared memory that each process keeps; no process is stopped and
nothing is loaded into it.

Keys: q quit, arrows select, Enter all counters of a process, d what weft's own
threads in it are at, n telemetry counters of the host's NICs of Slingshot, s and S
sort by the next or previous column, r reverse, / filter, p pause, h help.

Where the terminal is too narrow, columns go that are 0 for every process.

Written to a file or pipe, or with --once, the table is written once, with rates
over one interval; with --json everything that is known, with --peers also a line for each peer: round
trips, windows, and how many elements and bytes of lists of memory under tokens took
each way to it.

Processes with automatic progress have threads of weft's own (or with
FI_WEFT_SERVICE=yes a service thread only), which answer this user: --dump says
what they are at, --events when each progress thread was active the last few
hundred times, as JSON that Perfetto and chrome://tracing show.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), cmd.OutOrStdout(), &o) },
	}
	f := c.Flags()
	f.StringVar(&o.dir, "dir", "", "`DIRECTORY` of the shared segments (default FI_WEFT_SHM_DIR)")
	f.DurationVarP(&o.interval, "interval", "i", time.Second, "`TIME` between two samples")
	f.StringVarP(&o.sort, "sort", "s", "tx", "`COLUMN` to sort by: "+keys())
	f.BoolVarP(&o.reverse, "reverse", "r", false, "sort the other way round")
	f.StringVarP(&o.filter, "filter", "f", "", "only processes whose id, user, command or address has this `TEXT`")
	f.BoolVar(&o.once, "once", false, "write the table once")
	f.BoolVar(&o.peers, "peers", false, "write the peers of each endpoint too, with --once")
	f.BoolVar(&o.json, "json", false, "write JSON once")
	f.IntVar(&o.dump, "dump", 0, "write what weft's threads in the process `PID` are at")
	f.IntVar(&o.events, "events", 0, "write when the progress threads of the process `PID` were active")
	_ = c.RegisterFlagCompletionFunc("sort", func(*cobra.Command, []string, string) ([]string,
		cobra.ShellCompDirective) {
		return strings.Split(keys(), ", "), cobra.ShellCompDirectiveNoFileComp
	})
	return c
}

// shmDir is the variable that says where the pages are.
const shmDir = "FI_WEFT_SHM_DIR"

// Directory is where the pages are: what the user says, or what processes with the same environment and the libfabric
// that the loader takes use. Other variables are not read.
func Directory(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	return directory(fabric.OwnSettings(fabric.Roots(), os.LookupEnv).Lookup)
}

// directory is what a variable says.
func directory(lookup func(string) (string, bool)) (string, error) {
	cfg, err := config.Load(func(name string) (string, bool) {
		if name != shmDir {
			return "", false
		}
		return lookup(name)
	})
	if err != nil {
		return "", err
	}
	return cfg.SHMDir, nil
}

func run(ctx context.Context, w io.Writer, o *options) error {
	switch {
	case o.dump < 0 || o.events < 0 || o.dump != 0 && o.events != 0:
		return tool.Usage(errors.New("--dump and --events take the id of one process, and exclude each other"))
	case o.dump != 0:
		return dump(w, o.dump)
	case o.events != 0:
		return events(w, o.events)
	}
	by, ok := columnOf(o.sort)
	if !ok {
		return tool.Usage(fmt.Errorf("no column %q; there are %s", o.sort, keys()))
	}
	if o.interval < 50*time.Millisecond || o.interval > time.Hour {
		return tool.Usage(fmt.Errorf("interval %v is not in 50ms to 1h", o.interval))
	}
	dir, err := Directory(o.dir)
	if err != nil {
		return err
	}
	watcher, err := watch.New(dir, os.Geteuid() == 0)
	if err != nil {
		return err
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	out, isFile := w.(*os.File)
	if o.once || o.json || !isFile || !text.IsTerminal(out) || !text.IsTerminal(os.Stdin) {
		return once(ctx, w, watcher, o, by)
	}
	return live(ctx, os.Stdin, out, watcher, o, by)
}

// once writes the table or JSON after two samples.
func once(ctx context.Context, w io.Writer, watcher *watch.Watcher, o *options, by int) error {
	if _, err := watcher.Read(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return tool.Exit{Code: 130}
	case <-time.After(o.interval):
	}
	sample, err := watcher.Read()
	if err != nil {
		return err
	}
	list := arrange(sample.Processes, by, o.reverse, o.filter)
	if o.json {
		return text.JSON(w, toJSON(sample, list, nic.ThisHost()))
	}
	lines := table(list, text.StyleFor(w), by, text.Columns(w))
	if len(list) == 0 {
		lines = append(lines, "no process uses weft here")
	}
	if o.peers {
		lines = append(lines, allPeers(list, text.StyleFor(w))...)
	}
	for _, p := range sample.Problems {
		lines = append(lines, "cannot be read: "+p)
	}
	if _, err := io.WriteString(w, strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
