package refs

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// TestSet: what is closed is no member, and keeps no memory.
func TestSet(t *testing.T) {
	type object struct{ open bool }
	var s Set
	add := func() *object {
		o := &object{open: true}
		s.Add(o, func() bool { return o.open })
		return o
	}
	ended := 0
	end := func() error {
		ended++
		return nil
	}
	first := add()
	for range 200 {
		add().open = false
	}
	if n := len(s.objects); n > 40 {
		t.Errorf("%d objects kept", n)
	}
	if !s.Has(first) || s.Has(new(object)) {
		t.Error("not the members that were added")
	}
	if err := s.WhenClosed(end); !errors.Is(err, fi.EBUSY) || ended != 0 {
		t.Errorf("with an open object: %v, %d calls", err, ended)
	}
	first.open = false
	if err := s.WhenClosed(end); err != nil || ended != 1 {
		t.Errorf("with none: %v, %d calls", err, ended)
	}
}
