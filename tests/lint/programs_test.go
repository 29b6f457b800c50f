package lint

import (
	"bytes"
	"testing"
)

// programs are the whole programs of pages, and the files that are compiled and run.
var programs = map[string]string{
	"docs/c.md":        "examples/alltoallv.c",
	"docs/token.md":    "examples/token.c",
	"docs/token-go.md": "examples/tokenpair/main.go",
}

// TestProgramsOfPages: a program in a page is the one that is compiled and run.
func TestProgramsOfPages(t *testing.T) {
	for page, program := range programs {
		if !bytes.Contains(read(t, page), read(t, program)) {
			t.Errorf("%s does not have the text of %s", page, program)
		}
	}
}
