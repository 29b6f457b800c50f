package regcache

import (
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// placedDomain is a fakeDomain whose memory has a place.
type placedDomain struct{ fakeDomain }

type placedMemory struct{ hw.Memory }

func (m placedMemory) Place() hw.Placed {
	return hw.Placed{Addr: m.Region().Base, At: m.Region().Base + 1<<40, Space: 3, Valid: true}
}

func (d *placedDomain) Register(r hw.Region) (hw.Memory, error) {
	m, err := d.fakeDomain.Register(r)
	return placedMemory{m}, err
}

// countedWatch is a fakeWatch that says its counts.
type countedWatch struct {
	*fakeWatch
	begun, ended, published uint64
}

func (w *countedWatch) Counts() Counts { return Counts{&w.begun, &w.ended, &w.published} }

// TestFindNumber: registrations that are kept are found and dropped without the runtime, and nothing else is.
func TestFindNumber(t *testing.T) {
	d := &placedDomain{fakeDomain{room: 1 << 30}}
	w := &countedWatch{fakeWatch: &fakeWatch{covered: map[uint64]bool{}, stays: true}}
	c := New(d, Config{Watch: w, MaxEntries: 2, Private: func(Range) bool { return true }})
	none := func(what string, page, n uint64, access hw.Access) {
		t.Helper()
		if number, _ := c.Find(page*pageSize, n, access); number != 0 {
			t.Errorf("%s is found", what)
		}
	}
	none("what is not registered", 10, 8, 0)
	e := get(t, c, at(10), 100, 0)
	number, place := c.Find(10*pageSize+8, 16, 0)
	want := hw.Placed{Addr: 10*pageSize + 8, At: 10*pageSize + 8 + 1<<40, Space: 3, Valid: true}
	if number != e.Number() || place != want {
		t.Errorf("entry %d at %+v, want %d at %+v", number, place, e.Number(), want)
	}
	none("a right that it has not", 10, 8, hw.LocalWrite)
	none("what is beyond", 10, pageSize+1, 0)
	none("no bytes", 10, 0, 0)
	none("what wraps", ^uint64(0)/pageSize, pageSize, 0)
	if !c.Drop(number) || e.users != 1 || c.idle.len != 0 {
		t.Errorf("an entry in use was dropped: %d users, %d idle", e.users, c.idle.len)
	}
	if !c.Drop(number) || e.users != 0 || c.idle.len != 1 || c.bytes != pageSize {
		t.Errorf("the last use was dropped: %d users, %d idle of %d bytes", e.users, c.idle.len, c.bytes)
	}

	w.begun = 1
	none("while a change is taken in, what", 10, 8, 0)
	w.ended, w.published = 1, 1
	none("after a change, what", 10, 8, 0)
	w.published = 0

	for page := uint64(20); page < 23; page++ {
		get(t, c, at(page), 8, 0)
	}
	for page := uint64(20); page < 23; page++ {
		number, _ := c.Find(page*pageSize, 8, 0)
		c.PutNumber(number)
		if dropped := c.Drop(number); dropped != (page == 20) {
			t.Errorf("page %d: dropped %v, with %d idle of 2", page, dropped, c.idle.len)
		} else if !dropped {
			c.PutNumber(number)
		}
	}
	if c.idle.len != 2 {
		t.Errorf("%d idle entries of 2", c.idle.len)
	}
	e = get(t, c, at(22), 8, 0)
	c.take()
	c.evict(e)
	c.give()
	if c.Drop(e.Number()) {
		t.Error("what is kept no longer was dropped without the runtime")
	}
	open := d.open
	c.PutNumber(e.Number())
	if d.open != open-1 {
		t.Error("what is kept no longer was not closed")
	}
	w.stays = false
	c.Put(get(t, c, at(30), 8, 0))
	none("memory whose address may change", 30, 8, 0)
}

// TestUndo: what was found is given back without the runtime, also beyond the bounds, and where it is kept no longer.
func TestUndo(t *testing.T) {
	d := &placedDomain{fakeDomain{room: 1 << 30}}
	w := &countedWatch{fakeWatch: &fakeWatch{covered: map[uint64]bool{}, stays: true}}
	c := New(d, Config{Watch: w, MaxEntries: 1, Private: func(Range) bool { return true }})
	a, b := get(t, c, at(10), 8, 0), get(t, c, at(20), 8, 0)
	c.Put(b)
	found, _ := c.Find(10*pageSize, 8, 0)
	if !c.Undo(found) || a.users != 1 || c.idle.len != 1 {
		t.Errorf("%d users, %d idle", a.users, c.idle.len)
	}
	if c.Drop(a.Number()) || !c.Undo(a.Number()) || a.users != 0 || c.idle.len != 2 {
		t.Errorf("beyond the bounds: %d users, %d idle", a.users, c.idle.len)
	}
	c.Put(get(t, c, at(20), 8, 0))
	if c.idle.len != 1 {
		t.Errorf("%d idle entries of 1", c.idle.len)
	}
	ends := []*Entry{get(t, c, at(30), 8, 0), get(t, c, at(31), 8, 0)}
	c.take()
	for _, e := range ends {
		c.evict(e)
	}
	c.give()
	for _, e := range ends {
		if !c.Undo(e.Number()) {
			t.Error("what is kept no longer was not given back")
		}
	}
	open := d.open
	if c.Stats(); d.open != open-2 {
		t.Errorf("%d registrations, want %d", d.open, open-2)
	}
}
