package provider

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// TestLateCounterOnSilent: nothing sleeps on a late counter where peers may write what rings no bell.
func TestLateCounterOnSilent(t *testing.T) {
	for _, c := range []struct {
		unbelled bool
		wait     fi.WaitObj
		bell     bool
	}{{false, fi.WaitFD, true}, {true, fi.WaitFD, true}, {true, fi.WaitNone, false}} {
		b := newBench(t, nil, nil)
		s := b.side(t)
		s.ep.base.transports.unbelled = c.unbelled
		counter, err := b.domain.OpenCounter(&fi.CntrAttr{WaitObj: c.wait}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.ep.BindCounter(counter, fi.Recv); err != nil {
			t.Fatal(err)
		}
		bell := s.ep.base.bell
		if (bell != nil) != c.bell {
			t.Errorf("%+v: bell %v", c, bell)
		}
		if bell != nil && bell.HasWork() != c.unbelled {
			t.Errorf("%+v: there is work without an arrival: %v", c, bell.HasWork())
		}
		s.close()
		if err := counter.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBindClosed: nothing is bound to an endpoint that is closed.
func TestBindClosed(t *testing.T) {
	b := newBench(t, nil, nil)
	s := b.side(t)
	e := s.ep
	s.close()
	counter, err := b.domain.OpenCounter(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantErrno(t, e.BindCounter(counter, fi.Send), fi.EBADF, "bind to a closed endpoint")
	if err := counter.Close(); err != nil {
		t.Error(err)
	}
}
