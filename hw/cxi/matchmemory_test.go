package cxi

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// exposed are keys of regions with indices of their own, and of such without.
var exposed = []uint64{0, 99, 100, 0xffffffff}

// foreignMemory is of no device.
type foreignMemory struct{ hw.Memory }

// expose lets peers reach all memory of x.
func (x *matching) expose(key uint64, access hw.Access) hw.MatchID {
	x.t.Helper()
	return x.exposeAs(hw.MatchRegion{Memory: x.memory, Key: key, Access: access, Context: key})
}

// exposeAs lets peers reach a region, with its key as the context.
func (x *matching) exposeAs(r hw.MatchRegion) hw.MatchID {
	x.t.Helper()
	x.clear()
	key := r.Key
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
		"another device's memory": {Memory: foreignMemory{}, Key: 8, Access: hw.RemoteRead},
		"reads with an event":     {Memory: b.memory, Key: 8, Access: hw.RemoteRead, Notify: true},
	} {
		if _, err := m.Expose(&r); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, r := range map[string]hw.MatchTransfer{
		"a key that is too long": {To: a.self, Key: 1 << 32},
		"no address":             {To: ^hw.MatchAddress(0)},
		"an offset too great":    {To: a.self, Offset: 1 << 56},
		"a read that injects":    {To: a.self, Get: true, Inject: []byte{1}},
		"a read with data":       {To: a.self, Get: true, HasData: true},
		"memory, and injected":   {To: a.self, Local: a.at(0, 8), Inject: []byte{1}},
	} {
		if err := m.PostTransfer(&r); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := m.PostTransfer(&hw.MatchTransfer{To: a.self, Inject: make([]byte, 225)}); !errors.Is(err,
		hw.ErrTooLong) {
		t.Errorf("225 bytes are injected: %v", err)
	}
	b.withdraw(id, 7)
	b.expose(9, hw.RemoteRead) // Close finds both kinds
	b.expose(900, hw.RemoteRead)
}

// TestMatchMemoryInjected: what is injected is written as it was when it was posted, by more writes than there are
// places, and the poster's memory is its own at once.
func TestMatchMemoryInjected(t *testing.T) {
	const size = 64 << 10
	a, b := newMatching(t, MatchConfig{Sends: 8}, 4096), newMatching(t, MatchConfig{}, size)
	m := a.m.(hw.MemoryMatcher)
	for _, key := range exposed {
		b.expose(key, hw.RemoteWrite)
		a.clear()
		clear(b.b)
		want, buf := make([]byte, size), make([]byte, placeBytes)
		posts := 0
		for off := 0; off+placeBytes <= size; off += placeBytes {
			n := 1 + posts%placeBytes
			fillBytes(buf[:n], uint64(off)+key)
			copy(want[off:], buf[:n])
			p := hw.MatchTransfer{To: b.self, Key: key, Offset: uint64(off), Inject: buf[:n],
				Ordered:   posts%2 == 0,
				Delivered: posts%3 == 0, More: posts%5 == 0}
			err := m.PostTransfer(&p)
			for ; errors.Is(err, hw.ErrNoResource); err = m.PostTransfer(&p) {
				a.m.RingMatched()
				a.i.Progress(64)
			}
			if err != nil {
				t.Fatal(err)
			}
			clear(buf)
			posts++
		}
		a.m.RingMatched()
		await(a, b, posts, 0)
		for k := range a.events {
			if e := a.events[k]; e.Kind != hw.MatchTransferred || e.Err != nil {
				t.Fatalf("key %d: %+v", key, e)
			}
		}
		if !bytes.Equal(b.b, want) {
			t.Errorf("key %d: other bytes", key)
		}
	}
}

// TestMatchMemoryNotified: a write with data says so at its target, once, and no other does; a region that is not for
// such writes, or no longer, refuses them.
func TestMatchMemoryNotified(t *testing.T) {
	const size = 8192
	a, b := newMatching(t, MatchConfig{}, size), newMatching(t, MatchConfig{}, size)
	fillBytes(a.b, 3)
	for _, key := range exposed {
		plain := b.expose(key, hw.RemoteRead|hw.RemoteWrite)
		with := hw.MatchTransfer{To: b.self, Key: key, Offset: 5, Local: a.at(0, 3000),
			Data:    0x1122334455667788,
			HasData: true, Delivered: true}
		if err := a.transfer(with); !errors.Is(err, hw.ErrKey) {
			t.Errorf("key %d is not for writes with data: %v", key, err)
		}
		id := b.exposeAs(hw.MatchRegion{Memory: b.memory, Key: key, Access: hw.RemoteWrite, Notify: true,
			Context: key})
		with.Context = 77
		for n, w := range []hw.MatchTransfer{with, {To: b.self, Key: key, Offset: 9, Inject: []byte("abc"),
			Data:    1,
			HasData: true}, {To: b.self, Key: key, HasData: true}} {
			clear(b.b)
			b.clear()
			if err := a.transfer(w); err != nil {
				t.Fatalf("key %d: %v", key, err)
			}
			await(a, b, 1, 1)
			wrote := append(append([]byte{}, a.b[:w.Local.Len]...), w.Inject...)
			e := b.events[0]
			if len(b.events) != 1 || e.Kind != hw.MatchWritten || !e.HasData || e.Data != w.Data ||
				e.Context != key || e.From != a.self ||
				e.Offset != w.Offset || e.Length != uint64(len(wrote)) || e.Last {
				t.Errorf("key %d, write %d: %+v", key, n, b.events)
			}
			if !bytes.Equal(b.b[w.Offset:][:len(wrote)], wrote) {
				t.Errorf("key %d, write %d: other bytes", key, n)
			}
		}
		b.clear()
		if err := a.transfer(hw.MatchTransfer{To: b.self, Key: key, Local: a.at(0, 8)}); err != nil {
			t.Fatal(err)
		}
		b.i.Progress(8)
		if len(b.events) != 0 {
			t.Errorf("key %d: a write without data says %+v", key, b.events)
		}
		b.withdraw(id, key)
		if err := a.transfer(with); !errors.Is(err, hw.ErrKey) {
			t.Errorf("key %d is withdrawn: %v", key, err)
		}
		b.withdraw(plain, key)
	}
}

// TestMatchMemoryNone: a region without bytes is reached by operations without bytes, and by no others.
func TestMatchMemoryNone(t *testing.T) {
	a, b := newMatching(t, MatchConfig{}, 4096), newMatching(t, MatchConfig{}, 4096)
	for _, key := range exposed {
		b.exposeAs(hw.MatchRegion{Key: key, Access: hw.RemoteRead | hw.RemoteWrite, Context: key})
		for _, get := range []bool{false, true} {
			if err := a.transfer(hw.MatchTransfer{To: b.self, Key: key, Get: get}); err != nil {
				t.Errorf("key %d: %v", key, err)
			}
			if err := a.transfer(hw.MatchTransfer{To: b.self, Key: key, Get: get, Local: a.at(0,
				1)}); !errors.Is(err, hw.ErrKey) {
				t.Errorf("key %d, a byte: %v", key, err)
			}
		}
	}
}
