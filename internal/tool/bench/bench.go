// Package bench is "weft bench": libfabric providers measured beside each other
// on one host. It runs the program made from tests/bench for each provider in
// turn, over many short rounds, so that what else happens on the machine hits
// all of them alike, and takes medians over the rounds.
package bench

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/internal/tool"
)

// options are the command line's.
type options struct {
	program      string        // weft_bench
	providerPath string        // folder of libweft-fi.so
	libfabric    string        // folder with lib/libfabric.so.1, empty: the system's
	providers    []string      // the first is compared with the second
	rounds       int           // of every provider
	perFigure    time.Duration // of measuring
	cores        string        // two numbers
	quick        bool          // only what fits into seconds
	netpipe      bool          // NetPIPE over Open MPI too
	out          string        // Markdown file, empty: none
	scaling      string        // SVG file; measures rates over threads instead
}

// Command is "weft bench".
func Command() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure libfabric providers beside each other",
		Long: `Measures libfabric providers beside each other on this host: each in turn over
short rounds of one run, two processes pinned to a core each, medians over the
rounds.

With --quick it prints a plain table. With --out the table replaces the section
of the same libfabric version in that file; other sections stay.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.OutOrStdout(), &o) },
	}
	f := c.Flags()
	f.StringVar(&o.program, "program", "build/bench/weft_bench", "the measuring program, a `FILE`")
	f.StringVar(&o.providerPath, "path", "build/lib", "`DIRECTORY` of libweft-fi.so")
	f.StringVar(&o.libfabric, "libfabric", "", "`DIRECTORY` of a libfabric other than the system's")
	f.StringSliceVar(&o.providers, "providers", []string{"weft", "shm", "tcp;ofi_rxm"}, "what to measure; the first of the `LIST` is compared with the second")
	f.IntVar(&o.rounds, "rounds", 15, "`NUMBER` of rounds of every provider")
	f.DurationVar(&o.perFigure, "time", 100*time.Millisecond, "measuring `TIME` per figure and round")
	f.StringVar(&o.cores, "cores", "0,1", "the `TWO` cores to pin to")
	f.BoolVar(&o.quick, "quick", false, "a few figures in a few seconds")
	f.BoolVar(&o.netpipe, "netpipe", false, "measure Open MPI with NetPIPE too")
	f.StringVar(&o.out, "out", "", "Markdown `FILE` to write the table into")
	f.StringVar(&o.scaling, "scaling", "", "measure rates over the number of threads instead, and draw them into this SVG `FILE`")
	return c
}

func run(w io.Writer, given *options) error {
	o := *given
	if o.rounds < 1 || len(o.providers) < 2 {
		return tool.Usage(fmt.Errorf("it takes a round or more and two providers or more, not %d and %d", o.rounds, len(o.providers)))
	}
	path, err := filepath.Abs(o.providerPath)
	if err != nil {
		return fmt.Errorf("provider path: %w", err)
	}
	o.providerPath = path

	if o.scaling != "" {
		return measureScaling(w, o)
	}
	found := newFigures()
	if err := measure(o, found); err != nil {
		return err
	}
	var mpi *figures
	if o.netpipe {
		mpi = newFigures()
		measureNetPIPE(o, mpi)
	}
	if o.quick && o.out == "" {
		return plain(w, o, found)
	}
	text := section(o, found, mpi)
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if o.out == "" {
		return nil
	}
	return replaceSection(o.out, libraryVersion(o), text)
}
