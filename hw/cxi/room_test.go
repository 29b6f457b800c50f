package cxi

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// TestMatchDataWaits: more writes with data than their target has room for events wait until it has, and each comes
// once; one to a key that no region has ends with an error meanwhile and afterwards.
func TestMatchDataWaits(t *testing.T) {
	const count = controlEvents + 900
	a, b := newMatching(t, MatchConfig{Sends: 64}, 4096), newMatching(t, MatchConfig{}, 4096)
	m := a.m.(hw.MemoryMatcher)
	for _, chosen := range []bool{false, true} {
		key := uint64(500)
		if chosen {
			_, key = b.choose(hw.MatchRegion{Access: hw.RemoteWrite, Data: true})
		} else {
			b.expose(key, hw.RemoteWrite)
		}
		b.exposeAs(hw.MatchRegion{Memory: b.memory, Key: key, Access: hw.RemoteWrite, Notify: true, Context: key})
		a.clear()
		b.clear()
		posted, busy := 0, 0
		post := func() {
			p := hw.MatchTransfer{To: b.self, Key: key, Inject: []byte{1}, Data: uint64(posted), HasData: true}
			switch err := m.PostTransfer(&p); {
			case err == nil:
				posted++
			case errors.Is(err, hw.ErrNoResource):
				busy++
				a.i.Progress(64)
			default:
				t.Fatal(err)
			}
		}
		for posted < count && busy < 300 {
			post()
		}
		if posted == count || posted < 3000 {
			t.Fatalf("chosen %v: %d are posted before the target takes any in", chosen, posted)
		}
		for len(a.events) < count || len(b.events) < count {
			if posted < count {
				post()
			}
			a.i.Progress(64)
			b.i.Progress(64)
		}
		had := make([]bool, count)
		for k := range b.events {
			if e := &b.events[k]; e.Kind != hw.MatchWritten || e.Data >= count || had[e.Data] {
				t.Fatalf("chosen %v, event %d: %+v", chosen, k, e)
			}
			had[b.events[k].Data] = true
		}
		for k := range a.events {
			if e := &a.events[k]; e.Kind != hw.MatchTransferred || e.Err != nil {
				t.Fatalf("chosen %v, end %d: %+v", chosen, k, e)
			}
		}
		if len(a.events) != count || len(b.events) != count {
			t.Errorf("chosen %v: %d ends, %d events of %d", chosen, len(a.events), len(b.events), count)
		}
		none := hw.MatchTransfer{To: b.self, Key: 501, Data: 1, HasData: true}
		if err := a.transfer(none); !errors.Is(err, hw.ErrKey) {
			t.Errorf("a key of no region: %v", err)
		}
	}
}

// TestRooms: each peer of many has a place of its own, and keeps what is in it while the table grows.
func TestRooms(t *testing.T) {
	var s rooms
	const count = 1000
	address := func(k int) hw.MatchAddress { return hw.MatchAddress(k) << 9 }
	if s.at(1) != nil {
		t.Error("a place in an empty table")
	}
	for k := range count {
		s.add(address(k)).misses = k
		if s.used != k+1 || 2*s.used > len(s.places) {
			t.Fatalf("%d of %d places are used by %d", s.used, len(s.places), k+1)
		}
	}
	for k := range count {
		if r := s.at(address(k)); !r.used || r.to != address(k) || r.misses != k || s.add(address(k)) != r {
			t.Fatalf("peer %d: %+v", k, r)
		}
	}
	if r := s.at(address(count)); r == nil || r.used || s.used != count {
		t.Errorf("a peer that was not added: %+v", r)
	}
}
