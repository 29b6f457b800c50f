package regcache

import (
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
