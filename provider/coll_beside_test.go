package provider

import (
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/exchange"
)

// published is what a rank reads of another one now, after that has written it.
func (h *hosts) published(rank, of int, seen *beside, later congestion.Time) exchange.Use {
	h.t.Helper()
	writer := leasedOf(h.sides[of].ep)
	writer.rx.acquire()
	writer.collective.ordered.beside.wrote = 0
	writer.collective.ordered.publish(writer.now())
	writer.rx.give()
	reader := leasedOf(h.sides[rank].ep)
	reader.rx.acquire()
	defer reader.rx.give()
	g := h.groups[rank]
	return reader.collective.ordered.beside.read(&g.members[of], seen, reader.now()+later)
}

// TestBesides: the members of a host know what each other's operations do on its link while these are under way, and
// not what those of another host do.
func TestBesides(t *testing.T) {
	const slice, each = 1 << 20, 3
	h := newHosts(t, each, nil)
	w := h.newSlices(rand.New(rand.NewPCG(1, 36)), slice)
	if u := h.published(0, 1, new(beside), 0); u != (exchange.Use{}) {
		t.Errorf("%+v before an operation", u)
	}
	w.post(everyRank(2 * each)...)
	known := 0
	h.until("members that know of each other", func() bool {
		known = 0
		for i := range h.sides {
			w.engine(i, func(e *exchange.Engine) {
				if e.Beside() == each-1 {
					known++
				}
			})
		}
		return known == 2*each
	})
	seen := new(beside)
	u := h.published(0, 1, seen, 0)
	w.engine(1, func(e *exchange.Engine) {
		is := e.Use()
		if !u.On || u.Pairs != is.Pairs || u.Active != is.Active || u.Share != is.Share || u.Left != is.Left ||
			u.InLeft != is.InLeft || u.Waits != is.Waits || u.Invited != is.Invited {
			t.Errorf("rank 0 reads %+v of rank 1, which does %+v", u, is)
		}
		if e.Begun() == 0 || u.Pairs == 0 || u.Left > each*slice {
			t.Errorf("%d pairs have begun, %d are published, %d bytes left", e.Begun(), u.Pairs, u.Left)
		}
	})
	if far := h.published(0, each, new(beside), 0); far != (exchange.Use{}) {
		t.Errorf("rank 0 reads %+v of rank %d, which is on another host", far, each)
	}
	h.notPublished(seen)
	h.until("the operation's end", w.over)
	w.check(-1)
	if u := h.published(0, 1, seen, 0); u.On {
		t.Errorf("%+v after the operation", u)
	}
}

// notPublished: what a member has published counts for nothing when it has not published anything new for too long, has
// another link, or says so for an operation of which it has left the group.
func (h *hosts) notPublished(seen *beside) {
	h.t.Helper()
	reader := leasedOf(h.sides[0].ep)
	reader.rx.acquire()
	defer reader.rx.give()
	b, m := &reader.collective.ordered.beside, &h.groups[0].members[1]
	read := func(later congestion.Time) bool { return b.read(m, seen, reader.now()+later).On }
	if !read(0) || !read(congestion.Time(staleUse/2)) {
		h.t.Error("nothing is read of a member that has just published")
	}
	if read(congestion.Time(2 * staleUse)) {
		h.t.Error("a member that has stopped counts")
	}
	b.link += 2
	if read(0) {
		h.t.Error("a member with another link counts")
	}
	b.link -= 2
	for _, what := range []*bool{&m.left, &m.gone, &m.dead} {
		*what = true
		if read(0) {
			h.t.Error("a member that is gone counts")
		}
		*what = false
	}
}

// TestBesideLinks: endpoints of one address share a link, whatever their ports, and those of two hosts do not.
func TestBesideLinks(t *testing.T) {
	h := newHosts(t, 2, nil)
	var links [4]uint64
	for i, s := range h.sides {
		links[i] = linkName(collHolder{leasedOf(s.ep)})
	}
	if links[0] != links[1] || links[2] != links[3] || links[0] == links[2] || links[0] == 0 {
		t.Errorf("links %#x", links)
	}
}
