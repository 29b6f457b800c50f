package exchange

import "github.com/weft-fabric/weft/internal/congestion"

// Use is what a member says of its use of its host's links to the other members of the host, which have the same. The
// counters begin anywhere, wrap around and go on from one operation to the next.
type Use struct {
	// On says that an operation is under way. The rest is 0 without.
	On bool
	// Waits says that there are senders that may be invited.
	Waits bool
	// Pairs are the peers that are being sent to, Active those with chunks on their way.
	Pairs, Active uint32
	// Invited counts the credits given in the operation.
	Invited uint32
	// Share is what the pairs deliver, in bytes per second.
	Share float64
	// Given counts the bytes of chunks that the link was given, Taken those of them that were acknowledged, and Got
	// those that have arrived.
	Given, Taken, Got uint64
	// Left are the bytes that have not been sent, and InLeft those that have not arrived.
	Left, InLeft int64
}

// Bounds of what is believed of another member: pairs, bytes a second, bytes that have not been sent or received,
// and bytes by which counters grow from one reading to the next.
const (
	mostPairs  = 1 << 24
	mostShare  = 1 << 40
	mostLeft   = 1 << 50
	mostGrowth = 1 << 36
)

// sharing is what the other members of the host do, all together.
type sharing struct {
	uses   []Use // of each, as read last
	ranks  int   // that have bytes to send, or on their way
	pairs  int
	active int
	share  float64
	flying int64 // bytes on their way
	left   int64
	inLeft int64

	invited bool   // one has invited a sender in the period
	behind  bool   // one has senders to invite, and has invited fewer than least
	least   uint32 // credits of the one with senders to invite that has given the fewest
}

// Add adds to a use that of one more engine of the same member, which said before what it said when it was last added.
func (u *Use) Add(of, before *Use) {
	u.On, u.Waits = u.On || of.On, u.Waits || of.Waits
	u.Pairs, u.Active, u.Invited = u.Pairs+of.Pairs, u.Active+of.Active, u.Invited+of.Invited
	u.Share, u.Left, u.InLeft = u.Share+of.Share, u.Left+of.Left, u.InLeft+of.InLeft
	u.Given += of.Given - before.Given
	u.Taken += of.Taken - before.Taken
	u.Got += of.Got - before.Got
}

// Near says that a peer is on this member's host: what goes to it and comes from it takes no place on the links, and
// goes meanwhile. It is to be called before [Engine.Start], and stays so.
func (e *Engine) Near(peer int) { e.known.marks[peer] |= markNear }

// near reports whether a peer is on this member's host.
func (e *Engine) near(i int32) bool { return e.known.marks[i]&markNear != 0 }

// Share takes in what the other members of the host do, each at its own place of a list that has the same length at
// each call. What cannot be true is cut down to what can: a wrong value costs time and nothing else. It is to be
// called before an event, as often as others may have changed. The engine does not keep the list.
func (e *Engine) Share(now congestion.Time, uses []Use) {
	s := &e.others
	if len(s.uses) != len(uses) {
		s.uses = make([]Use, len(uses))
	}
	*s = sharing{uses: s.uses, invited: s.invited}
	var given, taken, got uint64
	for i := range uses {
		u, before := &uses[i], &s.uses[i]
		if u.On && before.On {
			given += growth(u.Given, before.Given)
			taken += growth(u.Taken, before.Taken)
			got += growth(u.Got, before.Got)
			s.invited = s.invited || u.Invited != before.Invited
		}
		if u.On {
			s.add(u)
		}
		*before = *u
	}
	if taken != 0 {
		e.carried += int64(taken)
		e.ackedAt = now
	}
	if given != 0 {
		e.drained = max(e.drained, now).Add(e.airtime(int64(given)))
	}
	e.in.bytes += int64(got)
}

// Beside is how many other members of the host have bytes to send, or on their way, as far as is known.
func (e *Engine) Beside() int { return e.others.ranks }

// growth is by how much a counter has grown, 0 if by more than can be.
func growth(now, before uint64) uint64 {
	if d := now - before; d <= mostGrowth {
		return d
	}
	return 0
}

// add adds what a member does.
func (s *sharing) add(u *Use) {
	s.pairs += int(min(u.Pairs, mostPairs))
	s.active += int(min(u.Active, mostPairs))
	if u.Share > 0 { // which no NaN is
		s.share += min(u.Share, mostShare)
	}
	flying := int64(growth(u.Given, u.Taken))
	left := min(max(u.Left, 0), mostLeft)
	if flying|left != 0 {
		s.ranks++
	}
	s.flying += flying
	s.left += left
	s.inLeft += min(max(u.InLeft, 0), mostLeft)
	if u.Waits && (!s.behind || u.Invited < s.least) {
		s.behind, s.least = true, u.Invited
	}
}

// turn reports whether it is this member that may invite a sender at the end of a period: no other one of the host has
// invited one in it, and none that has senders to invite has invited fewer.
func (e *Engine) turn() bool {
	s := &e.others
	invited := s.invited
	s.invited = false
	return !invited && (!s.behind || uint32(e.report.Invited) <= s.least)
}

// Use is what this member says.
func (e *Engine) Use() Use {
	if e.outOver == e.cfg.Peers && e.in.over == e.cfg.Peers {
		return Use{Given: e.given, Taken: e.given, Got: e.in.got}
	}
	return Use{
		On: true, Waits: e.in.waiting.len() != 0, Pairs: uint32(e.begun.count), Active: uint32(e.active),
		Invited: uint32(e.report.Invited), Share: e.shares, Given: e.given, Taken: e.taken,
		Got: e.in.got, Left: e.left, InLeft: e.in.left,
	}
}
