package watch

import (
	"testing"

	"github.com/weft-fabric/weft/internal/stats"
)

// TestWithoutPage: a process that has no page any more has ended only if it is gone.
func TestWithoutPage(t *testing.T) {
	w, err := New(t.TempDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	lives := &stats.Snapshot{PID: w.host.Self.PID, Start: w.host.Self.Start, PIDNS: w.host.PIDNS, BootID: w.host.BootID}
	gone, booted := *lives, *lives
	gone.Start++
	booted.Start, booted.BootID[0] = lives.Start+2, lives.BootID[0]+1
	for _, s := range []*stats.Snapshot{lives, &gone, &booted} {
		w.last[keyOf(s)] = s
	}
	for round, count := range []int{3, 1} {
		l, err := w.Read()
		if err != nil || len(l.Processes) != count {
			t.Fatalf("sample %d: %d processes, %v", round, len(l.Processes), err)
		}
		for _, p := range l.Processes {
			if live := p.Snapshot == lives; p.Idle != live || p.Ended == live {
				t.Errorf("sample %d: %+v", round, p)
			}
		}
	}
}
