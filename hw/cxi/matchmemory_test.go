package cxi

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// exposed are keys of regions with indices of their own, and of such without.
var exposed = []uint64{0, 99, 100, 0xffffffff}

// expose lets peers reach all memory of x.
func (x *matching) expose(key uint64, access hw.Access) hw.MatchID {
	x.t.Helper()
	x.clear()
	r := hw.MatchRegion{Memory: x.memory, Key: key, Access: access, Context: key}
	id, err := x.m.(hw.MemoryMatcher).Expose(&r)
	if err != nil {
		x.t.Fatal(err)
	}
	await(x, x, 1, 1)
	if e := x.events[0]; e.Kind != hw.MatchExposed || e.Context != key || e.Err != nil || e.Last {
		x.t.Fatalf("key %d: %+v", key, e)
	}
	x.clear()
	return id
}

// withdraw ends that.
func (x *matching) withdraw(id hw.MatchID, key uint64) {
	x.t.Helper()
	x.clear()
	if err := x.m.(hw.MemoryMatcher).Withdraw(id); err != nil {
		x.t.Fatal(err)
	}
	if err := x.m.(hw.MemoryMatcher).Withdraw(id); !errors.Is(err, hw.ErrInvalid) {
		x.t.Errorf("withdrawn twice: %v", err)
	}
	await(x, x, 1, 1)
	if e := x.events[0]; e.Kind != hw.MatchWithdrawn || e.Context != key || e.Err != nil || !e.Last {
		x.t.Fatalf("key %d: %+v", key, e)
	}
	x.clear()
}

// transfer does a read or write, and returns how it has ended.
func (x *matching) transfer(r hw.MatchTransfer) error {
	x.t.Helper()
	x.clear()
	if err := x.m.(hw.MemoryMatcher).PostTransfer(&r); err != nil {
		x.t.Fatal(err)
	}
	await(x, x, 1, 1)
	if e := x.events[0]; e.Kind != hw.MatchTransferred || e.Context != r.Context || !e.Last {
		x.t.Fatalf("%+v", e)
	}
	return x.events[0].Err
}

// TestMatchMemory: what is written under a key is in the memory, and is read from it, while it is exposed, and no byte
// beside it. Messages go on, and so does flow control, whose list it shares.
func TestMatchMemory(t *testing.T) {
	const size = 1 << 20
	a, b := newMatching(t, MatchConfig{}, size), newMatching(t, MatchConfig{}, size)
	both := hw.RemoteRead | hw.RemoteWrite
	for range 2 { // keys are free again
		for _, key := range exposed {
			id := b.expose(key, both)
			for k, n := range []int{0, 1, 64, 5000, size / 2} {
				off := size/2 - n/2 + k
				fillBytes(a.b[:n], key+uint64(n))
				clear(b.b)
				r := hw.MatchTransfer{To: b.self, Key: key, Offset: uint64(off), Local: a.at(0, n),
					Context: uint64(k)}
				if err := a.transfer(r); err != nil {
					t.Fatalf("key %d, %d bytes are written: %v", key, n, err)
				}
				if !bytes.Equal(b.b[off:off+n], a.b[:n]) || bytes.Count(b.b[:off], []byte{0}) != off ||
					bytes.Count(b.b[off+n:], []byte{0}) != size-off-n {
					t.Fatalf("key %d, %d bytes: others were written", key, n)
				}
				clear(a.b)
				r.Local, r.Get = a.at(8, n), true
				if err := a.transfer(r); err != nil || !bytes.Equal(b.b[off:off+n], a.b[8:8+n]) {
					t.Fatalf("key %d, %d bytes are read: %v", key, n, err)
				}
			}
			b.withdraw(id, key)
		}
	}
	a.send(hw.MatchSend{To: b.self, Local: a.at(0, 20000)})
	b.receive(hw.MatchReceive{From: a.self, Local: b.at(0, 20000)})
	a.clear()
	b.clear()
	await(a, b, 1, 1)
	if s := b.m.(hw.MatchCounter).MatchStats(); s.Malformed != 0 || s.Refused != 0 {
		t.Errorf("%+v", s)
	}
}

// TestMatchMemoryRefused: what a key does not allow changes nothing.
func TestMatchMemoryRefused(t *testing.T) {
	const size = 8192
	a, b := newMatching(t, MatchConfig{}, size), newMatching(t, MatchConfig{}, size)
	fillBytes(a.b, 1)
	try := func(what string, r hw.MatchTransfer) {
		t.Helper()
		r.To = b.self
		if err := a.transfer(r); !errors.Is(err, hw.ErrKey) {
			t.Errorf("key %d, %s: %v", r.Key, what, err)
		}
	}
	for _, key := range exposed {
		try("nothing is exposed", hw.MatchTransfer{Key: key, Local: a.at(0, 8)})
		id := b.expose(key, hw.RemoteRead)
		try("written without the right", hw.MatchTransfer{Key: key, Local: a.at(0, 8)})
		try("behind the end", hw.MatchTransfer{Key: key, Local: a.at(0, 8), Offset: size - 7, Get: true})
		try("far behind it", hw.MatchTransfer{Key: key, Local: a.at(0, 8), Offset: 1<<56 - 1, Get: true})
		b.withdraw(id, key)
		id = b.expose(key, hw.RemoteWrite)
		try("read without the right", hw.MatchTransfer{Key: key, Local: a.at(0, 8), Get: true})
		try("over the end", hw.MatchTransfer{Key: key, Local: a.at(0, size), Offset: 1})
		b.withdraw(id, key)
		try("withdrawn", hw.MatchTransfer{Key: key, Local: a.at(0, 8)})
	}
	if bytes.Count(b.b, []byte{0}) != size {
		t.Error("something was written")
	}
	m := b.m.(hw.MemoryMatcher)
	id := b.expose(7, hw.RemoteRead)
	for what, r := range map[string]hw.MatchRegion{
		"a key that a region has": {Memory: b.memory, Key: 7, Access: hw.RemoteRead},
		"a key that is too long":  {Memory: b.memory, Key: 1 << 32, Access: hw.RemoteRead},
		"no right":                {Memory: b.memory, Key: 8},
		"another right":           {Memory: b.memory, Key: 8, Access: hw.RemoteAtomic},
		"no memory":               {Key: 8, Access: hw.RemoteRead},
	} {
		if _, err := m.Expose(&r); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, r := range map[string]hw.MatchTransfer{
		"a key that is too long": {To: a.self, Key: 1 << 32},
		"no address":             {To: ^hw.MatchAddress(0)},
		"an offset too great":    {To: a.self, Offset: 1 << 56},
	} {
		if err := m.PostTransfer(&r); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	b.withdraw(id, 7)
	b.expose(9, hw.RemoteRead) // Close finds both kinds
	b.expose(900, hw.RemoteRead)
}
