package coll

import "testing"

// TestDropBeside: an operation that fails drops its own sends and no other's, such as of a larger group.
func TestDropBeside(t *testing.T) {
	small := &collOp{group: &Group{members: make([]collMember, 2)}}
	large := &collOp{group: &Group{members: make([]collMember, 4)}}
	own, other := &collStep{op: small, peer: 1, id: 1}, &collStep{op: large, peer: 3, id: 2}
	l := longSteps{c: &Protocol{}, sends: map[uint64]*collStep{own.id: own, other.id: other}}
	l.dropOf(small)
	if len(l.sends) != 1 || l.sends[other.id] != other {
		t.Errorf("%d sends are left", len(l.sends))
	}
}
