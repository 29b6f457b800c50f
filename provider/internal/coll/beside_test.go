package coll

import (
	"testing"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

// published is what a rank reads of another one now, after that has written it.
func (m *mesh) published(groups []*Group, rank, of int, seen *beside, later congestion.Time) exchange.Use {
	writer, reader := m.nodes[of].protocol, m.nodes[rank].protocol
	writer.ordered.beside.wrote = 0
	writer.ordered.publish(m.now)
	return reader.ordered.beside.read(&groups[rank].members[of], seen, m.now+later)
}

// TestBesides: the members of a host know what each other's operations do on its link while these are under way, and
// not what those of another host do.
func TestBesides(t *testing.T) {
	const slice, each = 1 << 20, 3
	m := newMesh(t, []int{0, 0, 0, 1, 1, 1}, nil)
	groups := m.join()
	if u := m.published(groups, 0, 1, new(beside), 0); u != (exchange.Use{}) {
		t.Errorf("%+v before an operation", u)
	}
	in, out := make([][]byte, 2*each), make([][]byte, 2*each)
	for i := range in {
		in[i], out[i] = m.fill(2*each*slice), make([]byte, 2*each*slice)
		m.postAllToAll(i, groups[i], in[i], out[i], slice)
	}
	m.until("members that know of each other", func() bool {
		known := 0
		for _, n := range m.nodes {
			if e := n.protocol.Engine(); e != nil && e.Beside() == each-1 {
				known++
			}
		}
		return known == 2*each
	})
	seen := new(beside)
	u := m.published(groups, 0, 1, seen, 0)
	e := m.nodes[1].protocol.Engine()
	is := e.Use()
	if !u.On || u.Pairs != is.Pairs || u.Active != is.Active || u.Share != is.Share || u.Left != is.Left ||
		u.InLeft != is.InLeft || u.Waits != is.Waits || u.Invited != is.Invited {
		t.Errorf("rank 0 reads %+v of rank 1, which does %+v", u, is)
	}
	if e.Begun() == 0 || u.Pairs == 0 || u.Left > each*slice {
		t.Errorf("%d pairs have begun, %d are published, %d bytes left", e.Begun(), u.Pairs, u.Left)
	}
	if far := m.published(groups, 0, each, new(beside), 0); far != (exchange.Use{}) {
		t.Errorf("rank 0 reads %+v of rank %d, which is on another host", far, each)
	}
	m.notPublished(groups[0], seen)
	for i := range in {
		m.outcome(i)
	}
	m.compare(in, out, slice)
	if u := m.published(groups, 0, 1, seen, 0); u.On {
		t.Errorf("%+v after the operation", u)
	}
}

// notPublished: what a member has published counts for nothing when it has not published anything new for too long, has
// another link, or says so for an operation of which it has left the group.
func (m *mesh) notPublished(g *Group, seen *beside) {
	m.t.Helper()
	b, other := &m.nodes[0].protocol.ordered.beside, &g.members[1]
	read := func(later congestion.Time) bool { return b.read(other, seen, m.now+later).On }
	if !read(0) || !read(congestion.Time(staleUse/2)) {
		m.t.Error("nothing is read of a member that has just published")
	}
	if read(congestion.Time(2 * staleUse)) {
		m.t.Error("a member that has stopped counts")
	}
	b.link += 2
	if read(0) {
		m.t.Error("a member with another link counts")
	}
	b.link -= 2
	for _, what := range []*bool{&other.left, &other.gone, &other.dead} {
		*what = true
		if read(0) {
			m.t.Error("a member that is gone counts")
		}
		*what = false
	}
}

// TestBesideLinks: endpoints of one address share a link, whatever their ports, and those of two hosts do not.
func TestBesideLinks(t *testing.T) {
	var links [4]uint64
	for i, n := range newMesh(t, []int{0, 0, 1, 1}, nil).nodes {
		links[i] = linkName(meshLeased{n})
	}
	if links[0] != links[1] || links[2] != links[3] || links[0] == links[2] || links[0] == 0 {
		t.Errorf("links %#x", links)
	}
}
