package receive

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/vector"
)

// posting is a receive context as its posts have it.
type posting struct {
	*world
	busy         bool // another thread has the lease
	leases       int  // that are taken
	rings, wakes int
}

func (h *posting) Ring() { h.rings++ }
func (h *posting) Wake() { h.wakes++ }
func (h *posting) Give() { h.leases-- }
func (h *posting) Try() *Context {
	if h.busy {
		return nil
	}
	h.leases++
	return &h.c
}

func newPosts(t *testing.T, rules Rules) (*model, *posting, *Posts) {
	w := &model{world: newWorld(t, 11, Bounds{Bytes: 1 << 20, Memory: 1 << 20}, 1)}
	h, p := &posting{world: w.world}, &Posts{}
	p.Open(&w.c, rules, h)
	t.Cleanup(func() {
		if h.leases != 0 {
			t.Errorf("%d leases are taken", h.leases)
		}
	})
	return w, h, p
}

// TestCheck has receives that are none refused, each with its errno, and nothing posted.
func TestCheck(t *testing.T) {
	one := []fi.IOVec{vector.Of(make([]byte, DefaultMinMulti))}
	short := []fi.IOVec{vector.Of(make([]byte, DefaultMinMulti-1))}
	const multi, search = fi.MultiRecv, fi.Peek
	all := Rules{Caps: fi.TaggedMultiRecv | fi.DirectedRecv, Keyed: true}
	for name, c := range map[string]struct {
		rules Rules
		m     Recv
		want  fi.Errno
	}{
		"a flag of sends":            {all, Recv{IOV: one, Flags: fi.Inject}, fi.EBADFLAGS},
		"too many elements":          {all, Recv{IOV: make([]fi.IOVec, 5)}, fi.EINVAL},
		"an element without memory":  {all, Recv{IOV: []fi.IOVec{{Len: 1}}}, fi.EINVAL},
		"a tagged buffer of several": {Rules{}, Recv{IOV: one, Flags: multi, Tagged: true}, fi.EINVAL},
		"several buffers of several": {all, Recv{IOV: append(one, one...), Flags: multi}, fi.EINVAL},
		"a search for several":       {all, Recv{IOV: one, Flags: multi | search, Tagged: true}, fi.EINVAL},
		"a short buffer of several":  {all, Recv{IOV: short, Flags: multi}, fi.ETOOSMALL},
		"a key without keys":         {Rules{Caps: all.Caps}, Recv{IOV: one, Flags: fi.AuthKey}, fi.EINVAL},
		"a key of any source":        {Rules{Keyed: true}, Recv{IOV: one, Flags: fi.AuthKey}, fi.EINVAL},
		"a search of untagged ones":  {all, Recv{Flags: search}, fi.EBADFLAGS},
		"a discard without a search": {all, Recv{Flags: fi.Discard, Tagged: true}, fi.EBADFLAGS},
		"a claim and a discard":      {all, Recv{Flags: fi.Peek | fi.Claim | fi.Discard, Tagged: true}, fi.EBADFLAGS},
		"any source, which is denied": {
			Rules{Caps: fi.ExactDirectedRecv | fi.DirectedRecv}, Recv{IOV: one, Src: fi.AddrUnspec}, fi.EINVAL,
		},
		"a receive":           {all, Recv{IOV: one}, fi.Success},
		"a buffer of several": {all, Recv{IOV: one, Flags: multi, Tagged: true}, fi.Success},
		"a search without a buffer": {
			all, Recv{IOV: []fi.IOVec{{Len: 1}}, Flags: search | hot.RecvNoBuffer, Tagged: true}, fi.Success,
		},
		"a receive of a key's": {all, Recv{IOV: one, Flags: fi.AuthKey}, fi.Success},
	} {
		w, _, p := newPosts(t, c.rules)
		before := p.Room()
		if err := p.Check(&c.m); fi.ErrnoOf(err) != c.want {
			t.Errorf("%s: %v, not %v", name, err, c.want)
		}
		if c.want != fi.Success {
			if err := p.Post(&c.m); fi.ErrnoOf(err) != c.want || p.Room() != before || w.c.Posted() != 0 {
				t.Errorf("%s: post says %v, room for %d is left of %d", name, err, p.Room(), before)
			}
		}
	}
}

// TestPosts has receives stay on the ring, of which those that complete without an arrival are done at once; what finds
// the ring full makes room, unless another thread has the lease.
func TestPosts(t *testing.T) {
	w, h, p := newPosts(t, Rules{})
	post := func(m Recv) error {
		t.Helper()
		w.next++
		m.Context, m.Tagged, m.Src = w.next, true, fi.AddrUnspec
		w.world.receives[m.Context] = &posted{context: m.Context, buf: make([]byte, 8)}
		return p.Post(&m)
	}
	for n := range uint64(1 << ringLog2) {
		if room := p.Room(); room != 1<<ringLog2-n {
			t.Fatalf("after %d receives there is room for %d", n, room)
		}
		if err := post(Recv{Tag: n}); err != nil {
			t.Fatal(err)
		}
	}
	h.busy = true
	if err := post(Recv{Tag: 99}); !errors.Is(err, fi.EAGAIN) || w.c.Posted() != 0 {
		t.Errorf("the ring is full, and another thread has the lease: %v", err)
	}
	h.busy = false
	if err := post(Recv{Tag: 99}); err != nil || w.c.Posted() != 1<<ringLog2 || p.Room() != 1<<ringLog2-1 {
		t.Errorf("the ring is full: %v, %d receives are taken off", err, w.c.Posted())
	}
	pieces := make([]byte, 20)
	vectored := Recv{Tag: 50, IOV: []fi.IOVec{vector.Of(pieces[:3]), vector.Of(pieces[10:])}}
	h.busy = true
	if err := post(vectored); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("a receive of several elements while another thread has the lease: %v", err)
	}
	if err := p.Cancel(1); err != nil || h.wakes != 1 || len(w.world.receives[1].got) != 0 {
		t.Errorf("cancel: %v, %d wakes", err, h.wakes)
	}
	h.busy = false
	if p.Notify(); len(w.world.receives[1].got) != 1 || w.world.receives[1].got[0].status != fi.ECANCELED {
		t.Errorf("the receive that is canceled ends with %+v", w.world.receives[1].got)
	}
	rings := h.rings
	if p.Notify(); h.rings != rings+1 {
		t.Error("the thread of progress is not woken for receives")
	}
	if err := post(Recv{Tag: 51}); err != nil {
		t.Fatal(err)
	}
	if err := post(vectored); err != nil || p.Room() != 1<<ringLog2 {
		t.Errorf("a receive of several elements: %v; the ring has room for %d", err, p.Room())
	}
	w.world.receives[w.next].buf, w.world.receives[w.next].apart = pieces, true
	w.next++
	m := &sent{at: w.eps[0], from: 1, kind: awaited, tagged: true, tag: 50, number: w.next, payload: []byte("aaaaa")}
	w.messages[m.number] = m
	w.send(m)
	if got := string(pieces[:3]) + string(pieces[10:12]); got != "aaaaa" || pieces[3] != 0 || pieces[12] != 0 {
		t.Errorf("the pieces have %q", pieces)
	}
	if err := post(Recv{Tag: 3, Flags: fi.Peek}); err != nil || w.world.receives[w.next].got[0].status != fi.ENOMSG {
		t.Errorf("a search: %v, %+v", err, w.world.receives[w.next].got)
	}
	work := Recv{Tag: 4, Work: w.next, Tagged: true}
	w.c.Refuse(&work, fi.EIO)
	if got := w.world.receives[w.next].got; len(got) != 2 || got[1].status != fi.EIO || got[1].tag != 4 {
		t.Errorf("what could not be posted ends with %+v", got)
	}
}
