package loopback

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// TestProof holds what a header says about a key to its rules.
func TestProof(t *testing.T) {
	none := [authBytes]byte{}
	if senderProof(nil, 5, 6) != none {
		t.Error("no key has a proof")
	}
	seen := map[[authBytes]byte]bool{none: true}
	for _, key := range []string{"a", "b", "aa", "\x00"} {
		for _, cookie := range []uint64{1, 2} {
			for _, p := range [][authBytes]byte{
				ownerProof([]byte(key), cookie), senderProof([]byte(key), cookie, 3),
				senderProof([]byte(key), 3, cookie),
			} {
				if seen[p] {
					t.Errorf("%q, %d: %x again", key, cookie, p)
				}
				seen[p] = true
			}
			first := ownerProof([]byte(key), cookie)
			if again := ownerProof([]byte(key), cookie); again != first {
				t.Errorf("%q, %d: not the same twice", key, cookie)
			}
		}
	}
}

// openKeyed opens an interface at a port, until the test ends.
func openKeyed(t *testing.T, port uint16, c Config) *Iface {
	t.Helper()
	i, err := Open(at(port, 10, 0, 0, 1), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.Close() })
	return i
}

// TestKeys connects interfaces with the same and with different keys.
func TestKeys(t *testing.T) {
	dir := shmDir(t)
	open := func(port uint16, key string) *Iface { return openKeyed(t, port, Config{Dir: dir, Key: []byte(key)}) }
	one, same, two, none := open(1, "one"), open(2, "one"), open(3, "two"), open(4, "")
	for _, c := range []struct {
		from, to *Iface
		ok       bool
	}{{one, same, true}, {one, one, true}, {none, none, true}, {one, two, false}, {one, none, false},
		{none, two, false}} {
		_, err := c.from.Connect(c.to.Address())
		if c.ok && err != nil || !c.ok && !errors.Is(err, hw.ErrPermission) {
			t.Errorf("connect: %v, want success: %v", err, c.ok)
		}
	}
}

// TestSeveralKeys: an interface with several keys reaches, and is reached by, whatever has
// one of them, and knows under which.
func TestSeveralKeys(t *testing.T) {
	dir := shmDir(t)
	open := func(port uint16, c Config) *Iface {
		c.Dir = dir
		return openKeyed(t, port, c)
	}
	hub := open(1, Config{Keys: []hw.Key{{Number: 3, Secret: []byte("one")}, {Number: 9, Secret: []byte("two")}}})
	one, two, other := open(2, Config{Key: []byte("one")}), open(3, Config{Key: []byte("two")}),
		open(4, Config{Key: []byte("three")})
	both := open(5, Config{Keys: []hw.Key{{Number: 1, Secret: []byte("two")}, {Number: 2, Secret: []byte("one")}}})
	under := func(i *Iface, key uint8) []byte { return hw.AppendKey(append(i.Address(), 0, 0, 0, 0), key) }
	var got []string
	hub.SetHandler(1, func(src hw.Source, header uint64, head, payload []byte) {
		got = append(got, string(hub.SourceAddress(src)))
		if !hub.SourceReaches(src, hub.SourceAddress(src)) {
			t.Error("the source is not reached at its address")
		}
	})
	for _, c := range []struct {
		from   *Iface
		to     []byte
		source []byte // nil: refused
	}{
		{one, hub.Address(), under(one, 3)},
		{two, hub.Address(), under(two, 9)},
		{other, hub.Address(), nil},
		{both, under(hub, 1), under(both, 9)},
		{both, under(hub, 2), under(both, 3)},
		{both, under(hub, 3), nil},
		{both, hub.Address(), nil},
		{hub, under(one, 3), nil},
		{hub, under(one, 9), nil},
		{hub, under(hub, 9), under(hub, 9)},
	} {
		e, err := c.from.Connect(c.to)
		if c.source == nil {
			if c.from == hub && c.to[len(c.to)-4] == 3 {
				if err != nil || string(e.Address()) != string(c.to) {
					t.Errorf("connect under the right key: %v", err)
				}
			} else if !errors.Is(err, hw.ErrPermission) {
				t.Errorf("connect from %s to %x: %v", c.from.seg.id.name.String(), c.to, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("connect from %s to %x: %v", c.from.seg.id.name.String(), c.to, err)
		}
		if err := e.AMShort(1, 0, nil, nil); err != nil {
			t.Fatal(err)
		}
		hub.Progress(10)
		if len(got) != 1 || got[0] != string(c.source) {
			t.Errorf("from %s: %x, want %x", c.from.seg.id.name.String(), got, c.source)
		}
		got = nil
	}
}

// TestForgedProof: what writes itself into an attach table without a key of the owner's is
// not heard.
func TestForgedProof(t *testing.T) {
	dir := shmDir(t)
	open := func(port uint16, key string) *Iface { return openKeyed(t, port, Config{Dir: dir, Key: []byte(key)}) }
	hub, other := open(1, "one"), open(2, "two")
	hub.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { t.Error("a message without the key") })
	hub.cfg.Key, other.cfg.Key = []byte("two"), []byte("two") // as if it knew, when it polls
	seg := hub.seg
	*seg.proof(0) = ownerProof([]byte("two"), seg.id.cookie)
	e, err := other.Connect(hub.Address())
	if err != nil {
		t.Fatal(err)
	}
	hub.cfg.Key = []byte("one")
	if err := e.AMShort(1, 0, nil, nil); err != nil {
		t.Fatal(err)
	}
	hub.Progress(10)
	if hub.Stats().Malformed != 1 {
		t.Errorf("malformed messages: %d", hub.Stats().Malformed)
	}
}
