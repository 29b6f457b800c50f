package regcache

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// TestStill: an entry in use stands for its memory until a change is published, of whatever memory, and again when it
// was found since. One that has changed does not, nor one for one use.
func TestStill(t *testing.T) {
	c, _, w := setUp(Config{})
	e := get(t, c, at(10), 1, hw.RemoteRead)
	want := func(what string, still bool) {
		t.Helper()
		if c.Still(e) != still {
			t.Errorf("%s: %t", what, !still)
		}
	}
	want("nothing has changed", true)
	w.list = append(w.list, Range{20 * pageSize, 21 * pageSize})
	want("other memory has changed", false)
	c.Put(get(t, c, at(10), 1, hw.RemoteRead))
	want("it was found since", true)
	w.list = append(w.list, Range{10 * pageSize, 11 * pageSize})
	want("its memory has changed", false)
	c.Put(get(t, c, at(10), 1, hw.RemoteRead))
	want("its memory is registered anew", false)
	c.Put(e)
	w.refuse = true
	e = get(t, c, at(12), 1, hw.RemoteRead)
	want("for one use", false)
	c.Put(e)
}

// TestKeep: where the device has no room those that keep entries are asked for them, until they end that.
func TestKeep(t *testing.T) {
	c, d, _ := setUp(Config{})
	d.room = 2
	asked := [2]int{}
	var owners [2]*Owner
	for i := range uint64(2) {
		e := get(t, c, at(10+2*i), 1, hw.RemoteRead)
		owners[i] = c.Keep(func() {
			if asked[i]++; asked[i] == 1 && i == 1 { // the other uses its own
				c.Put(e)
			}
		})
	}
	e := get(t, c, at(20), 1, hw.RemoteRead)
	if asked != [2]int{1, 1} || d.open != 2 {
		t.Errorf("asked %v, %d registrations", asked, d.open)
	}
	c.Unkeep(owners[0])
	c.Unkeep(owners[0])
	c.Unkeep(nil)
	if _, err := c.Get(at(30), 1, hw.RemoteRead); !errors.Is(err, hw.ErrNoResource) || asked != [2]int{1, 2} {
		t.Errorf("without room: %v, asked %v", err, asked)
	}
	c.Unkeep(owners[1])
	c.Put(e)
	if c.Put(get(t, c, at(30), 1, hw.RemoteRead)); asked != [2]int{1, 2} {
		t.Errorf("with room: asked %v", asked)
	}
}
