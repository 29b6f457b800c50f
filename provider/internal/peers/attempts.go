package peers

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// RetryInterval is the pause between two attempts to connect to a peer that does not answer.
const RetryInterval = time.Millisecond

// Attempts are those to connect to a peer, and what posts to it get meanwhile. The zero Attempts is of a peer to which
// none was made. One thread at a time uses it.
//
//	none made → Begin → Fail, as often as it takes → Reset when one succeeds
//	connected → Lose → as before, but that the peer is known to have been there
//
// A peer of which only the path was lost is awaited like one that has not answered yet.
type Attempts struct {
	since   time.Time // of the first failed one, zero: none has failed
	next    time.Time // when the next may come
	lost    bool      // the peer was connected and is gone
	path    bool      // or the path to it alone
	refused string    // the last refusal that was reported
}

// Begin begins an attempt, and reports false if it is too early for one.
func (a *Attempts) Begin(now time.Time) bool {
	if now.Before(a.next) {
		return false
	}
	a.next = now.Add(RetryInterval)
	return true
}

// Fail is the outcome of an attempt that failed with an error of hw.Iface's Connect: what posts get, and whether it is
// a refusal that was not reported before. limit is as of Status. Errors: fi.EHOSTUNREACH where no transport leads to
// the peer, or what Status says if it was connected once, which err may say to have ended since (Ended); fi.EAGAIN
// where this side has no room; fi.EACCES and
// fi.EINVAL for what the peer or the transport refuses; else those of Status.
func (a *Attempts) Fail(err error, now time.Time, limit time.Duration) (status fi.Errno, news bool) {
	a.path = a.path && !Ended(err)
	switch {
	case errors.Is(err, hw.ErrNoPath):
		status = fi.EHOSTUNREACH
		if a.lost {
			a.failed(now)
			status = a.Status(now, limit)
		}
	case errors.Is(err, hw.ErrNoResource):
		return fi.EAGAIN, false
	case errors.Is(err, hw.ErrPermission):
		status = fi.EACCES
	case errors.Is(err, hw.ErrInvalid):
		status = fi.EINVAL
	default:
		a.failed(now)
		return a.Status(now, limit), false
	}
	text := err.Error()
	news = text != a.refused
	a.refused = text
	return status, news
}

// Ended reports whether an error says that the peer has ended, and not only that the path to it is lost.
func Ended(err error) bool { return errors.Is(err, hw.ErrPeerDead) && !errors.Is(err, hw.ErrPathLost) }

// WithEnd is an error of Connect, or nil, that says of the peer's end what one of another transport says: which way is
// tried next is not for that one to say.
func WithEnd(err, other error) error {
	if err == nil || !Ended(other) || Ended(err) {
		return err
	}
	return fmt.Errorf("%w: %w", err, hw.ErrPeerDead)
}

// failed notes that an attempt has failed.
func (a *Attempts) failed(now time.Time) {
	if a.since.IsZero() {
		a.since = now
	}
}

// Status is what posts get between two attempts: fi.ECONNRESET if the peer was connected once and is gone. When one
// that may be there has not answered for limit, fi.EHOSTUNREACH, or fi.ECONNRESET if it was connected once; else
// fi.EAGAIN, because it may still come up.
func (a *Attempts) Status(now time.Time, limit time.Duration) fi.Errno {
	silent := a.Silent(now, limit)
	switch {
	case a.lost && (silent || !a.path):
		return fi.ECONNRESET
	case silent:
		return fi.EHOSTUNREACH
	}
	return fi.EAGAIN
}

// Silent reports whether the peer has not answered for limit.
func (a *Attempts) Silent(now time.Time, limit time.Duration) bool {
	return !a.since.IsZero() && now.Sub(a.since) > limit
}

// Lose notes that the peer was there and is gone, or that only the path to it is known to be. What was noted before
// holds.
func (a *Attempts) Lose(path bool) {
	if !a.lost {
		a.lost, a.path = true, path
	}
}

// Reset forgets all that came before: an attempt has succeeded, or another endpoint has the peer's address.
func (a *Attempts) Reset() { *a = Attempts{} }

// Gone stands for the transport endpoint of a peer whose end was reported: an address vector may keep the addresses of
// many of them.
type Gone struct {
	PathLost bool // only the path to it is known to be gone
}

// AMShort reports that the peer is gone.
func (Gone) AMShort(hw.AMID, uint64, []byte, []byte) error { return hw.ErrPeerDead }

// AMBcopy reports that the peer is gone.
func (Gone) AMBcopy(hw.AMID, uint64, []byte, int, func(dst []byte), int) error { return hw.ErrPeerDead }

// Address is nil.
func (Gone) Address() []byte { return nil }

// EagerOpen is false.
func (Gone) EagerOpen() bool { return false }

// Wake has no effect.
func (Gone) Wake() {}

// Check reports that the peer is gone.
func (Gone) Check() error { return hw.ErrPeerDead }

// Err reports that the peer is gone.
func (g Gone) Err() error {
	if g.PathLost {
		return errPath
	}
	return hw.ErrPeerDead
}

var errPath = fmt.Errorf("%w: %w", hw.ErrPathLost, hw.ErrPeerDead)

// Reported is true.
func (Gone) Reported() bool { return true }
