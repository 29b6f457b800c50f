package wrap

import (
	"slices"
	"testing"
	"unicode/utf8"
)

// TestLines: lines are as long as fits, by the columns that are counted.
func TestLines(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want []string
	}{
		{"", 5, []string{""}},
		{" one  two\nthree ", 7, []string{"one two", "three"}},
		{"one two", 6, []string{"one", "two"}},
		{"a toolongone b", 4, []string{"a", "toolongone", "b"}},
		{"µµ µµ", 5, []string{"µµ µµ"}},
	} {
		if got := Lines(c.text, c.n, utf8.RuneCountInString); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.n, got, c.want)
		}
	}
	if got := Lines("µµ µµ", 5, func(s string) int { return len(s) }); len(got) != 2 {
		t.Errorf("by bytes: %q", got)
	}
}
