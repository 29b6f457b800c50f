package region

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/names"
)

// added is a region in a table under a key.
func added(t *testing.T, table *Table[owner], key, access uint64) *Region[owner] {
	t.Helper()
	r := made(t, attr(access, 100), 0, Options{})
	table.Describe(r)
	if got, err := table.Add(r, key, false); err != nil || got != key {
		t.Fatalf("key %d: %d, %v", key, got, err)
	}
	return r
}

// TestKeys: a key is one region's at a time, of those that peers may access.
func TestKeys(t *testing.T) {
	var table Table[owner]
	a := added(t, &table, 7, fi.RemoteRead)
	local := added(t, &table, 7, fi.Send) // means nothing
	other := made(t, attr(fi.RemoteRead, 1), 0, Options{})
	if _, err := table.Add(other, 7, false); !errors.Is(err, fi.ENOKEY) {
		t.Errorf("a key in use: %v", err)
	}
	if _, err := table.Add(other, fi.KeyNotAvail, false); !errors.Is(err, fi.EKEYREJECTED) {
		t.Errorf("no key: %v", err)
	}
	if table.Find(7) != a || table.Find(8) != nil {
		t.Error("a key leads to another region")
	}
	if list := table.All(); !slices.Equal(list, []*owner{a.Owner}) {
		t.Errorf("%v", list)
	}
	table.Remove(local)
	if table.Find(7) != a {
		t.Error("a region without a key takes out another one's")
	}
	table.Remove(a)
	if table.Find(7) != nil || len(table.All()) != 0 {
		t.Error("the key stays")
	}
	added(t, &table, 7, fi.RemoteRead)
	if a.Desc() == 0 || a.Desc() == local.Desc() || a.Desc()&DescSpecial != 0 {
		t.Errorf("descriptors %#x, %#x", a.Desc(), local.Desc())
	}
}

// TestRandomKeys: keys that the table chooses are none that there are.
func TestRandomKeys(t *testing.T) {
	var table Table[owner]
	seen := map[uint64]bool{}
	for range 1000 {
		r := made(t, attr(fi.RemoteWrite, 1), 0, Options{})
		key, err := table.Add(r, 7, true)
		if err != nil || seen[key] || key == fi.KeyNotAvail || table.Find(key) != r {
			t.Fatalf("key %#x: %v", key, err)
		}
		seen[key] = true
	}
	if len(table.All()) != 1000 {
		t.Errorf("%d regions", len(table.All()))
	}
}

// TestAlias: a region may have a second key, until its keys end.
func TestAlias(t *testing.T) {
	var table Table[owner]
	r := added(t, &table, 7, fi.RemoteRead)
	alias, fresh, err := table.Alias(r)
	if err != nil || !fresh || alias == 7 || table.Find(alias) != r || table.Find(7) != r {
		t.Fatalf("alias %#x, %v, %v", alias, fresh, err)
	}
	if again, fresh, err := table.Alias(r); again != alias || fresh || err != nil {
		t.Errorf("again: %#x, %v, %v", again, fresh, err)
	}
	if len(table.All()) != 1 {
		t.Errorf("%d regions", len(table.All()))
	}
	table.Expire(r)
	if table.Find(alias) != nil || table.Find(7) != nil {
		t.Error("expired keys lead to the region")
	}
	if _, _, err := table.Alias(r); !errors.Is(err, fi.ENOKEY) {
		t.Errorf("an alias of expired keys: %v", err)
	}
	next := added(t, &table, 7, fi.RemoteRead)
	table.Remove(r) // which has lost it
	if table.Find(7) != next {
		t.Error("a region whose keys are expired takes out another one's")
	}
}

// TestAccess has each right and range that a region does not have, and one that is closed. A refusal leaves the gate.
func TestAccess(t *testing.T) {
	var table Table[owner]
	r := made(t, attr(fi.RemoteRead, 100), 0, Options{})
	r.Base = 1000
	if _, err := table.Add(r, 7, false); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key, addr, n, rights uint64
		want                 error
	}{
		{7, 1000, 100, fi.RemoteRead, nil},
		{7, 1099, 1, fi.RemoteRead, nil},
		{7, 1100, 0, 0, nil},
		{8, 1000, 100, fi.RemoteRead, fi.ENOKEY},
		{7, 1000, 100, fi.RemoteWrite, fi.EACCES},
		{7, 1000, 100, fi.RemoteWrite | fi.RemoteRead, fi.EACCES},
		{7, 999, 1, fi.RemoteRead, fi.EACCES},
		{7, 1000, 101, fi.RemoteRead, fi.EACCES},
		{7, 1101, 0, fi.RemoteRead, fi.EACCES},
		{7, 1050, ^uint64(0) - 20, fi.RemoteRead, fi.EACCES},
	} {
		got, offset, err := table.Access(c.key, c.addr, c.n, c.rights)
		if !errors.Is(err, c.want) || err == nil && (got != r || offset != c.addr-1000) || err != nil && got != nil {
			t.Errorf("%+v: %v, %d, %v", c, got, offset, err)
		}
		if err == nil {
			r.Gate.Leave()
		}
	}
	if table.Enter(8) != nil || table.Enter(7) != r {
		t.Error("Enter finds another region")
	}
	shut := make(chan bool)
	go func() {
		r.Gate.Shut()
		close(shut)
	}()
	select {
	case <-shut:
		t.Error("the gate is shut while an access is under way")
	case <-time.After(10 * time.Millisecond):
	}
	r.Gate.Leave()
	<-shut // hangs if one that was refused is counted
	if _, _, err := table.Access(7, 1000, 1, fi.RemoteRead); !errors.Is(err, fi.ENOKEY) || table.Enter(7) != nil {
		t.Errorf("a closed region: %v", err)
	}
}

// TestAccessAllocates: an access costs no memory.
func TestAccessAllocates(t *testing.T) {
	var table Table[owner]
	r := added(t, &table, 7, fi.RemoteRead)
	n := testing.AllocsPerRun(100, func() {
		if _, _, err := table.Access(7, 0, 8, fi.RemoteRead); err == nil && r.Opens("", nil, names.Name{}, nil) {
			r.Gate.Leave()
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestTranslate: addresses of device memory become those by which it is copied, as long as the region is there.
func TestTranslate(t *testing.T) {
	var table Table[owner]
	r := &Region[owner]{Memory: hmem.Region{
		Parts: []fi.IOVec{{Base: 0x5000, Len: 100}, {Base: 0x9000, Len: 50}},
		Named: []fi.IOVec{{Base: 0x100, Len: 100}, {Base: 0x200, Len: 50}},
	}}
	table.Describe(r)
	host := added(t, &table, 7, fi.RemoteRead)
	descs := []uint64{host.Desc(), r.Desc(), r.Desc()}
	iov := []fi.IOVec{{Base: 0x100, Len: 1}, {Base: 0x110, Len: 84}, {Base: 0x200, Len: 50}, {Base: 0x100, Len: 1}}
	want := []fi.IOVec{{Base: 0x100, Len: 1}, {Base: 0x5010, Len: 84}, {Base: 0x9000, Len: 50}, {Base: 0x100, Len: 1}}
	if err := table.Translate(iov, descs); err != nil || !slices.Equal(iov, want) {
		t.Errorf("%v, %v", iov, err)
	}
	for _, v := range []fi.IOVec{{Base: 0x110, Len: 85}, {Base: 0xff, Len: 1}, {Base: 0x233, Len: 0}} {
		if err := table.Translate([]fi.IOVec{v}, descs[1:]); !errors.Is(err, fi.EINVAL) {
			t.Errorf("%+v: %v", v, err)
		}
	}
	table.Remove(r)
	if err := table.Translate([]fi.IOVec{{Base: 0x110, Len: 1}}, descs[1:]); !errors.Is(err, fi.EINVAL) {
		t.Errorf("of a region that is gone: %v", err)
	}
}
