package lint

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var (
	mdLink   = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	fences   = regexp.MustCompile("(?ms)^```.*?^```")
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	named    = regexp.MustCompile("`([a-z][a-zA-Z0-9_./-]*/[a-zA-Z0-9_.-]+)`(?:\\s+\\(((?:`[^`]+`(?:,\\s+)?)+)\\))?")
)

// markdown returns the repository's documents.
func markdown(t *testing.T) (list []string) {
	t.Helper()
	for _, name := range files(t) {
		if strings.HasSuffix(name, ".md") {
			list = append(list, name)
		}
	}
	if len(list) < 10 {
		t.Fatalf("%d documents only", len(list))
	}
	return list
}

// anchor is the fragment by which a heading is linked to.
func anchor(heading string) string {
	text := strings.ReplaceAll(strings.ToLower(heading), " ", "-")
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

func anchors(text []byte) (list []string) {
	for _, m := range heading.FindAllSubmatch(fences.ReplaceAll(text, nil), -1) {
		list = append(list, anchor(string(m[1])))
	}
	return list
}

// brokenLinks returns the links of a document that lead nowhere in the repository.
func brokenLinks(name string, text []byte, load func(name string) (text []byte, ok bool)) (broken []string) {
	text = codeSpan.ReplaceAll(fences.ReplaceAll(text, nil), nil)
	for _, m := range mdLink.FindAllSubmatch(text, -1) {
		link := string(m[1])
		if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
			continue
		}
		file, fragment, _ := strings.Cut(link, "#")
		target, to := text, name
		if file != "" {
			to = path.Join(path.Dir(name), file)
			var ok bool
			if target, ok = load(to); !ok {
				broken = append(broken, link)
				continue
			}
		}
		if fragment != "" && strings.HasSuffix(to, ".md") && !slices.Contains(anchors(target), fragment) {
			broken = append(broken, link)
		}
	}
	return broken
}

// TestLinks follows the links of all documents inside the repository.
func TestLinks(t *testing.T) {
	load := func(name string) ([]byte, bool) {
		full := filepath.Join(root, name)
		if _, err := os.Stat(full); err != nil {
			return nil, false
		}
		text, _ := os.ReadFile(full) // a folder has no text
		return text, true
	}
	for _, name := range markdown(t) {
		for _, link := range brokenLinks(name, read(t, name), load) {
			t.Errorf("%s: %s leads nowhere", name, link)
		}
	}
}

// TestBrokenLinks shows what the check finds.
func TestBrokenLinks(t *testing.T) {
	text := "# A b, c\n[1](#a-b-c) [2](#other) [3](x.md#there) [4](x.md#gone) [5](y.md) [6](https://h/#x) " +
		"`[7](z.md)`\n" +
		"```\n[8](z.md)\n# z\n```\n[9](#z)"
	got := brokenLinks("docs/a.md", []byte(text), func(name string) ([]byte, bool) {
		return []byte("## There\n"), name == "docs/x.md"
	})
	if want := []string{"#other", "x.md#gone", "y.md", "#z"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// program is a block that has the text of a file.
var program = regexp.MustCompile("(?ms)^<!-- (\\S+) -->\n```[a-z]*\n(.*?)^```$")

// TestPrograms wants the programs in documents to be the files that are compiled and run.
func TestPrograms(t *testing.T) {
	found := 0
	for _, name := range markdown(t) {
		for _, m := range program.FindAllSubmatch(read(t, name), -1) {
			found++
			if file := string(m[1]); !bytes.Equal(m[2], read(t, file)) {
				t.Errorf("%s: the program is not %s", name, file)
			}
		}
	}
	if found < 2 {
		t.Errorf("%d programs in documents", found)
	}
}

// guides are the documents that name files and what is in them.
var guides = []string{
	"docs/architecture.md", "docs/adding-a-backend.md", "docs/design.md",
	"docs/transports.md", "docs/decisions.md", "docs/glossary.md", "docs/go.md", "CONTRIBUTING.md", "SECURITY.md",
}

// TestNamedCode wants the files that guides name to be there, and to hold the identifiers named behind them in
// parentheses.
func TestNamedCode(t *testing.T) {
	names, tops := 0, map[string]bool{}
	for _, name := range files(t) {
		top, _, _ := strings.Cut(name, "/")
		tops[top] = true
	}
	for _, guide := range guides {
		for _, m := range named.FindAllSubmatch(fences.ReplaceAll(read(t, guide), nil), -1) {
			name := string(m[1])
			if top, _, _ := strings.Cut(name, "/"); !tops[top] {
				continue // an import path, a device, another project's file
			}
			if matches, _ := filepath.Glob(filepath.Join(root, name)); len(matches) == 0 {
				t.Errorf("%s: there is no %s", guide, name)
				continue
			}
			if len(m[2]) == 0 {
				continue
			}
			text := read(t, name)
			for _, id := range quoted.FindAllSubmatch(m[2], -1) {
				names++
				if !bytes.Contains(text, id[1]) {
					t.Errorf("%s: %s has no %s", guide, name, id[1])
				}
			}
		}
	}
	if names < 40 {
		t.Errorf("%d identifiers only", names)
	}
}

// TestArchitecture holds the page that newcomers read first to two printed pages.
func TestArchitecture(t *testing.T) {
	text := fences.ReplaceAll(read(t, "docs/architecture.md"), nil)
	if words, lines := len(bytes.Fields(text)), bytes.Count(text, []byte("\n")); words > 1060 || lines > 130 {
		t.Errorf("%d words in %d lines, at most 1100 in 130", words, lines)
	}
}

// badRows returns the numbers of the lines of a document that are rows of a table and have more or fewer cells than the
// table's first row. A bar in a cell has a backslash before it, within a code span, too.
func badRows(text []byte) (bad []int) {
	cells, fenced := 0, false
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		fenced = fenced != strings.HasPrefix(line, "```")
		if fenced || !strings.HasPrefix(line, "|") {
			cells = 0
			continue
		}
		n := strings.Count(strings.TrimSuffix(strings.ReplaceAll(line, `\|`, ""), "|"), "|")
		if cells == 0 {
			cells = n
		}
		if n != cells {
			bad = append(bad, i+1)
		}
	}
	return bad
}

// TestTables finds rows of which some cell is not shown, or is missing.
func TestTables(t *testing.T) {
	for _, name := range markdown(t) {
		for _, line := range badRows(read(t, name)) {
			t.Errorf("%s:%d: the row has not as many cells as its table", name, line)
		}
	}
}

func TestBadRows(t *testing.T) {
	text := "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 1 | 2 | 3 |\n| 1 |\n| 1 | `\\|` |\n" +
		"```\n| x |\n| y | z |\n```\n| c |\n| - |\n| 4 |\n| `|` |\n"
	if got, want := badRows([]byte(text)), []int{4, 5, 14}; !slices.Equal(got, want) {
		t.Errorf("lines %v, want %v", got, want)
	}
}
