package loopback

import (
	"errors"
	"testing"

	"github.com/weft-fabric/weft/hw"
)

// TestProof holds what a header says about a key to its rules.
func TestProof(t *testing.T) {
	none := [authBytes]byte{}
	if proof(nil, 5) != none {
		t.Error("no key has a proof")
	}
	seen := map[[authBytes]byte]bool{none: true}
	for _, key := range []string{"a", "b", "aa", "\x00"} {
		for _, cookie := range []uint64{1, 2} {
			p := proof([]byte(key), cookie)
			if seen[p] || p != proof([]byte(key), cookie) {
				t.Errorf("%q, %d: %x", key, cookie, p)
			}
			seen[p] = true
		}
	}
}

// TestKeys connects interfaces with the same and with different keys.
func TestKeys(t *testing.T) {
	dir := shmDir(t)
	open := func(port uint16, key string) *Iface {
		i, err := Open(at(port, 10, 0, 0, 1), Config{Dir: dir, Key: []byte(key)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = i.Close() })
		return i
	}
	one, same, two, none := open(1, "one"), open(2, "one"), open(3, "two"), open(4, "")
	for _, c := range []struct {
		from, to *Iface
		ok       bool
	}{{one, same, true}, {one, one, true}, {none, none, true}, {one, two, false}, {one, none, false}, {none, two, false}} {
		_, err := c.from.Connect(c.to.Address())
		if c.ok && err != nil || !c.ok && !errors.Is(err, hw.ErrPermission) {
			t.Errorf("connect: %v, want success: %v", err, c.ok)
		}
	}
}
