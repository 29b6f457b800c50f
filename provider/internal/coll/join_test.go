package coll

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// joiner is a program of a member: each letter of what it does is one step. J joins, X closes the oldest of its groups,
// Y the youngest, R ends it and begins it anew, without a group. A member whose group has lost one, or whose join has
// failed, closes it and joins again, once it knows those that are new.
type joiner struct {
	does   string
	done   int
	groups []*Group
	again  int // times that it did
	was    map[*Group]joinWas
}

// joinWas is what a join was after the step before.
type joinWas struct {
	id, number uint64
	joined     bool
	since      int // the step in which it got its number
}

// joiners are members in the middle of their programs.
type joiners struct {
	*mesh
	list      []*joiner
	ends      *cleanups
	withdrawn map[[2]uint64]int // step in which a join was closed before its end, by member and number of the group
	step      int
}

// cleanups are what a test that has many meshes does at the end of each.
type cleanups struct {
	testing.TB
	list []func()
}

func (c *cleanups) Cleanup(f func()) { c.list = append(c.list, f) }

func (c *cleanups) end() {
	for _, f := range slices.Backward(c.list) {
		f()
	}
}

func newJoiners(t testing.TB, programs []string) *joiners {
	ends := &cleanups{TB: t}
	j := &joiners{mesh: newMesh(ends, onHost(len(programs)), nil), ends: ends, withdrawn: map[[2]uint64]int{}}
	for i, p := range programs {
		j.list = append(j.list, &joiner{does: p, was: map[*Group]joinWas{}})
		j.meet(i)
	}
	return j
}

// meet has a member know the others as they are now.
func (j *joiners) meet(i int) {
	for k := range j.nodes {
		j.nodes[i].other(k)
	}
}

// knows reports whether a member knows the others as they are now.
func (j *joiners) knows(i int) bool {
	return !slices.ContainsFunc(j.nodes, func(o *node) bool { return j.nodes[i].other(o.number) != o })
}

// lost reports whether a member closes a group and joins again.
func lost(g *Group) bool {
	return g.state.Load() == groupFailed || g.state.Load() == groupJoined &&
		slices.ContainsFunc(g.members, func(m collMember) bool { return m.left || m.gone || m.dead })
}

// steps are what may happen next: a member's own, or that it gets a message.
func (j *joiners) steps() (can []int) {
	n := len(j.list)
	for i, p := range j.list {
		if p.done < len(p.does) || j.knows(i) && slices.ContainsFunc(p.groups, lost) {
			can = append(can, i*(n+1)+n)
		}
		for from := range n {
			if len(j.nodes[i].inbox[from]) != 0 {
				can = append(can, i*(n+1)+from)
			}
		}
	}
	return can
}

// take has one of them happen.
func (j *joiners) take(step int) {
	n := len(j.list)
	i, from := step/(n+1), step%(n+1)
	node, p := j.nodes[i], j.list[i]
	j.step++
	switch {
	case from < n:
		node.leased = true
		node.receive(from)
		node.leased = false
	case p.done < len(p.does):
		p.done++
		switch p.does[p.done-1] {
		case 'J':
			p.groups = append(p.groups, node.begin())
		case 'X':
			j.leave(i, 0)
		case 'Y':
			j.leave(i, len(p.groups)-1)
		case 'R':
			node.die()
			p.groups = nil
			maps.DeleteFunc(j.withdrawn, func(at [2]uint64, _ int) bool { return at[0] == uint64(i) })
			node.after = j.newNode(i, node.host, n, nil)
			j.nodes[i] = node.after
			j.meet(i)
		}
	default:
		j.leave(i, slices.IndexFunc(p.groups, lost))
		p.groups = append(p.groups, j.nodes[i].begin())
		if p.again++; p.again > 4*n {
			j.t.Errorf("%v: member %d joins without end", j.programs(), i)
		}
	}
	node = j.nodes[i]
	node.leased = true
	for k := 0; k < 100 && (node.protocol.Busy() || k == 0); k++ { // as often as there is no room
		node.pump()
	}
	node.leased = false
	j.follow(i)
}

// follow checks what has become of a member's joins in a step: a new number comes with a new one of the group, and none
// ends with a member that had withdrawn before it began.
func (j *joiners) follow(i int) {
	p := j.list[i]
	for _, g := range p.groups {
		was, is := p.was[g], joinWas{g.id, g.join.number, g.state.Load() == groupJoined, j.step}
		if was.id == is.id {
			is.since = was.since
		}
		if p.was[g] = is; was.id == is.id && was.number != is.number {
			j.t.Errorf("%v: a join of member %d is named alike under another number", j.programs(), i)
		}
		for k, m := range g.members {
			at, withdrawn := j.withdrawn[[2]uint64{uint64(k), m.id}]
			if is.joined && !was.joined && withdrawn && at < is.since {
				j.t.Errorf("%v: a join of member %d ends with %d, which had withdrawn before", j.programs(), i, k)
			}
		}
	}
}

func (j *joiners) leave(i, group int) {
	if g := j.list[i].groups[group]; g.state.Load() == groupJoining {
		j.withdrawn[[2]uint64{uint64(i), g.id}] = j.step
	}
	if err := j.list[i].groups[group].Close(); err != nil {
		j.t.Error(err)
	}
	j.list[i].groups = slices.Delete(j.list[i].groups, group, group+1)
}

func (j *joiners) programs() (p []string) {
	for _, l := range j.list {
		p = append(p, l.does)
	}
	return p
}

// state is where the members are, as far as anything depends on it.
func (j *joiners) state() string {
	var b bytes.Buffer
	for i, p := range j.list {
		n := j.nodes[i]
		fmt.Fprint(&b, p.done, n.groups.generation, n.gone)
		for _, g := range p.groups {
			fmt.Fprint(&b, "g", g.id, g.state.Load(), g.join.number, g.join.left, g.join.unsent, g.join.void)
			for _, m := range g.members {
				fmt.Fprint(&b, m.id, m.joined, m.notified, m.knows, m.left, m.gone, m.dead)
			}
		}
		fmt.Fprint(&b, "e", n.protocol.joins.early)
		for _, s := range n.protocol.joins.series {
			fmt.Fprint(&b, "s", s.last)
		}
		for _, q := range n.inbox {
			for _, m := range q {
				fmt.Fprintf(&b, "m%d,%x,%x,%v", m.id, m.header, m.head, m.lost)
			}
			fmt.Fprint(&b, ";")
		}
	}
	return b.String()
}

// check says what is wrong where nothing can happen any more. All programs leave as many groups open; these are then
// groups of all.
func (j *joiners) check() error {
	for i, p := range j.list {
		for k, g := range p.groups {
			if !strings.ContainsAny(strings.Join(j.programs(), ""), "XYR") && g.join.number != uint64(k+1) {
				return fmt.Errorf("join %d of member %d has the number %d", k, i, g.join.number)
			}
			if g.state.Load() != groupJoined {
				return fmt.Errorf("a join of member %d, with the number %d, has not ended", i, g.join.number)
			}
			for k, m := range g.members {
				if k != i && !slices.ContainsFunc(j.list[k].groups, func(o *Group) bool {
					return o.id == m.id && o.members[i].id == g.id
				}) {
					return fmt.Errorf("member %d is in a group of %d that %d is not in", i, k, k)
				}
			}
		}
		if n := j.nodes[i]; n.malformed != 0 {
			return fmt.Errorf("member %d has got %d messages that are malformed", i, n.malformed)
		}
		if err := j.nodes[i].protocol.Idle(); err != nil {
			return fmt.Errorf("member %d has %w", i, err)
		}
	}
	return nil
}

// TestJoins goes through all orders in which the joins, closes and messages of two members can come, and of three that
// only join. ({"JXJ", "J", "J"} takes minutes.)
func TestJoins(t *testing.T) {
	for _, programs := range [][]string{
		{"J", "J", "J"}, {"JXJ", "J"}, {"JXJ", "JXJ"}, {"JJ", "JJ"}, {"JJX", "JJX"}, {"JJX", "J"},
		{"JJY", "JXJ"}, {"JJJYX", "JJY"},
	} {
		if states := explore(t, programs); !t.Failed() {
			t.Logf("%v: %d states", programs, states)
		}
	}
}

// TestJoinsByChance goes through some orders of longer programs, in which members end and begin anew, too, and messages
// find no room.
func TestJoinsByChance(t *testing.T) {
	seeds := 5000
	if testing.Short() {
		seeds = 1000
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		programs, open, most := make([]string, 2+r.IntN(3)), 1+r.IntN(2), 6*min(r.IntN(4), 1)
		for i := range programs {
			programs[i] = program(r, open, most)
		}
		j := newJoiners(t, programs)
		j.r, j.full = r, []int{0, 3}[r.IntN(2)]
		path := []int{}
		for can := j.steps(); len(can) != 0 && !t.Failed(); can = j.steps() {
			step := can[r.IntN(len(can))]
			path = append(path, step)
			j.take(step)
		}
		if err := j.check(); err != nil {
			t.Errorf("seed %d, %v, steps %v: %v", seed, programs, path, err)
		}
		if j.ends.end(); t.Failed() {
			return
		}
	}
}

// program makes a program that leaves so many groups open, with less than so many steps before the last joins.
func program(r *rand.Rand, open, most int) string {
	var b strings.Builder
	left := 0
	for range r.IntN(max(most, 1)) {
		switch {
		case r.IntN(8) == 0:
			b.WriteByte('R')
			left = 0
		case left > 0 && r.IntN(2) == 0:
			b.WriteByte("XY"[r.IntN(2)])
			left--
		case left < open:
			b.WriteByte('J')
			left++
		}
	}
	return b.String() + strings.Repeat("J", open-left)
}

// explore goes through all orders of what members do and get.
func explore(t *testing.T, programs []string) int {
	seen := map[string]bool{}
	for todo := [][]int{nil}; len(todo) != 0 && !t.Failed(); {
		path := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		j := newJoiners(t, programs)
		for _, step := range path {
			j.take(step)
		}
		for s := j.state(); !seen[s] && !t.Failed(); s = j.state() {
			seen[s] = true
			can := j.steps()
			if len(can) == 0 {
				if err := j.check(); err != nil {
					t.Errorf("%v, steps %v: %v", programs, path, err)
				}
				break
			}
			for _, step := range can[1:] {
				todo = append(todo, append(slices.Clone(path), step))
			}
			path = append(path, can[0])
			j.take(can[0])
		}
		j.ends.end()
	}
	return len(seen)
}

// receiveAll takes in all of a node's messages, and goes on with what waits after each.
func (n *node) receiveAll(from int) {
	n.leased = true
	for len(n.inbox[from]) != 0 {
		n.receive(from)
		n.pump()
	}
	n.leased = false
}

// leave closes a group.
func (m *mesh) leave(g *Group) {
	m.t.Helper()
	if err := g.Close(); err != nil {
		m.t.Error(err)
	}
}

// TestJoinBereft: a join of three ends with fi.ECONNRESET at a member that knows another one to be killed, whichever
// words it has and whether the third ever comes. One that was ended by a member that has left since ends, unless the
// third withdraws: that has no other to end with.
func TestJoinBereft(t *testing.T) {
	const here, killed = 0, 1
	for _, c := range []struct {
		name, steps string // ab: a gets what b has sent; B, L, K, C: the members begin, 1 leaves, is killed, 2 closes
		want        uint32
	}{
		{"the third does not join", "b10K01", groupFailed},
		{"the third does not join, words of both", "b011001K01", groupFailed},
		{"the third has not taken the word", "B100102K01", groupFailed},
		{"it has ended the join", "B1012212001101210LK0102", groupJoined},
		{"the third withdraws", "B101221120110LKC0102", groupFailed},
		{"the third withdraws first", "B101221120110LC02K01", groupFailed},
	} {
		m := newMesh(t, onHost(3), nil)
		groups := make([]*Group, 3)
		for s := c.steps; s != ""; {
			switch s[0] {
			case 'b', 'B':
				for i := range map[byte]int{'b': 2, 'B': 3}[s[0]] {
					groups[i] = m.nodes[i].begin()
				}
			case 'L':
				if s := groups[killed].state.Load(); s != groupJoined {
					t.Fatalf("%s: the join of the member that leaves is in state %d", c.name, s)
				}
				m.leave(groups[killed])
			case 'K':
				m.nodes[killed].die()
			case 'C':
				m.leave(groups[2])
			default:
				m.nodes[s[0]-'0'].receiveAll(int(s[1] - '0'))
				s = s[1:]
			}
			s = s[1:]
		}
		if s := groups[here].state.Load(); s != c.want {
			t.Errorf("%s: the join is in state %d", c.name, s)
		}
	}
}

// TestJoinGivenBack: a word of a join that was closed is not kept longer than a join may have to rise beyond it.
func TestJoinGivenBack(t *testing.T) {
	m := newMesh(t, onHost(2), nil)
	first, second := m.nodes[0].begin(), m.nodes[0].begin()
	other := [2]*Group{m.nodes[1].begin(), m.nodes[1].begin()}
	m.nodes[0].receiveAll(1)
	m.leave(second)
	if n := len(m.nodes[0].protocol.joins.early); n != 1 {
		t.Errorf("%d words are given back", n)
	}
	m.nodes[1].receiveAll(0)
	m.nodes[0].receiveAll(1)
	if first.state.Load() != groupJoined || other[0].state.Load() != groupJoined {
		t.Error("the first join has not ended")
	}
	m.nodes[0].idle()
}

// TestJoinNumbers: a join whose number no member comes to is refused, and one of this side ends with fi.EINVAL.
func TestJoinNumbers(t *testing.T) {
	m := newMesh(t, onHost(2), nil)
	h := wire.CollJoin{Group: 1, Size: 2, Rank: 1}
	for _, number := range []uint64{0, 1<<48 + 1, ^uint64(0)} {
		h.Number = number
		before := m.nodes[0].malformed
		m.nodes[0].protocol.joins.onJoin(1, 5, h.Put(make([]byte, 64)), nil)
		if m.nodes[0].malformed != before+1 {
			t.Errorf("%d is taken", number)
		}
	}
	n := m.nodes[0]
	first := n.begin()
	h.Number, h.Settings = wire.MaxJoins, first.settingsOf()
	n.protocol.joins.onJoin(1, first.join.key, h.Put(make([]byte, 64)), nil)
	if first.join.number != wire.MaxJoins || first.state.Load() != groupJoining {
		t.Errorf("a join has the number %d", first.join.number)
	}
	if second := n.begin(); second.state.Load() != groupFailed {
		t.Errorf("a join behind the last number has the number %d", second.join.number)
	}
	if e, err := n.events.ReadErr(0); err != nil || e.Err != fi.EINVAL {
		t.Errorf("it ends with %+v, %v", e, err)
	}
	head := h.Put(make([]byte, 64))
	if binary.LittleEndian.Uint64(head[24:]) != 1<<48 || !h.Parse(head) {
		t.Errorf("% x", head)
	}
}
