package netsim

import "testing"

// TestFigures: every line of the plots of all-to-alls rises to all that there is.
func TestFigures(t *testing.T) {
	names := map[string]bool{}
	for _, f := range Figures() {
		if names[f.Name] || f.Title == "" || f.X == "" || f.Y == "" {
			t.Errorf("%+v comes twice, or says too little", f)
		}
		names[f.Name] = true
	}
	if len(names) < 4 {
		t.Fatalf("%d figures", len(names))
	}
	for i := range fabricCases {
		l, before := fabricCases[i].ends(20, 19, 256<<10), Point{}
		for _, p := range l.Points {
			if p.X < before.X || p.Y < before.Y || p.X > 1.5 {
				t.Fatalf("%s: %v behind %v", l.Name, p, before)
			}
			before = p
		}
		if len(l.Points) != 20 || before.X < 1 || before.Y != 100 {
			t.Errorf("%s ends at %v after %d points", l.Name, before, len(l.Points))
		}
	}
	lines := networks[0].arrivals([]order{orders[0], orders[3]})
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, l := range lines {
		before := Point{}
		for _, p := range l.Points {
			if p.X <= before.X || p.Y < before.Y || p.Y > 100 {
				t.Fatalf("%s: %v behind %v", l.Name, p, before)
			}
			before = p
		}
		if before.Y != 100 {
			t.Errorf("%s ends at %v", l.Name, before)
		}
	}
}
