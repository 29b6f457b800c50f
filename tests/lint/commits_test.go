package lint

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"
)

// The days when the rules of commits began.
const (
	subjectsSince = "2026-11-27T00:00:00Z"
	sizesSince    = "2026-12-01T00:00:00Z"
)

// maxAdded is how many lines a commit may add that are neither generated nor moved.
const maxAdded = 500

// mechanical begins the line of a message that says which program made a change: it has no bound.
const mechanical = "Mechanical: "

// git returns the output of git in the repository. Without history the test is skipped.
func git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Skip("no history:", err)
	}
	return string(out)
}

// TestCommitSubjects holds the subjects of commits since the rule began to 72 columns.
func TestCommitSubjects(t *testing.T) {
	for _, wrong := range longSubjects(git(t, "log", "--no-merges", "--since="+subjectsSince, "--format=%h %s")) {
		t.Error(wrong)
	}
}

// longSubjects returns what is wrong with the subjects of a log.
func longSubjects(log string) (wrong []string) {
	for line := range strings.Lines(log) {
		hash, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n := utf8.RuneCountInString(subject); n > 72 || n == 0 {
			wrong = append(wrong, fmt.Sprintf("%s has a subject of %d columns: %s", hash, n, subject))
		}
	}
	return wrong
}

// TestLongSubjects shows what the check finds.
func TestLongSubjects(t *testing.T) {
	fits := strings.Repeat("ä", 72)
	if wrong := longSubjects("1a " + fits + "\n2b " + fits + "x\n3c \n"); len(wrong) != 2 {
		t.Errorf("found %q", wrong)
	}
}

// TestCommitSizes holds commits since the rule began to maxAdded lines.
func TestCommitSizes(t *testing.T) {
	if strings.TrimSpace(git(t, "rev-parse", "--is-shallow-repository")) == "true" {
		t.Skip("the first commit of a shallow clone adds all files")
	}
	for hash := range strings.FieldsSeq(git(t, "log", "-n200", "--no-merges", "--since="+sizesSince, "--format=%h")) {
		message, diff, _ := strings.Cut(git(t, "show", "-M", "-U0", "--format=%b%x00", hash), "\x00")
		if strings.Contains("\n"+message, "\n"+mechanical) {
			continue
		}
		if n := newLines(diff, written(t, hash)); n > maxAdded {
			t.Errorf("%s adds %d lines that are neither generated nor moved, more than %d", hash, n, maxAdded)
		}
	}
}

// written reports whether a file of a commit is written by a program.
func written(t *testing.T, hash string) func(name string) bool {
	return func(name string) bool {
		return strings.HasSuffix(name, ".svg") || strings.HasSuffix(name, ".sum") ||
			generated.MatchString(git(t, "show", hash+":"+name))
	}
}

// newLines returns how many lines a diff adds to files that are not generated, less those that it removes elsewhere.
// Indentation does not count, nor do empty lines.
func newLines(diff string, generated func(name string) bool) (n int) {
	removed := map[string]int{}
	for line := range strings.Lines(diff) {
		if text, is := strings.CutPrefix(line, "-"); is && !strings.HasPrefix(line, "--- ") {
			removed[strings.TrimSpace(text)]++
		}
	}
	skip := false
	for line := range strings.Lines(diff) {
		if name, is := strings.CutPrefix(line, "+++ b/"); is {
			skip = generated(strings.TrimSpace(name))
			continue
		}
		text, is := strings.CutPrefix(line, "+")
		if text = strings.TrimSpace(text); !is || skip || text == "" {
			continue
		}
		if removed[text] > 0 {
			removed[text]--
			continue
		}
		n++
	}
	return n
}

// TestNewLines shows what is counted.
func TestNewLines(t *testing.T) {
	diff := "--- a/x.go\n+++ b/x.go\n@@ -1,2 +1,3 @@\n-moved()\n-gone()\n+new()\n+\n+new()\n" +
		"--- a/y.go\n+++ b/y.go\n@@ -1 +1,2 @@\n+\tmoved()\n+\tmoved()\n" +
		"--- a/z_gen.go\n+++ b/z_gen.go\n@@ -0,0 +1,2 @@\n+one()\n+two()\n"
	if n := newLines(diff, func(name string) bool { return name == "z_gen.go" }); n != 3 {
		t.Errorf("%d lines, want 3", n)
	}
}
