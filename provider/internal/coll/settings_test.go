package coll

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// slow is a peer that is connected to at some attempt, or not at all.
type slow struct {
	Peer
	attempts, at int
	err          error
}

func (p *slow) Connect() (Path, error) {
	if p.attempts++; p.attempts < p.at {
		return nil, fi.EAGAIN
	}
	return reached{}, p.err
}

// reached is a path.
type reached struct{ Path }

func (reached) Over() *Transport { return &Transport{} }

// TestReach: members are connected to beside each other, and one that cannot be ends a join before one of a lower rank
// has answered.
func TestReach(t *testing.T) {
	list := []*slow{{at: 3}, {at: 2}, {at: 3}}
	g := &Group{members: []collMember{{peer: list[0]}, {}, {peer: list[1]}, {peer: list[2]}}, rank: 1}
	for n, want := range []error{fi.EAGAIN, fi.EAGAIN, nil} {
		if err := g.reach(); !errors.Is(err, want) {
			t.Errorf("attempt %d: %v, not %v", n, err, want)
		}
	}
	list[0].at, list[2].err = 99, fi.EHOSTUNREACH
	if err := g.reach(); !errors.Is(err, fi.EHOSTUNREACH) {
		t.Errorf("a member has no messages: %v", err)
	}
}
