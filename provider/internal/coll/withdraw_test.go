package coll

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
)

// TestJoinWithdrawn: a join ends with fi.ETIMEDOUT at all that wait for a member which has withdrawn and does not join
// again, whether its word had found room or not, and not before the time that a silent peer has. It goes on if the
// member joins again within that time, and for as long as a member leaves it that has given no word.
func TestJoinWithdrawn(t *testing.T) {
	for _, c := range []struct {
		name          string
		full, returns bool
		begin         int // members that join at first; the last one withdraws
	}{
		{"word there", false, false, 3}, {"word without room", true, false, 3},
		{"joins again", false, true, 3}, {"joins again, word without room", true, true, 3},
		{"another one is late", false, false, 2},
	} {
		m := newMesh(t, onHost(3), nil)
		var groups []*Group
		for i := range c.begin {
			if m.full = 0; c.full && i == c.begin-1 {
				m.full = 1
			}
			groups = append(groups, m.nodes[i].begin())
		}
		m.leave(groups[c.begin-1])
		m.full = 0
		timeout := m.nodes[0].cfg.PeerTimeout
		settle := func() {
			for range 1000 {
				m.progress()
			}
		}
		expect := func(when string, want uint32) {
			t.Helper()
			for i := range c.begin - 1 {
				if s := groups[i].state.Load(); s != want {
					t.Errorf("%s: the join of member %d is in state %d %s", c.name, i, s, when)
				}
			}
		}
		settle()
		m.now = m.now.Add(timeout - time.Second)
		settle()
		expect("before its time", groupJoining)
		if c.returns {
			m.nodes[2].begin()
			settle()
		}
		m.now = m.now.Add(2 * time.Second)
		settle()
		if c.returns {
			expect("after the other has joined again", groupJoined)
			continue
		}
		expect("after its time", groupFailed)
		for i := range c.begin - 1 {
			if e, err := m.nodes[i].events.ReadErr(0); err != nil || e.Err != fi.ETIMEDOUT || e.Context != 99 {
				t.Errorf("%s: member %d has the event %+v, %v", c.name, i, e, err)
			}
		}
	}
	m := newMesh(t, onHost(2), nil)
	g := m.nodes[0].begin()
	m.now = m.now.Add(time.Hour)
	for range 100 {
		m.progress()
	}
	if s := g.state.Load(); s != groupJoining {
		t.Errorf("the join that no other has begun is in state %d", s)
	}
}
