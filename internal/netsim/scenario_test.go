package netsim

import "testing"

// TestScenarios: every plot has something to show.
func TestScenarios(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Scenarios() {
		if names[s.Name] {
			t.Errorf("%s comes twice", s.Name)
		}
		names[s.Name] = true
		tr := s.Run()
		for _, lines := range [][]Series{tr.Windows, tr.RTTs, tr.Queue} {
			if len(lines) == 0 {
				t.Errorf("%s: an empty panel", s.Name)
			}
			for _, line := range lines {
				if len(line.Points) < 50 {
					t.Errorf("%s: %s has %d points", s.Name, line.Name, len(line.Points))
				}
			}
		}
	}
}
