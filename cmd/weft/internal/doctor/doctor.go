// Package doctor is "weft doctor": it finds what keeps weft from working,
// or from working well, and says what to do about it.
package doctor

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-fabric/weft/cmd/weft/internal/fabric"
	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/cmd/weft/internal/tool"
	"github.com/weft-fabric/weft/internal/config"
)

// Verdict is what a check found.
type Verdict string

// Verdicts.
const (
	Good Verdict = "ok"
	Note Verdict = "note" // for information
	Warn Verdict = "warn" // works, but not as well as it could
	Fail Verdict = "fail" // does not work
)

// Finding is the result of one check.
type Finding struct {
	Check   string  `json:"check"`
	Verdict Verdict `json:"verdict"`
	What    string  `json:"what"`
	// Remedy says what to do, empty where nothing is.
	Remedy string `json:"remedy,omitempty"`
}

// host is what the checks read. Tests give others.
type host struct {
	cfg    *config.Config // the settings, or the default where one is bad
	bad    error          // which, nil: none
	lookup func(string) (string, bool)
	proc   string // /proc
	sys    string // /sys
	dev    string // /dev
	roots  []string
	self   string // this program, for the two processes of the attach check
	fix    bool   // remove what is left over
}

// checks are in the order of the report. Each checks one thing and may have
// several findings.
var checks = []struct {
	name string // for --only
	run  func(ctx context.Context, h *host) []Finding
}{
	{"settings", checkSettings}, {"directory", checkDirectory}, {"leftovers", checkLeftovers}, {"attach", checkAttach},
	{"memlock", checkMemlock}, {"hugepages", checkHugePages}, {"cores", checkCores}, {"libfabric", checkLibfabric},
	{"provider", checkProvider}, {"rdma", checkRDMA}, {"slingshot", checkSlingshot}, {"mpi", checkMPI},
	{"trace", checkTrace},
}

// names lists the checks.
func names() (list []string) {
	for _, c := range checks {
		list = append(list, c.name)
	}
	return list
}

// Command is "weft doctor".
func Command() *cobra.Command {
	var asJSON, strict, fix bool
	var only []string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find what keeps weft from working well, and say what to do",
		Long: `Checks the directory of the shared segments, cross-memory attach between two real
processes, limits, huge pages, cores, libfabric and the provider, RDMA devices, NICs of Slingshot,
files that dead processes left, and the MPI installations, with the exact
line that runs each of them on weft.

The status is 0 when nothing failed, 1 when something did (with --strict also
for warnings), 2 for wrong usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range only {
				if !slices.Contains(names(), name) {
					return tool.Usage(fmt.Errorf("no check %q; there are %s", name, strings.Join(names(), ", ")))
				}
			}
			h, err := thisHost(fix)
			if err != nil {
				return err
			}
			list := examine(cmd.Context(), h, only)
			w := cmd.OutOrStdout()
			if asJSON {
				err = text.JSON(w, list)
			} else {
				err = write(w, text.StyleFor(w), list)
			}
			if err != nil {
				return err
			}
			return verdict(list, strict)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	c.Flags().BoolVar(&strict, "strict", false, "status 1 for warnings too")
	c.Flags().BoolVar(&fix, "fix", false, "remove the files that dead processes left in the directory of the shared "+
		"segments")
	c.Flags().StringSliceVar(&only, "only", nil, "only these `CHECKS`: "+strings.Join(names(), ", "))
	return c
}

func thisHost(fix bool) (*host, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program: %w", err)
	}
	h := &host{proc: "/proc", sys: "/sys", dev: "/dev", roots: fabric.Roots(), self: self, fix: fix}
	h.lookup = fabric.OwnSettings(h.roots, os.LookupEnv).Lookup
	if h.cfg, h.bad = config.Load(h.lookup); h.bad != nil {
		h.cfg = config.Default()
	}
	return h, nil
}

func examine(ctx context.Context, h *host, only []string) []Finding {
	if ctx == nil {
		ctx = context.Background()
	}
	var list []Finding
	for _, c := range checks {
		if len(only) == 0 || slices.Contains(only, c.name) {
			list = append(list, c.run(ctx, h)...)
		}
	}
	return list
}

// verdict is the error for the exit status; all has been said.
func verdict(list []Finding, strict bool) error {
	for _, f := range list {
		if f.Verdict == Fail || strict && f.Verdict == Warn {
			return tool.Exit{Code: 1}
		}
	}
	return nil
}

// write shows the findings for people.
func write(w io.Writer, s text.Style, list []Finding) error {
	var b strings.Builder
	marks := map[Verdict]string{Good: s.Good("ok  "), Note: s.Dim("note"), Warn: s.Warn("warn"), Fail: s.Bad("FAIL")}
	count := map[Verdict]int{}
	for _, f := range list {
		count[f.Verdict]++
		head := fmt.Sprintf("%s  %-14s ", marks[f.Verdict], f.Check)
		indent := strings.Repeat(" ", 21)
		for i, line := range text.Wrap(f.What, 90) {
			if i > 0 {
				head = indent
			}
			b.WriteString(head + line + "\n")
		}
		if f.Remedy != "" {
			for i, line := range strings.Split(f.Remedy, "\n") {
				mark := "-> "
				if i > 0 {
					mark = "   "
				}
				b.WriteString(indent + s.Bold(mark+line) + "\n")
			}
		}
	}
	fmt.Fprintf(&b, "\n%d ok, %d notes, %d warnings, %d failed\n", count[Good], count[Note], count[Warn], count[Fail])
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func good(check, format string, args ...any) []Finding {
	return []Finding{{Check: check, Verdict: Good, What: fmt.Sprintf(format, args...)}}
}

func note(check, format string, args ...any) []Finding {
	return []Finding{{Check: check, Verdict: Note, What: fmt.Sprintf(format, args...)}}
}
