package list

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/interleave"
	"github.com/weft-fabric/weft/provider/internal/rkey"
)

// TestRegister has a device know a list's memory once for a post, and until that ends, where it is dense enough.
func TestRegister(t *testing.T) {
	for _, c := range []struct {
		stride, used uint64
		access       hw.Access
		a            Args
	}{
		{16, 1, 0, Args{}}, {32, 1, hw.LocalWrite, Args{Read: true}}, {40, 0, 0, Args{}},
		{16, 0, 0, Args{Picks: []uint32{1}}},
	} {
		h := newHost(t, 1)
		d := &standIn{}
		h.path.rdma = d
		p := strided(h.region(1, 1<<12, false), 8, 20)
		p.LocalStride = c.stride
		want(t, h.of(p).Post(&c.a), fi.Success, "post")
		h.settle()
		if uint64(d.used) != c.used || d.left != d.used ||
			c.used != 0 && (d.first != hostBase || d.n != 19*c.stride+8 || d.access != c.access) {
			t.Errorf("%+v: %+v", c, d)
		}
	}
	h := newHost(t, 1)
	d := &standIn{}
	h.path.rdma = d
	want(t, h.of(strided(h.region(1, 1<<12, false), 8, 20)).Write(1), fi.Success, "post")
	for len(h.flying) == 0 {
		h.step()
	}
	h.posts.Unregister()
	if d.used != 1 || d.left != 1 {
		t.Errorf("an endpoint that is closed leaves %+v", d)
	}
	h.settle()
}

// TestRegistrationKept: a list keeps the registration of its memory for later posts, while that stands for the memory,
// has the rights, and is the device's, and until it is closed or the last post has ended. Posts of few elements use it,
// too, and make it when they have moved about as much as the memory is.
func TestRegistrationKept(t *testing.T) {
	h := newHost(t, 1)
	d := &standIn{knows: true, still: true}
	h.path.rdma = d
	l := h.of(strided(h.region(1, 1<<12, false), 8, 20))
	post := func(what string, a Args, used, left int) {
		t.Helper()
		want(t, l.Post(&a), fi.Success, "%s", what)
		h.settle()
		if d.used != used || d.left != left {
			t.Errorf("%s: %d registrations, of which %d are ended, want %d and %d", what, d.used, d.left, used, left)
		}
	}
	few := Args{Picks: []uint32{3, 5}}
	for range 4 {
		post("few elements", few, 0, 0)
	}
	post("few elements that are enough together", few, 1, 0)
	post("few elements", few, 1, 0)
	post("all", Args{}, 1, 0)
	post("a read", Args{Read: true}, 2, 1)
	post("a write", Args{}, 2, 1)
	d.still = false
	post("memory that has changed", Args{}, 3, 3) // and what is not seen to stay is not kept
	d.still = true
	post("memory that stays", Args{}, 4, 3)
	d.changed = true
	post("few elements, after a change of other memory", few, 5, 4)
	other := &standIn{knows: true, still: true}
	h.path.rdma = other
	post("another device", Args{}, 5, 5)
	if other.used != 1 || other.left != 0 {
		t.Errorf("another device: %+v", other)
	}
	want(t, l.Write(1), fi.Success, "post")
	want(t, l.Close(), fi.Success, "close")
	if h.settle(); other.used != 1 || other.left != 1 {
		t.Errorf("a list that is closed leaves %+v", other)
	}
}

// TestRegistrationNot: memory that a device does not take, or that is not seen to stay, is not registered again for few
// elements before as much is moved.
func TestRegistrationNot(t *testing.T) {
	for _, d := range []*standIn{{knows: true, still: true, full: true}, {knows: true}} {
		h := newHost(t, 1)
		h.path.rdma = d
		l := h.of(strided(h.region(1, 1<<12, false), 8, 20))
		want(t, l.Write(1), fi.Success, "post")
		h.settle()
		for range 10 {
			want(t, l.Post(&Args{Picks: []uint32{3, 5}}), fi.Success, "post")
			h.settle()
		}
		if d.used != 1+10/5 || !d.full && d.left != d.used {
			t.Errorf("%+v", d)
		}
	}
}

// TestRegistrationChanged: memory that has changed is not kept, though the device does not take it any more, or another
// device, or for other rights, and too little is moved.
func TestRegistrationChanged(t *testing.T) {
	few := []uint32{3}
	for what, a := range map[string]Args{
		"full": {}, "few": {Picks: few}, "rights": {Picks: few, Read: true}, "device": {Picks: few},
	} {
		h := newHost(t, 1)
		d := &standIn{knows: true, still: true}
		h.path.rdma = d
		l := h.of(strided(h.region(1, 1<<12, false), 8, 20))
		want(t, l.Write(1), fi.Success, "%s", what)
		h.settle()
		d.full, d.changed = true, true
		if what == "device" {
			h.path.rdma = &standIn{knows: true, still: true}
		}
		want(t, l.Post(&a), fi.Success, "%s", what)
		if h.settle(); d.left != 1 {
			t.Errorf("%s: memory that has changed stays registered", what)
		}
	}
}

// TestRegistrationYields: a list that is not posted gives its registration up when the device has no room, and one that
// is posted when its post ends. Later posts register again.
func TestRegistrationYields(t *testing.T) {
	h := newHost(t, 1)
	d := &standIn{knows: true, still: true}
	h.path.rdma = d
	l := h.of(strided(h.region(1, 1<<12, false), 8, 20))
	post := func(used, left int) {
		t.Helper()
		want(t, l.Write(1), fi.Success, "post")
		if h.settle(); d.used != used || d.left != left || len(d.yields) != used {
			t.Errorf("%d registrations, %d ended, %d may be asked for, want %d and %d", d.used, d.left, len(d.yields),
				used, left)
		}
	}
	post(1, 0)
	if d.yields[0](); d.left != 1 {
		t.Error("a list that is not posted keeps its registration")
	}
	post(2, 1)
	d.yields[0]() // of what has ended
	post(2, 1)
	want(t, l.Write(1), fi.Success, "post")
	for len(h.flying) == 0 {
		h.step()
	}
	if d.yields[1](); d.left != 1 {
		t.Error("a post's registration is ended")
	}
	if h.settle(); d.left != 2 {
		t.Error("a post that has ended keeps its registration")
	}
}

// registrationRules are mutants.
type registrationRules struct {
	added  bool // a post is added to the users of what may have none
	stored bool // a registration is stored in the place of another
	blind  bool // the thread that has stored one does not see that the list is closed
	twice  bool // one that is dropped is left, though the list keeps it no more
}

// The words of registrationProgram: what is known, 0 for none, whether the list is closed, and of each of two
// registrations how many users it has, and whether it is ended. The first is known in the beginning.
const (
	regKnown  = interleave.Word(0)
	regClosed = interleave.Word(1)
	regUsers  = interleave.Word(1) // + its number
	regEnded  = interleave.Word(3) // + its number
)

func modelLeave(t *interleave.T, n uint64) {
	if n == 0 {
		return
	}
	users := t.Add(regUsers+interleave.Word(n), ^uint64(0))
	t.Check(users != ^uint64(0), "registration %d is left by more than its users", n)
	if users == 0 {
		t.Check(t.Add(regEnded+interleave.Word(n), 1) == 1, "registration %d is ended twice", n)
	}
}

func modelUse(t *interleave.T, n uint64, rules registrationRules) bool {
	if n == 0 {
		return false
	}
	word := regUsers + interleave.Word(n)
	if rules.added {
		t.Add(word, 1)
		return true
	}
	for users := t.Load(word); users != 0; users = t.Load(word) {
		if t.CAS(word, users, users+1) {
			return true
		}
	}
	return false
}

// registrationProgram has a post that uses what is known, and then drops it, another that brings the second
// registration, and a thread that closes the list.
func registrationProgram(rules registrationRules) *interleave.Program {
	forget := func(t *interleave.T) { modelLeave(t, t.Swap(regKnown, 0)) }
	uses := func(t *interleave.T) {
		n := t.Load(regKnown)
		if !modelUse(t, n, rules) {
			return
		}
		t.Check(t.Load(regEnded+interleave.Word(n)) == 0, "registration %d is used and ended", n)
		modelLeave(t, n)
		if t.CAS(regKnown, n, 0) || rules.twice { // it has changed, or there is no room
			modelLeave(t, n)
		}
	}
	brings := func(t *interleave.T) {
		former := t.Load(regKnown)
		t.Add(regUsers+2, 2)
		switch {
		case rules.stored:
			t.Store(regKnown, 2)
		case !t.CAS(regKnown, former, 2):
			modelLeave(t, 2)
			former = 0
		}
		if former != 0 {
			modelLeave(t, former)
		}
		if !rules.blind && t.Load(regClosed) != 0 {
			forget(t)
		}
		modelLeave(t, 2) // the post ends
	}
	closes := func(t *interleave.T) {
		t.StoreSC(regClosed, 1)
		forget(t)
	}
	return &interleave.Program{
		Names: []string{"known", "closed", "users1", "users2", "ended1", "ended2"},
		Init:  func(w []uint64) { w[regKnown], w[regUsers+1] = 1, 1 },
		Threads: []interleave.Thread{
			{Name: "uses", Body: uses}, {Name: "brings", Body: brings}, {Name: "closes", Body: closes},
		},
		Final: func(m interleave.Memory, _ []bool) error {
			if m.Load(regEnded+1) != 1 || m.Load(regEnded+2) != 1 || m.Load(regKnown) != 0 {
				return fmt.Errorf("registrations are left: known is %d", m.Load(regKnown))
			}
			return nil
		},
	}
}

// TestRegistrationModel uses, replaces and gives up what a list keeps in every order of the steps; mutants are found.
func TestRegistrationModel(t *testing.T) {
	interleave.Check(t, registrationProgram, map[string]registrationRules{
		"a user is added":         {added: true},
		"a registration's stored": {stored: true},
		"the end is not seen":     {blind: true},
		"what is dropped is left": {twice: true},
	})
}

// countingDevice counts what it knows. Its memory changes at times, and it has no room for two.
type countingDevice struct {
	uses, left, asked atomic.Int64
	yield             atomic.Pointer[func()] // of the last that is kept
}

func (d *countingDevice) Use(addr, n uint64, access hw.Access) (rkey.Local, error) {
	d.uses.Add(1)
	return rkey.Device{Domain: anyMemory{}}.Use(addr, n, access)
}

func (d *countingDevice) Leave(l *rkey.Local) {
	d.left.Add(1)
	*l = rkey.Local{}
}

func (d *countingDevice) Keep(_ *rkey.Local, yield func()) {
	if former := d.yield.Swap(&yield); former != nil {
		(*former)()
	}
}

func (d *countingDevice) Still(*rkey.Local) bool { return d.asked.Add(1)%8 != 0 }

// TestRegistrationThreads: posts that register at once, and a close: each registration is ended once, behind its last
// use.
func TestRegistrationThreads(t *testing.T) {
	for range 50 {
		h := newHost(t, 1)
		d := &countingDevice{}
		l := h.of(strided(h.region(1, 1<<12, false), 8, 20))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 100 {
					op := &Op{list: l, total: l.Bytes()}
					r := l.registered(op, d, 0)
					if r.local.Memory() == nil {
						t.Error("a registration that is used is ended")
					}
					r.leave()
				}
			})
		}
		all.Go(func() { _ = l.Close() })
		all.Wait()
		if d.uses.Load() != d.left.Load() {
			t.Fatalf("%d registrations, %d are ended", d.uses.Load(), d.left.Load())
		}
	}
}
