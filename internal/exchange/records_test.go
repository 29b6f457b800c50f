package exchange

import (
	"runtime"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// heapBytes is what the heap keeps.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// partners is the lengths of slices in a group of so many peers, of which some have bytes.
func partners(peers, some int) []int64 {
	lens := make([]int64, peers)
	for i := range some {
		lens[(i*7919+1)%peers] = 256 << 10
	}
	return lens
}

// TestMemory: in a group of 10,000 members that exchange with 128, a member takes at most 1 MiB, also after an
// operation with all.
func TestMemory(t *testing.T) {
	const members = 10_000
	few, all := partners(members-1, 128), partners(members-1, members-1)
	before := heapBytes()
	e, err := New(DefaultConfig(members - 1))
	if err != nil {
		t.Fatal(err)
	}
	now := congestion.Time(time.Second)
	for _, lens := range [][]int64{few, all, few} {
		e.Start(now, lens, lens)
		for range 100 {
			drain(e, now)
			now = now.Add(time.Millisecond)
			answer(e, now, int(e.begun.head()), Word{Invite: true})
		}
		bytes := heapBytes() - before
		t.Logf("%d bytes", bytes)
		if &lens[0] == &few[0] && bytes > 1<<20 {
			t.Errorf("%d bytes for a member with 128 partners, at most 1 MiB", bytes)
		}
	}
	runtime.KeepAlive(e)
}

// TestRecords: peers with bytes to exchange have records, others do not; what is known of paths stays, and what
// is known of the dead in any case.
func TestRecords(t *testing.T) {
	const peers = 1000
	e, err := New(DefaultConfig(peers))
	if err != nil {
		t.Fatal(err)
	}
	none, few, all := make([]int64, peers), partners(peers, 3), partners(peers, peers)
	e.Start(1, few, few)
	if n := len(e.known.recs); n != 3 {
		t.Errorf("%d records for 3 peers", n)
	}
	e.at(1).rate = 5
	e.Start(2, none, few)
	if n := len(e.known.recs); n != 3 || e.at(1).rate != 5 {
		t.Errorf("%d records, rate %v", n, e.at(1).rate)
	}
	e.Start(3, all, all)
	if n := len(e.known.recs); n != peers || e.at(1).rate != 5 {
		t.Errorf("%d records for all, rate %v", n, e.at(1).rate)
	}
	e.Lost(3, 7)
	e.Lost(3, 1)
	e.Start(4, few, none)
	if n := len(e.known.recs); n != 3 || !e.gone(7) || !e.gone(1) || !e.Failed() {
		t.Errorf("%d records, the dead are gone: %v, %v", n, e.gone(7), e.gone(1))
	}
	if e.Needs(7) || e.Needs(8) || e.Lost(4, 7) || e.Lost(4, 8) || !e.gone(8) {
		t.Error("peers without records are needed")
	}
}

// TestEmpty: an empty slice goes where the other direction has bytes, and nothing where neither has, also to
// peers with records: of operations before, or of relays.
func TestEmpty(t *testing.T) {
	const peers = 300
	cfg := DefaultConfig(peers)
	cfg.Short = 1000
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	none := make([]int64, peers)
	for _, c := range []struct{ gives, gets int64 }{{0, 0}, {0, 100}, {100, 0}, {0, 0}} {
		out, in := partners(peers, 0), partners(peers, 0)
		out[5], in[5] = c.gives, c.gets
		e.Start(1, out, in)
		e.at(6)
		sent := drain(e, 1)
		if c == (struct{ gives, gets int64 }{}) {
			if len(sent) != 0 || !e.Done() || e.Needs(5) || e.Needs(6) {
				t.Errorf("%d slices where there is nothing", len(sent))
			}
			continue
		}
		if len(sent) != 1 || sent[0].Peer != 5 || sent[0].Head.Total != c.gives || e.Done() || !e.Needs(5) {
			t.Errorf("%+v: %+v", c, sent)
		}
		if !e.Arrived(2, 5, &Chunk{Total: c.gets, Length: c.gets}, 0, c.gets, true) || !e.Done() {
			t.Errorf("%+v: it does not end", c)
		}
	}
	e.Start(3, none, none)
	for _, i := range []int{5, 6, 7} {
		if e.Arrived(3, i, &Chunk{}, 0, 0, true) || e.Arrived(3, i, &Chunk{Total: 1, Length: 1}, 0, 1, true) ||
			e.OnWord(3, i, Word{Got: 1}) {
			t.Errorf("peer %d sends what is not expected, and it is taken", i)
		}
	}
}
