package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

const documentHead = `# Benchmarks

Measured with ` + "`make bench`" + ` (` + "`weft bench`" + ` and tests/bench): two processes pinned to one core each, every
provider in turn over short rounds of one run. Ratios to another provider are of medians;
ratios of two figures of weft are the median of the rounds' ratios. Absolute figures belong to the machine.
A dash stands for a test that the provider does not finish, for one that it refuses, and for a figure that was
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

// replaceSection writes the section into a file.
func replaceSection(path, version, text string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the old figures: %w", err)
	}
	if err := os.WriteFile(path, []byte(placeSection(string(old), version, text)), 0o644); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}
