package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestWritten compares the files in the tree with what the table says now.
func TestWritten(t *testing.T) {
	for file, folder := range map[string]string{
		"layout.h":  "../",
		"values.h":  "../",
		"layout.go": "../../../hw/cxi/internal/wire/",
		"values.go": "../../../hw/cxi/internal/wire/",
	} {
		var b bytes.Buffer
		if err := run([]string{"../layout.def", file}, &b); err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile(folder + file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, b.Bytes()) {
			t.Errorf("%s is not what layout.def says: run make generate", folder+file)
		}
	}
}

// TestRefused shows that a wrong table is named, with its line.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"\ta 0.0 8\n":                               "line 1: a field outside a group",
		"struct a\n":                                "line 1: struct a: an unknown kind, or no size",
		"union a 8\n":                               "unknown kind",
		"struct a 8\n\tb 0.0 65\n":                  "line 2: a: b: no such range",
		"struct a 8\n\tb 0.8 1\n":                   "no such range",
		"struct a 8\n\tb 7.0 9\n":                   "a.b ends behind the structure",
		"struct a 16\n\tb 7.0 16\n":                 "crosses a multiple of 64 bits",
		"struct a 8\n\tb 0.0 8\n\tc 0.7 2\n":        "a: c overlaps b",
		"enum a\n\tb\n":                             "a value is a name and a number",
		"packet a 16\n\tb 7.0 16\n\tc 8.0 8\n":      "c overlaps b",
		"struct a 8\n\n# about\nstruct b x\n":       "line 4",
		"struct a 8\n\tb 0.0 8 9\n":                 "a field is a name",
		"enum a\n\tb 1\nstruct c 4\n\td 3.0 8\n\n@": "line 6",
	} {
		_, err := Parse(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
