package lint

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Files are as .editorconfig says: no blanks at the end of lines, a newline at the end of the file, no carriage
// returns, and in C and shell scripts tabs at the start of lines, with up to seven blanks to align what goes on.
var (
	lineEnd = regexp.MustCompile(`(?m)[ \t\r]+$`)
	indent  = regexp.MustCompile(`(?m)^ {8,}\S|^ +\t`)
)

// asciiText are the files that people write.
var asciiText = []string{".go", ".c", ".h", ".sh", ".md", ".py"}

// whitespace returns what is wrong with a file, "" if nothing.
func whitespace(name string, text []byte) string {
	dot := strings.LastIndexByte(name, '.')
	switch {
	case dot < 0 || !slices.Contains(asciiText, name[dot:]) || len(text) == 0 || generated.Match(text):
		return ""
	case !bytes.HasSuffix(text, []byte("\n")):
		return "no newline at the end"
	case lineEnd.Match(text):
		return "blanks at the end of a line: " + string(lineAt(text, lineEnd.FindIndex(text)[0]))
	case (name[dot:] == ".c" || name[dot:] == ".h") && indent.Match(text):
		return "blanks where tabs belong: " + string(lineAt(text, indent.FindIndex(text)[0]))
	}
	return ""
}

// lineAt returns the line of a text at an offset.
func lineAt(text []byte, at int) []byte {
	start := bytes.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := bytes.Cut(text[start:], []byte("\n"))
	return line
}

func TestWhitespace(t *testing.T) {
	for _, name := range files(t) {
		if wrong := whitespace(name, read(t, name)); wrong != "" {
			t.Errorf("%s: %s", name, wrong)
		}
	}
}

// TestWhitespaceFinds shows what the check finds.
func TestWhitespaceFinds(t *testing.T) {
	for text, want := range map[string]bool{
		"a\n": true, "a": false, "a \n": false, "a\r\n": false, "        a\n": false, "\t  a\n": true,
		" \ta\n": false, " * a\n": true,
	} {
		if wrong := whitespace("x/a.c", []byte(text)); (wrong == "") != want {
			t.Errorf("%q: %q", text, wrong)
		}
	}
}
