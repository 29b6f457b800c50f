// Package text is how weft's commands write: columns, colours where the
// terminal wants them, and JSON.
package text

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/weft-fabric/weft/internal/wrap"
)

// Style paints text for a terminal, or leaves it as it is.
type Style struct{ Color bool }

// StyleFor returns the style for what is written to w: with colours if it is a
// terminal that has some and NO_COLOR (https://no-color.org) is not set.
func StyleFor(w io.Writer) Style {
	return Style{IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// Columns is the width of the terminal that w is, 0 where w is none.
func Columns(w any) int {
	if f, ok := w.(interface{ Fd() uintptr }); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}

func (s Style) paint(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold and the others return text in that style.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Dim is for what matters less.
func (s Style) Dim(text string) string { return s.paint("2", text) }

// Good is for what is as it should be.
func (s Style) Good(text string) string { return s.paint("32", text) }

// Warn is for what may matter.
func (s Style) Warn(text string) string { return s.paint("33", text) }

// Bad is for what is broken.
func (s Style) Bad(text string) string { return s.paint("31", text) }

// Reverse is for the head of a table.
func (s Style) Reverse(text string) string { return s.paint("7", text) }

// Table collects rows and writes them in columns.
type Table struct {
	// Right says which columns are numbers, flush right.
	Right []bool
	rows  [][]string
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Lines returns the rows, indented, as wide as their cells need.
func (t *Table) Lines(indent string) []string {
	var widths []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(c))
		}
	}
	var lines []string
	for _, r := range t.rows {
		var b strings.Builder
		b.WriteString(indent)
		for i, c := range r {
			pad := strings.Repeat(" ", widths[i]-Width(c))
			switch {
			case i < len(t.Right) && t.Right[i]:
				b.WriteString(pad + c)
			case i == len(r)-1:
				b.WriteString(c)
			default:
				b.WriteString(c + pad)
			}
			if i < len(r)-1 {
				b.WriteString("  ")
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// Write writes the rows.
func (t *Table) Write(w io.Writer, indent string) error {
	for _, l := range t.Lines(indent) {
		if _, err := fmt.Fprintln(w, l); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// Width is the number of columns that text takes on a terminal: escape
// sequences take none.
func Width(text string) int {
	n := 0
	for text != "" {
		if rest, ok := escape(text); ok {
			text = rest
			continue
		}
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		n++
	}
	return n
}

// Clip shortens text to n columns, escape sequences kept whole and closed.
func Clip(text string, n int) string {
	if Width(text) <= n {
		return text
	}
	var b strings.Builder
	painted := false
	for used := 0; text != ""; {
		if rest, ok := escape(text); ok {
			b.WriteString(text[:len(text)-len(rest)])
			painted = true
			text = rest
			continue
		}
		if used == n {
			break
		}
		_, size := utf8.DecodeRuneInString(text)
		b.WriteString(text[:size])
		text = text[size:]
		used++
	}
	if painted {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// escape takes a colour sequence off the start of text.
func escape(text string) (rest string, ok bool) {
	if !strings.HasPrefix(text, "\x1b[") {
		return text, false
	}
	i := strings.IndexByte(text, 'm')
	if i < 0 {
		return text, false
	}
	return text[i+1:], true
}

// Wrap breaks text at spaces into lines of at most n columns.
func Wrap(text string, n int) []string { return wrap.Lines(text, n, Width) }

// JSON writes v, indented.
func JSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("json: %w", err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
