package peers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

const limit = time.Second

var start = time.Unix(1000, 0)

// TestPause: the next attempt comes a pause after the last one, and at once after a reset.
func TestPause(t *testing.T) {
	var a Attempts
	if !a.Begin(start) {
		t.Fatal("the first one is too early")
	}
	if a.Begin(start.Add(RetryInterval - 1)) {
		t.Error("one within the pause")
	}
	if !a.Begin(start.Add(RetryInterval)) || a.Begin(start.Add(RetryInterval)) {
		t.Error("not one after the pause")
	}
	a.Reset()
	if !a.Begin(start.Add(RetryInterval)) {
		t.Error("none after a reset")
	}
}

// TestSilence: a peer that does not answer is unreachable when the limit, from the first attempt on, is over.
func TestSilence(t *testing.T) {
	var a Attempts
	if s := a.Status(start.Add(time.Hour), limit); s != fi.EAGAIN || a.Silent(start.Add(time.Hour), limit) {
		t.Errorf("before the first attempt: %v", s)
	}
	for after, want := range map[time.Duration]fi.Errno{0: fi.EAGAIN, limit: fi.EAGAIN, limit + 1: fi.EHOSTUNREACH} {
		a = Attempts{}
		if s, news := a.Fail(hw.ErrUnreachable, start, limit); s != fi.EAGAIN || news {
			t.Errorf("the first attempt: %v, %v", s, news)
		}
		now := start.Add(after)
		if s, news := a.Fail(hw.ErrUnreachable, now, limit); s != want || news {
			t.Errorf("another one after %v: %v, %v", after, s, news)
		}
		if s := a.Status(now, limit); s != want || a.Silent(now, limit) != (want == fi.EHOSTUNREACH) {
			t.Errorf("between attempts, after %v: %v", after, s)
		}
	}
}

// TestRefusals: what a post gets of each refusal, and that one is reported once until it changes.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		err        error
		want, lost fi.Errno
		reported   bool
	}{
		{hw.ErrNoPath, fi.EHOSTUNREACH, fi.ECONNRESET, true},
		{hw.ErrPermission, fi.EACCES, fi.EACCES, true},
		{hw.ErrInvalid, fi.EINVAL, fi.EINVAL, true},
		{hw.ErrNoResource, fi.EAGAIN, fi.EAGAIN, false},
		{hw.ErrUnreachable, fi.EAGAIN, fi.ECONNRESET, false},
	} {
		var a Attempts
		wrapped := fmt.Errorf("connect: %w", c.err)
		for n, want := range []bool{c.reported, false} {
			if s, news := a.Fail(wrapped, start, limit); s != c.want || news != want {
				t.Errorf("%v, time %d: %v, reported %v", c.err, n, s, news)
			}
		}
		if _, news := a.Fail(fmt.Errorf("now %w", c.err), start, limit); news != c.reported {
			t.Errorf("%v in other words: reported %v", c.err, news)
		}
		a.Lose(false)
		if s, _ := a.Fail(wrapped, start, limit); s != c.lost {
			t.Errorf("%v of a peer that was there: %v", c.err, s)
		}
		if a.Reset(); a != (Attempts{}) {
			t.Errorf("%v: %+v is left", c.err, a)
		}
	}
}

// TestPathLost: a peer of which the path alone was lost may come back until the limit, from the first attempt on, is
// over, or it is known to have ended.
func TestPathLost(t *testing.T) {
	noPath := fmt.Errorf("not yet: %w: %w", hw.ErrNoPath, hw.ErrUnreachable)
	for _, err := range []error{noPath, hw.ErrUnreachable} {
		var a Attempts
		a.Lose(true)
		a.Lose(false) // the same end, reported again
		if s := a.Status(start, limit); s != fi.EAGAIN {
			t.Errorf("before an attempt: %v", s)
		}
		for after, want := range []fi.Errno{fi.EAGAIN, fi.EAGAIN, fi.ECONNRESET, fi.ECONNRESET} {
			now := start.Add(time.Duration(after) * 3 * limit / 4)
			if s, _ := a.Fail(err, now, limit); s != want || a.Status(now, limit) != want {
				t.Errorf("%v, attempt %d: %v, want %v", err, after, s, want)
			}
		}
		a.Reset()
		a.Lose(false)
		if s, _ := a.Fail(err, start, limit); s != fi.ECONNRESET {
			t.Errorf("%v, a peer that is gone: %v", err, s)
		}
	}
	ended := fmt.Errorf("closed: %w", hw.ErrPeerDead)
	for _, err := range []error{
		fmt.Errorf("%w: %w", ended, noPath),
		fmt.Errorf("%w: %w", hw.ErrUnreachable, ended), // of another transport
	} {
		var a Attempts
		a.Lose(true)
		again := fmt.Errorf("lost in the hand-shake: %w: %w", errPath, noPath) // ErrPeerDead, too
		for _, lost := range []error{noPath, again} {
			if s, _ := a.Fail(lost, start, limit); s != fi.EAGAIN {
				t.Errorf("%v, a path that is lost: %v", lost, s)
			}
		}
		if s, _ := a.Fail(err, start, limit); s != fi.ECONNRESET {
			t.Errorf("%v, one that has ended since: %v", err, s)
		}
		if s, _ := a.Fail(hw.ErrUnreachable, start, limit); s != fi.ECONNRESET {
			t.Errorf("%v, and then: %v", err, s)
		}
		a.Lose(true)
		if s := a.Status(start, limit); s != fi.ECONNRESET {
			t.Errorf("%v, reported again: %v", err, s)
		}
	}
	var a Attempts
	if s, _ := a.Fail(fmt.Errorf("%w: %w", hw.ErrUnreachable, ended), start, limit); s != fi.EAGAIN {
		t.Errorf("one that was never connected: %v", s)
	}
}

// TestGone: a peer that is gone takes nothing, and is not reported again.
func TestGone(t *testing.T) {
	var e hw.Endpoint = Gone{}
	for what, err := range map[string]error{
		"short": e.AMShort(1, 2, nil, nil), "copied": e.AMBcopy(1, 2, nil, 0, nil, 0),
		"check": e.Check(), "state": e.Err(),
	} {
		if !errors.Is(err, hw.ErrPeerDead) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := (Gone{PathLost: true}).Err(); !errors.Is(err, hw.ErrPeerDead) || !errors.Is(err, hw.ErrPathLost) {
		t.Errorf("a path that is lost: %v", err)
	} else if errors.Is(e.Err(), hw.ErrPathLost) {
		t.Errorf("a peer that is gone: %v", e.Err())
	}
	if e.Wake(); e.EagerOpen() || !e.Reported() || e.Address() != nil {
		t.Error("it is there")
	}
}
