package trace

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
)

// screen shows the table on a terminal, as much of it as fits.
func (s *session) screen(w io.Writer) error {
	l, err := s.take()
	if err != nil {
		return err
	}
	lines := l.text(text.StyleFor(w), false)
	lines = append(lines, "", "Ctrl-C ends and shows the histograms")
	if f, ok := w.(*os.File); ok {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil {
			if len(lines) >= height {
				lines = lines[:max(height-1, 1)]
			}
			for i := range lines {
				lines[i] = text.Clip(lines[i], width)
			}
		}
	}
	// home, each line and the rest of it cleared, and what is below
	_, err = io.WriteString(w, "\x1b[H"+strings.Join(lines, "\x1b[K\n")+"\x1b[K\n\x1b[J")
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// write writes the result. live says that screens were shown before it.
func (s *session) write(w io.Writer, o *options, live bool) error {
	l, err := s.take()
	if err != nil {
		return err
	}
	if o.json {
		return text.JSON(w, l.json())
	}
	lines := l.folded()
	if !o.folded {
		lines = l.text(text.StyleFor(w), true)
	}
	before := ""
	if live {
		before = "\x1b[H\x1b[J"
	}
	if len(lines) == 0 {
		return nil
	}
	if _, err := io.WriteString(w, before+strings.Join(lines, "\n")+"\n"); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// The result as JSON; times in nanoseconds.
type (
	traceJSON struct {
		PID        int             `json:"pid"`
		Command    string          `json:"command"`
		Library    string          `json:"library"`
		Seconds    float64         `json:"seconds"`
		Calls      []histogramJSON `json:"calls"`
		Operations []histogramJSON `json:"operations"`
		Notes      []string        `json:"notes"`
	}
	histogramJSON struct {
		Name      string       `json:"name"`
		Result    string       `json:"result,omitempty"`
		Count     uint64       `json:"count"`
		Sum       uint64       `json:"sum_ns"`
		P50       uint64       `json:"p50_ns"`
		P99       uint64       `json:"p99_ns"`
		P999      uint64       `json:"p999_ns"`
		P9999     uint64       `json:"p9999_ns"`
		Longest   uint64       `json:"longest_ns"`
		Histogram []bucketJSON `json:"histogram"`
	}
	bucketJSON struct {
		From  uint64 `json:"from_ns"`
		To    uint64 `json:"to_ns"`
		Count uint64 `json:"count"`
	}
)

func (l *sample) json() traceJSON {
	j := traceJSON{PID: l.pid, Command: l.command, Library: l.library, Seconds: l.taken.Seconds(),
		Calls: histograms(l.calls), Operations: histograms(l.ops), Notes: l.notes()}
	if j.Notes == nil {
		j.Notes = []string{}
	}
	return j
}

func histograms(lines []line) []histogramJSON {
	list := []histogramJSON{}
	for i := range lines {
		n := &lines[i]
		h := histogramJSON{Name: n.name, Result: n.result, Count: n.total(), Sum: n.sum, P50: n.quantile(0.5),
			P99: n.quantile(0.99), P999: n.quantile(0.999), P9999: n.quantile(0.9999), Longest: n.quantile(1)}
		for b, count := range n.buckets {
			if count != 0 {
				h.Histogram = append(h.Histogram, bucketJSON{lowest(b), lowest(b + 1), count})
			}
		}
		list = append(list, h)
	}
	return list
}
