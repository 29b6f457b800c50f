package deferred

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

// pairs are the counters and endpoints, numbers here, that are driven; refuses is an endpoint for which a limit holds.
type pairs struct {
	t       *testing.T
	driven  map[*cq.Counter]map[int]bool
	refuses int
	limit   int
}

func (p *pairs) drive(e int, c *cq.Counter) error {
	n := 0
	for _, of := range p.driven {
		if of[e] {
			n++
		}
	}
	if e == p.refuses && n == p.limit {
		return fi.EMFILE
	}
	if p.driven[c][e] {
		p.t.Errorf("endpoint %d is driven twice", e)
	}
	if p.driven[c] == nil {
		p.driven[c] = map[int]bool{}
	}
	p.driven[c][e] = true
	return nil
}

func (p *pairs) undrive(e int, c *cq.Counter) {
	if !p.driven[c][e] {
		p.t.Errorf("endpoint %d is not driven", e)
	}
	delete(p.driven[c], e)
}

func (p *pairs) want(what string, c *cq.Counter, eps ...int) {
	p.t.Helper()
	if len(p.driven[c]) != len(eps) {
		p.t.Errorf("%s: %v, want %v", what, p.driven[c], eps)
	}
	for _, e := range eps {
		if !p.driven[c][e] {
			p.t.Errorf("%s: %v, want %v", what, p.driven[c], eps)
		}
	}
}

// TestDrives has every counter drive every endpoint, whichever comes first, and nothing of one that was refused.
func TestDrives(t *testing.T) {
	p := &pairs{t: t, driven: map[*cq.Counter]map[int]bool{}, refuses: 3}
	d := NewDrives(p.drive, p.undrive)
	var q Queue
	a, b := counterOf(t, &q), counterOf(t, &q)
	join := func(e int, want error) {
		t.Helper()
		if err := d.Join(e); !errors.Is(err, want) {
			t.Fatalf("join %d: %v, want %v", e, err, want)
		}
	}
	drive := func(c *cq.Counter, want error) {
		t.Helper()
		if err := d.Drive(c); !errors.Is(err, want) {
			t.Fatalf("drive: %v, want %v", err, want)
		}
	}
	join(1, nil)
	drive(a, nil)
	drive(a, nil)
	join(2, nil)
	drive(b, nil)
	p.want("first counter", a, 1, 2)
	p.want("second counter", b, 1, 2)

	p.limit = 1
	join(3, fi.EMFILE)
	p.want("an endpoint that did not join", a, 1, 2)
	p.want("an endpoint that did not join", b, 1, 2)
	if _, ok := d.Find(func(e int) bool { return e == 3 }); ok {
		t.Error("an endpoint that did not join is found")
	}
	d.Undrive(b)
	d.Undrive(b)
	p.want("a counter that is closed", b)
	join(3, nil)
	drive(b, fi.EMFILE)
	p.want("a counter that is refused", b)
	p.want("the other counter", a, 1, 2, 3)
	if e, ok := d.Find(func(e int) bool { return e > 1 }); !ok || e != 2 {
		t.Errorf("found %d, %v", e, ok)
	}
	d.Part(2)
	d.Part(2)
	p.want("an endpoint that has left", a, 1, 3)
	d.Wake()
	d.Do(func() { p.want("at the end", a, 1, 3) })
}
