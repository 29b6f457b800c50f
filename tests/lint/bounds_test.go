package lint

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// retired holds the words that docs/glossary.md retires, in all their forms, by the form under which they are counted.
var retired = map[string][]string{
	"announce": {"announces", "announced", "announcing", "announcement", "announcements"},
	"attend":   {"attends", "attended", "attending"},
	"bury":     {"buries", "buried", "burying"},
	"eat":      {"eats", "ate", "eaten", "eating"},
	"finish":   {"finishes", "finished", "finishing", "unfinished"},
	"glance":   {"glances", "glanced", "glancing"},
	"heat":     {"heats", "heated", "heating"},
	"he":       {"his", "him", "himself", "she", "her"},
	"held":     nil,
	"keeper":   {"keepers"},
	"kick":     {"kicks", "kicked", "kicking"},
	"lane":     {"lanes", "laned"},
	"lend":     {"lends", "lent", "lending"},
	"look":     {"looks", "looked", "looking"},
	"nobody":   nil,
	"nudge":    {"nudges", "nudged", "nudging"},
	"poke":     {"pokes", "poked", "poking"},
	"poster":   {"posters"},
	"regain":   {"regains", "regained", "regaining"},
	"somebody": nil,
	"stir":     {"stirs", "stirred", "stirring"},
	"tell":     {"tells", "telling"},
	"told":     nil,
	"trouble":  {"troubles"},
	"who":      {"whom", "whoever"}, // whose is of things, too
}

// maxColumns is the longest line, in characters; a tab counts as four.
const maxColumns = 120

// boundsFile has a line for each count below: its name and the most that is allowed.
const boundsFile = "testdata/bounds.txt"

// production reports whether a file is hand-written code that ships.
func production(name string, text []byte) bool {
	switch {
	case generated.Match(text), strings.HasSuffix(name, "_test.go"), under(name, "tests"), under(name, "examples"):
		return false
	}
	return strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".c") || strings.HasSuffix(name, ".h")
}

// prose is the count that the retired words of a text that is no code belong to, empty for other files: documents and
// scripts, but for those that name the words.
func prose(name string) string {
	switch ext := filepath.Ext(name); {
	case slices.Contains([]string{"docs/glossary.md", "docs/shape.md", "scripts/shape.sh"}, name):
		return ""
	case ext == ".md":
		return "words.docs"
	case ext == ".sh", ext == ".yml", filepath.Base(name) == "Makefile", name == ".ci/run":
		return "words.scripts"
	}
	return ""
}

// testCode reports whether a file is hand-written code of tests or examples. This file has the words themselves.
func testCode(name string, text []byte) bool {
	switch ext := filepath.Ext(name); {
	case generated.Match(text), name == "tests/lint/bounds_test.go", ext != ".go" && ext != ".c" && ext != ".h":
		return false
	}
	return strings.HasSuffix(name, "_test.go") || under(name, "tests") || under(name, "examples")
}

// ordinary matches retired words in tests that are names of others, or have their ordinary sense: to look up, to look
// like, the system's user nobody, names of counters and of functions of libraries.
var ordinary = regexp.MustCompile(`\b[Ll]ook(?:s|ed|ing)?\s(?:\w+\s){0,2}up\b|` +
	`\b[Ll]ooks?\s(?:like|alike|the same|contiguous|congested)\b|LookPath|\bNOBODY\b|\bnobody\b|asNobody|` +
	`unexpected_held_bytes|logAnnounceInterval|"he"|höhe`)

// wordPart matches a word of a text or a part of an identifier.
var wordPart = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// countWords adds the retired words of a text, also those inside identifiers, to n.
func countWords(text []byte, forms map[string]string, n map[string]int) {
	for _, w := range wordPart.FindAll(text, -1) {
		if word, is := forms[strings.ToLower(string(w))]; is {
			n["word."+word]++
		}
	}
}

// wordForms is retired, by form.
func wordForms() map[string]string {
	forms := map[string]string{}
	for word, others := range retired {
		forms[word] = word
		for _, o := range others {
			forms[o] = word
		}
	}
	return forms
}

// longLines is how many lines of a text are longer than maxColumns.
func longLines(text []byte) (n int) {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if utf8.RuneCount(line)+3*bytes.Count(line, []byte("\t")) > maxColumns {
			n++
		}
	}
	return n
}

var (
	importsUnsafe = regexp.MustCompile(`(?m)^(import |\t)"unsafe"$`)
	importsC      = regexp.MustCompile(`(?m)^import "C"$`)
)

// bareUnsafe reports whether a Go file imports unsafe though its name does not say so. A file with cgo cannot do
// without.
func bareUnsafe(name string, text []byte) bool {
	base := strings.TrimSuffix(strings.TrimSuffix(name, ".go"), "_test")
	if !strings.HasSuffix(name, ".go") || strings.HasSuffix(base, "_unsafe") || importsC.Match(text) {
		return false
	}
	return importsUnsafe.Match(text)
}

// shimOf is the count that the lines of a hand-written C file of cabi belong to, empty for other files: the C of the
// provider, which is to be shims, and that of the library that loads it, which has no Go.
func shimOf(name string, text []byte) string {
	ext := filepath.Ext(name)
	switch {
	case ext != ".c" && ext != ".h", generated.Match(text):
		return ""
	case under(name, "cabi/loader"):
		return "lines.cabi/loader"
	case under(name, "cabi"):
		return "lines.cabi"
	}
	return ""
}

// shimHeaders are the headers that the C of each operation is made with: calls of the data plane, the arguments of a
// post.
var shimHeaders = regexp.MustCompile(`(?m)^#include "(?:plane|posting)\.h"`)

// atLoad are the files with such a header that run when the library is loaded, and when a thread comes.
var atLoad = []string{"cabi/plane.c", "cabi/threadnum.c"}

// perOperation reports whether a hand-written C file of cabi runs with each operation: the headers above, and what
// includes one. An imported queue (peer.c), which another provider reads, is no such file.
func perOperation(name string, text []byte) bool {
	switch {
	case shimOf(name, text) != "lines.cabi", slices.Contains(atLoad, name):
		return false
	case name == "cabi/hotpath.h":
		return true
	}
	return shimHeaders.Match(text) || shimHeaders.MatchString(fmt.Sprintf("#include %q", filepath.Base(name)))
}

// flatProvider reports whether a file is production code of package provider itself, which is to lose what needs no
// domain to the packages below it.
func flatProvider(name string) bool {
	rest, in := strings.CutPrefix(name, "provider/")
	return in && strings.HasSuffix(rest, ".go") && !strings.HasSuffix(rest, "_test.go") && !strings.Contains(rest, "/")
}

// countAll counts what is bounded: retired words in production code, tests, documents and scripts, long lines and files
// with bare unsafe by folder, lines of C in cabi, in all and of each operation, lines of package provider, the shapes
// of packages.
func countAll(t *testing.T) map[string]int {
	n, forms := map[string]int{}, wordForms()
	for word := range retired {
		n["word."+word] = 0
	}
	for _, name := range files(t) {
		text := read(t, name)
		folder, _, nested := strings.Cut(name, "/")
		if !nested {
			folder = "root"
		}
		if production(name, text) {
			countWords(text, forms, n)
		}
		if testCode(name, text) {
			found := map[string]int{}
			countWords(ordinary.ReplaceAll(text, nil), forms, found)
			for _, k := range found {
				n["words.tests"] += k
			}
		}
		if count := prose(name); count != "" {
			found := map[string]int{}
			countWords(text, forms, found)
			for _, k := range found {
				n[count] += k
			}
		}
		if bareUnsafe(name, text) {
			n["unsafe."+folder]++
			if folder != "provider" && production(name, text) {
				n["unsafe.production"]++ // without a bound: there is none
			}
		}
		if shim := shimOf(name, text); shim != "" {
			n[shim] += bytes.Count(text, []byte("\n"))
		}
		if flatProvider(name) {
			n["lines.provider"] += bytes.Count(text, []byte("\n"))
		}
		if perOperation(name, text) {
			n["lines.cabi.operation"] += bytes.Count(text, []byte("\n"))
		}
		if ext := filepath.Ext(name); (ext == ".go" || ext == ".c" || ext == ".h") && !generated.Match(text) {
			if long := longLines(text); long != 0 {
				n["long."+folder] += long
			}
		}
	}
	countShapes(t, n)
	return n
}

func readBounds(t *testing.T) map[string]int {
	bounds := map[string]int{}
	f, err := os.Open(boundsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), " ")
		if bounds[name], err = strconv.Atoi(value); err != nil {
			t.Fatalf("%s: %q: %v", boundsFile, s.Text(), err)
		}
	}
	return bounds
}

// TestBounds holds the counts to their bounds, which only go down: with LOWER_BOUNDS=1 in the environment the file gets
// the present counts where they are lower.
func TestBounds(t *testing.T) {
	counts, bounds := countAll(t), readBounds(t)
	lower := os.Getenv("LOWER_BOUNDS") != ""
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		most := bounds[name]
		if strings.HasPrefix(name, "against.") {
			most += againstSlack
		}
		if counts[name] > most {
			t.Errorf("%s: %d, at most %d", name, counts[name], most)
		}
	}
	if !lower {
		return
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(bounds)) {
		if n := min(bounds[name], counts[name]); n != 0 || strings.HasPrefix(name, "word.") {
			fmt.Fprintf(&b, "%s %d\n", name, n)
		}
	}
	if err := os.WriteFile(boundsFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestCounts shows what is counted.
func TestCounts(t *testing.T) {
	n := map[string]int{}
	countWords([]byte("wasTold told_by TOLD retold, toldest; laneOf(lanes) // Somebody"), wordForms(), n)
	if want := map[string]int{"word.told": 3, "word.lane": 2, "word.somebody": 1}; !maps.Equal(n, want) {
		t.Errorf("%v, want %v", n, want)
	}
	line := strings.Repeat("ä", maxColumns)
	lines := line + "\n" + line + "x\n\t" + line[:2*(maxColumns-4)] + "\n\t" + line[:2*(maxColumns-3)]
	if n := longLines([]byte(lines)); n != 2 {
		t.Errorf("%d long lines, want 2", n)
	}
	for name, want := range map[string]string{
		"cabi/a.c": "lines.cabi", "cabi/a.h": "lines.cabi", "cabi/loader/a.c": "lines.cabi/loader", "cabi/a.go": "",
		"hw/a.c": "",
	} {
		if got := shimOf(name, []byte("int a;\n")); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, want := range map[string]bool{
		"provider/a.go": true, "provider/a_test.go": false, "provider/internal/coll/a.go": false, "provider/a.s": false,
		"cq/a.go": false,
	} {
		if flatProvider(name) != want {
			t.Errorf("%s: counted: %v", name, !want)
		}
	}
	if got := shimOf("cabi/a_gen.h", []byte("/*\n * Code generated by x; DO NOT EDIT.\n */\n")); got != "" {
		t.Errorf("generated: %q", got)
	}
	for name, want := range map[string]bool{
		"cabi/posting.h": true, "cabi/hotpath.h": true, "cabi/a.c": false, "cabi/plane.c": false, "a/posting.h": false,
	} {
		if got := perOperation(name, []byte("int a;\n")); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !perOperation("cabi/a.c", []byte("int a;\n#include \"posting.h\"\n")) {
		t.Error("what includes posting.h is not counted")
	}
	for name, want := range map[string]bool{
		"a/b.go": true, "a/b_unsafe.go": false, "a/b_unsafe_test.go": false, "a/b_test.go": true,
	} {
		if got := bareUnsafe(name, []byte("package a\n\nimport \"unsafe\"\n")); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestRetiredWords holds the list to docs/glossary.md, which names each word.
func TestRetiredWords(t *testing.T) {
	text := read(t, "docs/glossary.md")
	for word, forms := range retired {
		in := func(form string) bool { return regexp.MustCompile(`(?i)\b` + form + `\b`).Match(text) }
		if !slices.ContainsFunc(append(forms, word), in) {
			t.Errorf("docs/glossary.md does not name %q", word)
		}
	}
}
