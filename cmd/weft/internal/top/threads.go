package top

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cmd/weft/internal/text"
	"github.com/weft-fabric/weft/internal/proxy"
)

// answerTime is how long a process has to answer.
const answerTime = 2 * time.Second

// ask calls f with a connection to the service thread of a process.
func ask(pid int, f func(c *proxy.Client) error) error {
	c, err := proxy.Dial(proxy.PeerAddress("service", pid), answerTime)
	if errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("process %d has no service thread: it does not use weft, has no automatic progress, or "+
			"runs with FI_WEFT_SERVICE=no", pid)
	}
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}

// state is what the threads of a process are at.
func state(pid int) (answer string, err error) {
	err = ask(pid, func(c *proxy.Client) error {
		b, err := c.Call(proxy.KindState, nil)
		answer = strings.Map(printable, string(b))
		return err
	})
	return answer, err
}

// printable keeps what another process writes from changing the terminal.
func printable(r rune) rune {
	if r == '\n' || unicode.IsPrint(r) {
		return r
	}
	return '?'
}

// dump writes what the threads of a process are at.
func dump(w io.Writer, pid int) error {
	s, err := state(pid)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, s); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// traceEvent is an event of the trace event format that Chrome and Perfetto read:
// a name of a thread (M), or the begin (B) and end (E) of what it does. Times are
// in us. https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
type traceEvent struct {
	Name  string            `json:"name"`
	Phase string            `json:"ph"`
	Time  float64           `json:"ts"`
	PID   int               `json:"pid"`
	TID   int32             `json:"tid"`
	Args  map[string]string `json:"args,omitempty"`
}

// traceEvents are the times in which threads were active. A time whose begin is
// not known any more is left out.
func traceEvents(pid int, list []proxy.Event) []traceEvent {
	out := []traceEvent{}
	active := map[int32]bool{}
	named := map[int32]bool{}
	for _, e := range list {
		if !named[e.TID] {
			named[e.TID] = true
			out = append(out, traceEvent{Name: "thread_name", Phase: "M", PID: pid, TID: e.TID,
				Args: map[string]string{"name": e.Thread}})
		}
		if e.Active == active[e.TID] {
			continue
		}
		active[e.TID] = e.Active
		phase := "E"
		if e.Active {
			phase = "B"
		}
		out = append(out, traceEvent{Name: "active", Phase: phase, Time: float64(e.Time) / float64(time.Microsecond),
			PID: pid, TID: e.TID})
	}
	return out
}

// events writes them as JSON.
func events(w io.Writer, pid int) error {
	return ask(pid, func(c *proxy.Client) error {
		list, err := c.Events()
		if err != nil {
			return err
		}
		return text.JSON(w, struct {
			Events []traceEvent `json:"traceEvents"`
		}{traceEvents(pid, list)})
	})
}
