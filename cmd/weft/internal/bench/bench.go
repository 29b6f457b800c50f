// Package bench is "weft bench": libfabric providers measured beside each other
// on one host. It runs the program made from tests/bench for each provider in
// turn, over many short rounds, so that what else happens on the machine hits
// all of them alike, and takes medians over the rounds.
package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/cmd/weft/internal/tool"
	"github.com/weft-fabric/weft/internal/version"
)

// options are the command line's.
type options struct {
	program      string        // weft_bench
	providerPath string        // folder of libweft-fi.so, empty: libfabric knows
	libfabric    string        // folder with lib/libfabric.so.1, empty: the system's
	mpich        string        // folder of an MPICH built for libfabric, empty: none
	mpichUCX     string        // and of one built for UCX
	providers    []string      // as given; the first is compared with the second
	contenders   []contender   // what they name
	rounds       int           // of every provider
	perFigure    time.Duration // of measuring
	cores        string        // as given
	cpus         [2]int        // as chosen
	groups       []group
	plan         netPlan
	exchanges    allToAllPlan
	jobs         mpiJobsPlan
	quick        bool
	json         bool
	save         string // file for the result as JSON
	load         string // file with one, instead of measuring
	compare      string // file with one
	out          string // Markdown file
	plots        string // folder
}

// Command is "weft bench".
func Command() *cobra.Command {
	o := options{plan: netRuns, jobs: mpiJobsRuns}
	c := &cobra.Command{
		Use:   "bench [SUBJECT]...",
		Short: "Measure libfabric providers beside each other",
		Long: `Measures libfabric providers beside each other on this host: each in turn over
short rounds of one run, two processes pinned to a core each. Figures are medians
over the rounds, with quartiles. The subjects net, alltoall and mpi-alltoall are measured between
network namespaces that the command makes and removes, which needs root; they have
their own rounds, and net its own providers. It warns of what makes them doubtful: load, time
that a hypervisor took, changing frequencies. With variables in front of its name a
provider is measured with them: --providers "weft,FI_WEFT_USE_CMA=no weft", or
"weft,FI_PROVIDER_PATH=/old/lib weft" for another build; "weft,FI_WEFT_CC=aimd weft"
has the subject alltoall measure two congestion controls and compare with the better. The subject mpi measures
MPI libraries over each weft that is named, and over what they have themselves.

Subjects, all if none is named:

` + groupHelp() + `

--save keeps a run, --compare shows what has changed since a kept one and whether
that is more than chance.`,
		Args: func(_ *cobra.Command, args []string) (err error) {
			o.groups, err = chooseGroups(args)
			return err
		},
		ValidArgs: strings.Split(groupNames(), ", "),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.quick && len(args) == 0 {
				o.groups, _ = chooseGroups(quickGroups) // they exist
			}
			return execute(cmd.OutOrStdout(), cmd.ErrOrStderr(), &o)
		},
	}
	f := c.Flags()
	f.StringSliceVar(&o.providers, "providers", []string{"weft", "shm", "tcp;ofi_rxm"}, "what to measure; the first "+
		"of the `LIST` is compared with the second")
	f.IntVar(&o.rounds, "rounds", 15, "`NUMBER` of rounds of every provider")
	f.DurationVar(&o.perFigure, "time", 100*time.Millisecond, "measuring `TIME` per figure and round")
	f.BoolVar(&o.quick, "quick", false, "a few figures in a few seconds, unless subjects are named")
	f.StringVar(&o.cores, "cores", "", "the `TWO` processors to pin to, as in 0,1 (default: the first two of "+
		"different cores)")
	f.BoolVar(&o.json, "json", false, "write JSON")
	f.StringVar(&o.save, "save", "", "keep the figures in this `FILE`")
	f.StringVar(&o.compare, "compare", "", "compare with the figures kept in this `FILE`")
	f.StringVar(&o.load, "load", "", "take the figures kept in this `FILE` instead of measuring")
	f.StringVar(&o.plots, "plots", "", "draw SVG plots into this `DIRECTORY`")
	f.StringVar(&o.out, "out", "", "Markdown `FILE` to write tables into; they replace those of the same libfabric "+
		"version")
	f.StringVar(&o.program, "program", "", "the measuring program, a `FILE` (default: that of this checkout or "+
		"installation)")
	f.StringVar(&o.providerPath, "path", "", "`DIRECTORY` of libweft-fi.so (default: that of this checkout, or "+
		"libfabric's)")
	f.StringSliceVar(&o.exchanges.networks, "networks", nil,
		"networks of the subject alltoall, a `LIST` of "+labNetworkNames()+" (default: all)")
	f.StringSliceVar(&o.exchanges.slices, "slices", nil,
		"lengths of slices of the subject alltoall, a `LIST` such as 256k,1m (default: all of each network)")
	f.StringSliceVar(&o.exchanges.policies, "policies", []string{"balanced"},
		"policies that the subject alltoall measures beside the default, a `LIST` of "+policyNames())
	f.IntVar(&o.exchanges.rounds, "alltoall-rounds", 0,
		"`NUMBER` of rounds of each network of the subject alltoall (default: 15 of most)")
	f.StringVar(&o.mpich, "mpich", "", "`DIRECTORY` of an MPICH built for libfabric (ch4:ofi), which the subject mpi "+
		"measures as well")
	f.StringVar(&o.mpichUCX, "mpich-ucx", "", "`DIRECTORY` of an MPICH built for UCX (Debian's: /usr)")
	f.StringVar(&o.libfabric, "libfabric", "", "`DIRECTORY` of a libfabric other than the system's")
	return c
}

func execute(w, errs io.Writer, given *options) error {
	o := *given
	switch {
	case o.rounds < 1 || o.rounds > 10000:
		return tool.Usage(fmt.Errorf("%d rounds are not 1 to 10000", o.rounds))
	case o.perFigure < time.Millisecond || o.perFigure > 10*time.Second:
		return tool.Usage(fmt.Errorf("time %v is not in 1ms to 10s", o.perFigure))
	case o.json && o.compare != "":
		return tool.Usage(errors.New("--json and --compare exclude each other"))
	}
	var old *result
	var err error
	if o.contenders, err = parseContenders(o.providers); err != nil {
		return tool.Usage(err)
	}
	if o.compare != "" { // before minutes of measuring
		if old, err = load(o.compare); err != nil {
			return err
		}
	}
	res, err := obtain(&o, errs)
	if err != nil {
		return err
	}
	if err := o.keep(res); err != nil {
		return err
	}
	switch {
	case o.json:
		return text.JSON(w, res)
	case old != nil:
		_, err = io.WriteString(w, strings.Join(compareResults(text.StyleFor(w), old, res), "\n")+"\n")
	default:
		err = plain(w, res)
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// obtain measures, or loads what was measured.
func obtain(o *options, errs io.Writer) (*result, error) {
	if o.load != "" {
		return load(o.load)
	}
	if o.has(netGroup) || o.has(allToAllGroup) || o.has(mpiJobsGroup) { // before minutes of measuring
		if err := labPossible(); err != nil {
			return nil, err
		}
		if _, err := o.exchanges.chosen(); err != nil {
			return nil, tool.Usage(err)
		}
	}
	self, _ := os.Executable() // empty: not searched beside it
	var err error
	if o.program, err = findProgram(o.program, self); err != nil {
		return nil, err
	}
	if o.providerPath, err = findProvider(o.providerPath); err != nil {
		return nil, err
	}
	libfabric, err := o.libraryVersion()
	if err != nil {
		return nil, err
	}
	if o.cpus, err = chooseCores(o.cores, "/sys"); err != nil {
		return nil, tool.Usage(err)
	}
	r := &run{o, newReporter(errs, o.steps()), newFigures(), watchNoise("/", o.cpus)}
	if err := r.measure(); err != nil {
		return nil, err
	}
	providers := r.providersFound()
	res := &result{
		Format: resultFormat, Taken: time.Now().UTC().Truncate(time.Second), Weft: version.String(),
		Libfabric: libfabric,
		Machine:   machine(), Cores: o.cpus, Rounds: o.rounds, Seconds: o.perFigure.Seconds(), Providers: providers,
		Noise: append(r.noise.warnings(), r.found.odd...), Figures: r.found.list(providers),
	}
	for _, n := range res.Noise {
		r.reporter.note("the figures are doubtful: %s", n)
	}
	return res, nil
}

// providersFound are those that were asked for, and those that other programs
// and the network were measured over, as far as they have a figure.
func (r *run) providersFound() []string {
	providers := names(r.contenders)
	for _, p := range slices.Concat(r.otherNames(), r.plan.providers) {
		if !slices.Contains(providers, p) {
			providers = append(providers, p)
		}
	}
	return slices.DeleteFunc(providers, func(p string) bool { return len(r.found.values[p]) == 0 })
}

// keep writes what the options ask to be kept.
func (o *options) keep(res *result) error {
	if o.save != "" {
		b, err := json.MarshalIndent(res, "", " ")
		if err != nil {
			return fmt.Errorf("json: %w", err)
		}
		if err := tool.ReplaceFile(o.save, append(b, '\n')); err != nil {
			return fmt.Errorf("keep the figures: %w", err)
		}
	}
	drawn := map[string]string{}
	if o.plots != "" {
		var err error
		if drawn, err = drawPlots(o.plots, res); err != nil {
			return err
		}
	}
	if o.out == "" {
		return nil
	}
	return writeSections(o.out, res, drawn)
}
