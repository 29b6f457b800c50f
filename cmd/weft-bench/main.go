// Weft-bench measures libfabric providers beside each other on one host: it
// runs the program made from tests/bench (build/bench/weft_bench) for each
// provider in turn, over many short rounds, so that what else happens on the
// machine hits all of them alike, and takes medians over the rounds.
//
//	weft-bench [-quick] [-providers weft,shm,tcp] [-rounds 15] [-netpipe] [-out docs/benchmarks.md]
//	weft-bench -scaling docs/plots/scaling.svg [-rounds 15] [-out docs/benchmarks.md]
//
// With -quick it prints a plain table. With -out the table replaces the section of the same libfabric version in
// that file; other sections stay.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
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

func parse() options {
	var o options
	var providers string
	flag.StringVar(&o.program, "program", "build/bench/weft_bench", "the measuring program")
	flag.StringVar(&o.providerPath, "path", "build/lib", "folder of libweft-fi.so")
	flag.StringVar(&o.libfabric, "libfabric", "", "folder of a libfabric other than the system's")
	flag.StringVar(&providers, "providers", "weft,shm,tcp;ofi_rxm", "what to measure; the first is compared with the second")
	flag.IntVar(&o.rounds, "rounds", 15, "rounds of every provider")
	flag.DurationVar(&o.perFigure, "time", 100*time.Millisecond, "measuring time per figure and round")
	flag.StringVar(&o.cores, "cores", "0,1", "the two cores to pin to")
	flag.BoolVar(&o.quick, "quick", false, "a few figures in a few seconds")
	flag.BoolVar(&o.netpipe, "netpipe", false, "measure Open MPI with NetPIPE too")
	flag.StringVar(&o.out, "out", "", "Markdown file to write the table into")
	flag.StringVar(&o.scaling, "scaling", "", "measure rates over the number of threads instead, and draw them into this SVG file")
	flag.Parse()
	o.providers = strings.Split(providers, ",")
	if flag.NArg() > 0 || o.rounds < 1 || len(o.providers) < 2 {
		flag.Usage()
		os.Exit(2)
	}
	return o
}

func run() error {
	o := parse()
	path, err := filepath.Abs(o.providerPath)
	if err != nil {
		return fmt.Errorf("provider path: %w", err)
	}
	o.providerPath = path

	if o.scaling != "" {
		return measureScaling(o)
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
		return plain(os.Stdout, o, found)
	}
	text := section(o, found, mpi)
	fmt.Print(text)
	if o.out == "" {
		return nil
	}
	return replaceSection(o.out, libraryVersion(o), text)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "weft-bench:", err)
		os.Exit(1)
	}
}
