package lint

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

var (
	reportLink = regexp.MustCompile(`^\[#(\d+)\]\(https://github\.com/ofiwg/libfabric/issues/(\d+)\)$`)
	shownBy    = regexp.MustCompile("`([a-z][a-zA-Z0-9_./-]*/[a-zA-Z0-9_.-]+)`(?: \\(([^)]*)\\))?")
	quoted     = regexp.MustCompile("`([^`]+)`")
)

// TestCompare holds docs/compare.md to its form: each row names reports by their numbers, and tests
// that there are.
func TestCompare(t *testing.T) {
	rows := 0
	for line := range strings.SplitSeq(string(read(t, "docs/compare.md")), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| what was seen") ||
			strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 4 {
			t.Errorf("%d cells: %s", len(cells), line)
			continue
		}
		for link := range strings.SplitSeq(cells[1], ", ") {
			if m := reportLink.FindStringSubmatch(link); m == nil || m[1] != m[2] {
				t.Errorf("no report: %s", link)
			}
		}
		tests := shownBy.FindAllStringSubmatch(cells[3], -1)
		if len(tests) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, m := range tests {
			text := read(t, m[1])
			if len(text) == 0 {
				t.Errorf("there is no %s", m[1])
			}
			for _, name := range quoted.FindAllStringSubmatch(m[2], -1) {
				if !bytes.Contains(text, []byte(name[1])) {
					t.Errorf("%s has no %s", m[1], name[1])
				}
			}
		}
	}
	if rows < 10 {
		t.Errorf("%d rows", rows)
	}
}
