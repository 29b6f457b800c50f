package cxi

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
)

// TestMatchInline: writes of up to 224 bytes under a key with an index of its own, and atomic operations there that
// fetch nothing, need no memory that the NIC reads, whatever order they keep; with messages between them.
func TestMatchInline(t *testing.T) {
	const size, key = 4096, 7
	a, b := newMatching(t, MatchConfig{}, size), newMatching(t, MatchConfig{}, size)
	b.expose(key, hw.RemoteRead|hw.RemoteWrite)
	tx := a.i.match.txOf(b.self)
	for n := 0; n <= 224; n++ {
		payload := make([]byte, n)
		fillBytes(payload, uint64(n))
		for how, p := range map[string]hw.MatchTransfer{"": {}, "ordered": {Ordered: true},
			"delivered": {Delivered: true}} {
			if how == "ordered" && n > 192 {
				continue // these keep an order, and are shorter
			}
			clear(b.b)
			p.To, p.Key, p.Offset, p.Inject = b.self, key, uint64(n), payload
			if err := a.transfer(p); err != nil {
				t.Fatalf("%d bytes, %s: %v", n, how, err)
			}
			if !bytes.Equal(b.b[n:2*n], payload) || bytes.Count(b.b[:n], []byte{0}) != n ||
				bytes.Count(b.b[2*n:], []byte{0}) != size-2*n {
				t.Fatalf("%d bytes, %s: others are written", n, how)
			}
		}
		if n%32 == 0 {
			b.receive(hw.MatchReceive{From: a.self, Tagged: true, Tag: uint64(n), Local: b.at(0, 8)})
			b.clear()
			a.clear()
			a.send(hw.MatchSend{To: b.self, Tagged: true, Tag: uint64(n), Inject: []byte{byte(n + 1)}})
			await(a, b, 1, 1)
			if e := b.events[0]; e.Err != nil || e.Tag != uint64(n) || b.b[0] != byte(n+1) {
				t.Fatalf("a message between them: %+v", e)
			}
		}
	}
	b.b[0] = 3
	_, err := a.perform(hw.MatchAtomic{To: b.self, Key: key, Op: hw.MatchSum, Type: hw.MatchUint8,
		Operand: element{4}})
	if err != nil || b.b[0] != 7 {
		t.Errorf("3 and 4 are %d: %v", b.b[0], err)
	}
	if tx.places.md != nil {
		t.Error("something went by the memory of a place")
	}
	err = a.transfer(hw.MatchTransfer{To: b.self, Key: key, Inject: make([]byte, 224), Ordered: true})
	if err != nil || tx.places.md == nil {
		t.Errorf("224 bytes that keep an order do not go from memory: %v", err)
	}
}

// TestMatchInlineRefused: of many inline writes and atomic operations under way one is refused, or the state before
// one: what that is of ends, or all that is under way, and what comes behind it works.
func TestMatchInlineRefused(t *testing.T) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		alone(t, "fabric=-1 lcids=1") // so that commands to change the profile are none
		return
	}
	const size, key, count = 4096, 7, 12
	a, b := newMatching(t, MatchConfig{}, size), newMatching(t, MatchConfig{}, size)
	b.expose(key, hw.RemoteRead|hw.RemoteWrite)
	m := a.m.(hw.AtomicMatcher)
	for at := range 2 * count { // each has a state of its own before it
		a.clear()
		clear(b.b)
		refuseNext(t, at+1, func() {
			for k := range count {
				var err error
				if k%3 == 2 {
					err = m.PostAtomic(&hw.MatchAtomic{To: b.self, Key: key, Op: hw.MatchSum, Type: hw.MatchUint8,
						Operand: element{1}, Offset: uint64(k * 256), Fetch: k%2 == 0, More: true, Context: uint64(k)})
				} else {
					err = m.PostTransfer(&hw.MatchTransfer{To: b.self, Key: key, More: true, Context: uint64(k),
						Inject: bytes.Repeat([]byte{1}, 1+k*18), Offset: uint64(k * 256)})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			a.m.RingMatched()
			await(a, a, count, count)
		})
		for _, e := range a.events {
			switch {
			case e.Err != nil && !errors.Is(e.Err, unix.EIO), at%2 == 1 && (e.Err != nil) != (int(e.Context) == at/2):
				t.Errorf("command %d: %+v", at, e)
			case e.Err == nil && b.b[e.Context*256] != 1:
				t.Errorf("command %d: operation %d has ended and is not done", at, e.Context)
			}
		}
		err := a.transfer(hw.MatchTransfer{To: b.self, Key: key, Inject: []byte{9}, Offset: 4000})
		if err != nil || b.b[4000] != 9 {
			t.Errorf("behind command %d: %v", at, err)
		}
	}
	works(t, a, b)
}
