package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// promisedIn is the document that says which packages other modules may import, and promisedHead the line after which
// it does.
const (
	promisedIn   = "docs/go.md"
	promisedHead = "## What is promised\n"
)

// promised returns the packages that a document promises: those in the first column of the table below promisedHead.
func promised(text string) (list []string) {
	_, text, _ = strings.Cut(text, promisedHead)
	text, _, _ = strings.Cut(text, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			list = append(list, strings.Trim(name, "`"))
		}
	}
	slices.Sort(list)
	return list
}

// importable returns the packages that other modules can import: those in no internal folder that are no commands.
// Those of programs, of tests, of examples and of the C ABI are none of them.
func importable(packages []goPackage) (list []string) {
	for _, p := range packages {
		folder, ours := inModule(p.ImportPath)
		if !ours || p.Name == "main" || slices.Contains(strings.Split(folder, "/"), "internal") ||
			under(folder, "tests") || under(folder, "examples") || under(folder, "cabi") || under(folder, "cmd") {
			continue
		}
		if folder == rootPackage {
			folder = "weft"
		}
		list = append(list, folder)
	}
	slices.Sort(list)
	return list
}

// TestPromised has the document promise each package that can be imported, and no other.
func TestPromised(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, promisedIn))
	if err != nil {
		t.Fatal(err)
	}
	want, got := importable(listPackages(t)), promised(string(text))
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s can be imported, and %s does not promise it: move it to an internal folder, or promise it",
				name, promisedIn)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("%s promises %s, which cannot be imported", promisedIn, name)
		}
	}
}

func TestPromisedNotices(t *testing.T) {
	text := promisedHead + "| package | for |\n| --- | --- |\n| `a`, `b/c` | x |\n\n## Next\n| `d` | y |\n"
	if got := promised(text); !slices.Equal(got, []string{"a", "b/c"}) {
		t.Errorf("promised: %q", got)
	}
	got := importable([]goPackage{
		{ImportPath: module + "a", Name: "a"}, {ImportPath: module + "a/internal/b", Name: "b"},
		{ImportPath: module + "internal/c", Name: "c"}, {ImportPath: module + "d", Name: "main"},
		{ImportPath: module + "tests/e", Name: "e"}, {ImportPath: "other/f", Name: "f"},
	})
	if !slices.Equal(got, []string{"a"}) {
		t.Errorf("importable: %q", got)
	}
}
