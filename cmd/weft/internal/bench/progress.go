package bench

import (
	"fmt"
	"io"
	"time"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
)

// reporter says on standard error how far the measuring is: one line that
// changes on a terminal, else a line for each round.
type reporter struct {
	w        io.Writer
	terminal bool
	began    time.Time
	done, of int // steps
}

func newReporter(w io.Writer, steps int) *reporter {
	return &reporter{w: w, terminal: text.IsTerminal(w), began: time.Now(), of: steps}
}

// step says what begins now.
func (r *reporter) step(format string, args ...any) {
	left := ""
	if r.done > 0 {
		each := time.Since(r.began) / time.Duration(r.done)
		left = fmt.Sprintf(", about %v left", (each * time.Duration(r.of-r.done)).Round(time.Second))
	}
	line := fmt.Sprintf("weft bench: [%d/%d] %s%s", r.done+1, r.of, fmt.Sprintf(format, args...), left)
	r.done++
	if r.terminal {
		fmt.Fprint(r.w, "\r\x1b[K"+line)
		return
	}
	fmt.Fprintln(r.w, line)
}

// note writes a line that stays.
func (r *reporter) note(format string, args ...any) {
	if r.terminal {
		fmt.Fprint(r.w, "\r\x1b[K")
	}
	fmt.Fprintf(r.w, "weft bench: "+format+"\n", args...)
}

// end leaves the terminal's line.
func (r *reporter) end() {
	if r.terminal {
		fmt.Fprint(r.w, "\r\x1b[K")
	}
}
