package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/weft-fabric/weft/cmd/weft/internal/tool"
)

//nolint:lll // lines of the document are shorter
const documentHead = `# Benchmarks

Measured with ` + "`make bench`" + ` (` + "`weft bench`" + ` and tests/bench): two processes pinned to one core each, every
MPI or provider in turn over short rounds of one run. What MPI programs get comes first; then what
programs of libfabric get, beside shm of libfabric's main branch and of older ones. Ratios are the median of the rounds'
ratios. Absolute figures belong to the machine.
A dash stands for a test that the provider does not complete, for one that it refuses, and for a figure that was
not measured.

`

// marks enclose the section of one libfabric version.
func marks(version string) (begin, end string) {
	return "<!-- begin libfabric " + version + " -->\n", "<!-- end libfabric " + version + " -->\n"
}

// placeSection puts the section into a document: in place of the section of
// the same version, or at the end.
func placeSection(document, version, text string) string {
	begin, end := marks(version)
	if document == "" {
		document = documentHead
	}
	before, rest, found := strings.Cut(document, begin)
	if found {
		if _, after, ok := strings.Cut(rest, end); ok {
			return before + begin + text + end + after
		}
	}
	return document + begin + text + end
}

// placeBeside does so, but a section that the document has not goes behind the last of a kind, if there is one.
func placeBeside(document, kind, version, text string) string {
	begin, end := marks(version)
	_, first := marks(kind)
	last := strings.LastIndex(document, strings.TrimSuffix(first, " -->\n"))
	if strings.Contains(document, begin) || last < 0 {
		return placeSection(document, version, text)
	}
	at := last + strings.IndexByte(document[last:]+"\n", '\n') + 1
	return document[:min(at, len(document))] + begin + text + end + document[min(at, len(document)):]
}

// leadWith does so with what stands before all others: it is the first of a document that has none of the version.
func leadWith(document, version, text string) string {
	begin, end := marks(version)
	head, rest, found := strings.Cut(document, "<!-- begin ")
	if strings.Contains(document, begin) || !found {
		return placeSection(document, version, text)
	}
	return head + begin + text + end + "<!-- begin " + rest
}

// writeSections writes what was measured into a file: a section for each of the
// table, MPI programs, threads, NetPIPE, threads of MPI, memory tokens, all-to-alls and the network. drawn are the
// plots.
func writeSections(path string, res *result, drawn map[string]string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the old figures: %w", err)
	}
	for file, plot := range drawn {
		drawn[file] = relative(path, plot)
	}
	document, found := string(old), res.figures()
	if found.any(func(name string) bool { return rowOf(mpiRows, name) >= 0 }) {
		document = leadWith(document, "MPI, "+res.Libfabric, mpiSection(res, found))
	}
	if of := inTable(found, res.Providers); len(of) != 0 && of[0] != ucxName { // UCX alone is no table of providers
		document = placeSection(document, res.Libfabric, section(res, found, drawn))
	}
	if found.any(func(name string) bool { return strings.HasPrefix(name, "scale_") }) {
		document = placeSection(document, "scaling, "+res.Libfabric, scalingSection(res, found, drawn[scalingPlotFile]))
	}
	if found.any(func(name string) bool { return strings.HasPrefix(name, "netpipe_") }) {
		document = placeSection(document, "NetPIPE, "+res.Libfabric, netpipeSection(res, found))
	}
	if found.any(func(name string) bool { return name == mpiThreadsFigure }) {
		document = placeSection(document, "MPI threads, "+res.Libfabric, mpiThreadsSection(res, found))
	}
	if found.any(func(name string) bool { return strings.HasPrefix(name, "token_") }) {
		document = placeSection(document, "tokens, "+res.Libfabric, tokenSection(res, found))
	}
	if found.any(func(name string) bool { return strings.HasPrefix(name, "alltoall_") }) {
		document = allToAllSections(document, res, found, drawn)
	}
	if found.any(func(name string) bool { return strings.HasPrefix(name, "job_") }) {
		document = placeBeside(document, "all to all, ", "MPI programs between hosts", mpiJobsSection(res, found))
	}
	if found.any(func(name string) bool { return strings.HasPrefix(name, "net_") }) {
		document = placeSection(document, "network, "+res.Libfabric, netSection(res, found))
	}
	if err := tool.ReplaceFile(path, []byte(document)); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}

// relative is the path of a file as a document names it.
func relative(document, file string) string {
	if rel, err := filepath.Rel(filepath.Dir(document), file); err == nil {
		return rel
	}
	return file
}
