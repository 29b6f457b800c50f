package cxi

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/step"
)

// choose lets peers reach all memory of x by a key that its device chooses.
func (x *matching) choose(r hw.MatchRegion) (hw.MatchID, uint64) {
	x.t.Helper()
	x.clear()
	r.Memory, r.Choose, r.Key = x.memory, true, 77
	id, err := x.m.(hw.MemoryMatcher).Expose(&r)
	if err != nil {
		x.t.Fatal(err)
	}
	await(x, x, 1, 1)
	if e := x.events[0]; e.Kind != hw.MatchExposed || e.Err != nil {
		x.t.Fatalf("%+v", e)
	}
	x.clear()
	return id, r.Key
}

// TestMatchKeysChosen: memory is reached by keys that its owner's device chooses, as far as the rights and the memory
// go, while it is exposed; no key comes again.
func TestMatchKeysChosen(t *testing.T) {
	const size = 8192
	a, b := newMatching(t, MatchConfig{}, size), newMatching(t, MatchConfig{}, size)
	m := a.m.(hw.MemoryMatcher)
	fillBytes(a.b, 7)
	had := map[uint64]bool{}
	for k := range 12 {
		shared, events := k&1 != 0, k&2 != 0
		access := hw.RemoteWrite
		if k&4 != 0 {
			access |= hw.RemoteRead
		}
		id, key := b.choose(hw.MatchRegion{Access: access, Data: shared, Events: events})
		at, ok := proto.RegionOf(key)
		if had[key] || !ok || !proto.IsChosen(key) || at.Own == shared || at.Events != events ||
			!m.KeyValid(key, false) || m.KeyValid(key, true) != shared {
			t.Fatalf("key %#x, shared %v, events %v: %+v", key, shared, events, at)
		}
		had[key] = true
		clear(b.b)
		w := hw.MatchTransfer{To: b.self, Key: key, Offset: 100, Local: a.at(0, 3000)}
		if err := a.transfer(w); err != nil || !bytes.Equal(b.b[100:3100], a.b[:3000]) {
			t.Errorf("key %#x: %v", key, err)
		}
		read := hw.MatchTransfer{To: b.self, Key: key, Local: a.at(4000, 10), Get: true}
		if err := a.transfer(read); (access&hw.RemoteRead != 0) != (err == nil) || err != nil && !errors.Is(err,
			hw.ErrKey) {
			t.Errorf("key %#x, a read: %v", key, err)
		}
		w.Offset = size - 2999
		if err := a.transfer(w); !errors.Is(err, hw.ErrKey) {
			t.Errorf("key %#x, beyond the end: %v", key, err)
		}
		b.i.Progress(64)
		b.withdraw(id, 0)
		w.Offset = 0
		if err := a.transfer(w); !errors.Is(err, hw.ErrKey) {
			t.Errorf("key %#x is withdrawn: %v", key, err)
		}
		_, again := b.choose(hw.MatchRegion{Access: access, Data: shared, Events: events}) // stays
		if err := a.transfer(w); !errors.Is(err, hw.ErrKey) || had[again] {
			t.Errorf("key %#x is withdrawn, its id is that of %#x: %v", key, again, err)
		}
		had[again] = true
	}
}

// TestMatchKeysShare: a region for which the device cannot place a list of its own, at whichever index, shares one, and
// nothing of the other is left.
func TestMatchKeysShare(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1")
		return
	}
	file := library(t)
	x := newMatching(t, MatchConfig{}, 4096)
	for call := range 3 {
		err := errors.Join(step.Set(file, "call_rc", int(unix.ENOSPC)), step.Set(file, "call_at", call+1))
		if err != nil {
			t.Fatal(err)
		}
		id, key := x.choose(hw.MatchRegion{Access: hw.RemoteWrite})
		if regionOwn(key) || x.i.match.rx.regions.at(uint64(id)).own != nil {
			t.Errorf("call %d: key %#x has a list of its own", call, key)
		}
		if err := x.transfer(hw.MatchTransfer{To: x.self, Key: key, Local: x.at(0, 64)}); err != nil {
			t.Errorf("call %d: %v", call, err)
		}
		x.withdraw(id, 0)
	}
	if _, key := x.choose(hw.MatchRegion{Access: hw.RemoteWrite}); !regionOwn(key) {
		t.Error("a list of its own can be placed again")
	}
}

// regionOwn reports whether a key is of a region with a list of its own.
func regionOwn(key uint64) bool {
	at, _ := proto.RegionOf(key)
	return at.Own
}

// TestMatchKeysEvents: writes and atomic operations say so at a region with events, once each.
func TestMatchKeysEvents(t *testing.T) {
	const size = 8192
	a, b := newMatching(t, MatchConfig{}, size), newMatching(t, MatchConfig{}, size)
	for _, shared := range []bool{false, true} {
		_, key := b.choose(hw.MatchRegion{Access: hw.RemoteWrite | hw.RemoteRead, Data: shared, Events: true,
			Context: 5})
		for k := range 3 {
			a.clear()
			b.clear()
			length := uint64(8)
			switch k {
			case 0:
				length = 3000
				w := hw.MatchTransfer{To: b.self, Key: key, Offset: 64, Local: a.at(0, 3000)}
				if err := a.transfer(w); err != nil {
					t.Fatal(err)
				}
			default:
				if err := a.m.(hw.AtomicMatcher).PostAtomic(&hw.MatchAtomic{To: b.self, Key: key, Offset: 64,
					Op: hw.MatchSum, Type: hw.MatchUint64, Fetch: k == 2}); err != nil {
					t.Fatal(err)
				}
				await(a, b, 1, 0)
			}
			await(a, b, 1, 1)
			if e := b.events[0]; len(b.events) != 1 || e.Kind != hw.MatchWritten || e.Context != 5 ||
				e.Length != length || e.Offset != 64 || e.HasData || e.From != a.self {
				t.Errorf("shared %v, operation %d: %+v", shared, k, b.events)
			}
		}
	}
}

// TestMatchKeysData: writes with data come to the region with a chosen key that is for them.
func TestMatchKeysData(t *testing.T) {
	const size = 4096
	a, b := newMatching(t, MatchConfig{}, size), newMatching(t, MatchConfig{}, size)
	_, key := b.choose(hw.MatchRegion{Access: hw.RemoteWrite, Data: true})
	b.exposeAs(hw.MatchRegion{Memory: b.memory, Key: key, Access: hw.RemoteWrite, Notify: true, Context: key})
	b.clear()
	if err := a.transfer(hw.MatchTransfer{To: b.self, Key: key, Offset: 3, Inject: []byte("data"), Data: 9,
		HasData: true}); err != nil {
		t.Fatal(err)
	}
	await(a, b, 1, 1)
	if e := b.events[0]; e.Kind != hw.MatchWritten || e.Data != 9 || e.Offset != 3 || string(b.b[3:7]) != "data" {
		t.Errorf("%+v", e)
	}
	foreign := proto.Chosen{ID: 500, Sequence: 3}.Key()
	if _, err := b.m.(hw.MemoryMatcher).Expose(&hw.MatchRegion{Memory: b.memory, Key: foreign, Access: hw.RemoteWrite,
		Notify: true}); !errors.Is(err, hw.ErrInvalid) {
		t.Errorf("a key that was not chosen: %v", err)
	}
}

// TestMatchKeysMany: more regions than have lists of their own share one, and ids are used again.
func TestMatchKeysMany(t *testing.T) {
	b := newMatching(t, MatchConfig{}, 4096)
	for range 3 {
		ids := []hw.MatchID{}
		own := 0
		for range 100 {
			id, key := b.choose(hw.MatchRegion{Access: hw.RemoteRead})
			if at, _ := proto.RegionOf(key); at.Own {
				own++
			}
			ids = append(ids, id)
		}
		if own != proto.OwnIDs {
			t.Errorf("%d lists", own)
		}
		for _, id := range ids {
			b.withdraw(id, 0)
		}
	}
}
