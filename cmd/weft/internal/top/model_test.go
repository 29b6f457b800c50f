package top

import (
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/cmd/weft/internal/watch"
	"github.com/weft-fabric/weft/internal/stats"
)

// TestSameID: of two processes of one id, in two pid namespaces, each can be selected, as can what is below them; only
// the one of this namespace is asked for its threads.
func TestSameID(t *testing.T) {
	sample := &watch.Sample{}
	for _, s := range []stats.Snapshot{
		{PID: 1, Start: 5, PIDNS: 10, Command: "first"}, {PID: 1, Start: 5, PIDNS: 11, Command: "second"},
		{PID: 2, Start: 7, PIDNS: 10, Command: "third"},
	} {
		sample.Processes = append(sample.Processes, watch.Process{Snapshot: &s})
	}
	var asked []int
	m := &model{
		threads: func(pid int) (string, error) { asked = append(asked, pid); return "an answer", nil },
		here:    func(p *watch.Process) bool { return p.PIDNS == 10 },
	}
	m.update(sample, nil)
	for _, want := range []string{"first", "second", "third", "third"} {
		m.key("enter")
		if screen := strings.Join(m.view(80, 24), "\n"); !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
		m.key("d")
		screen := strings.Join(m.view(80, 24), "\n")
		if foreign := want == "second"; strings.Contains(screen, "another pid namespace") != foreign ||
			strings.Contains(screen, "an answer") == foreign {
			t.Errorf("the threads of the %s:\n%s", want, screen)
		}
		m.key("esc")
		m.update(sample, nil)
		m.key("down")
	}
	if !slices.Equal(asked, []int{1, 2, 2}) {
		t.Errorf("asked %v", asked)
	}
}
