package verbs

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
)

// given is a device that gives out the same keys again and again.
type given struct {
	keys    []uint32
	n, open int
}

func (g *given) register() (*ibv.MR, error) {
	key := g.keys[g.n%len(g.keys)]
	g.n++
	g.open++
	return &ibv.MR{RKey: key}, nil
}

func (g *given) drop(*ibv.MR) error {
	g.open--
	return nil
}

// TestKept: a key that peers may keep does not name the same memory again.
func TestKept(t *testing.T) {
	var k keptKeys
	for _, c := range []struct {
		what string
		addr uint64
		keys []uint32
		want uint32
	}{
		{"a key that is not kept", 1000, []uint32{8}, 8},
		{"the same memory", 1000, []uint32{7, 8}, 8},
		{"the last byte of it", 1099, []uint32{7, 7, 9}, 9},
		{"the byte before it", 901, []uint32{7, 9}, 9},
		{"memory behind it", 1100, []uint32{7}, 7},
		{"memory before it", 900, []uint32{7}, 7},
		{"the device has no other", 1000, []uint32{7}, 0},
	} {
		k = keptKeys{}
		if !k.add(7, 1000, 100) {
			t.Fatal("no room for one key")
		}
		g := &given{keys: c.keys}
		m, err := k.anew(c.addr, 100, g.register, g.drop)
		if c.want == 0 {
			if !errors.Is(err, unix.EAGAIN) || !errors.Is(registered(err, 100), hw.ErrNoResource) ||
				g.n != maxRefused || g.open != 0 {
				t.Errorf("%s: %v after %d registrations", c.what, err, g.n)
			}
			continue
		}
		if err != nil || m.RKey != c.want || g.open != 1 {
			t.Errorf("%s: %+v, %v, %d registrations are open", c.what, m, err, g.open)
		}
	}
}

// TestKeptRoom: the number of keys that are kept is bounded, and a key that is known needs no more room.
func TestKeptRoom(t *testing.T) {
	var k keptKeys
	for key := range uint32(maxKept) {
		if !k.add(key, 4096, 1) {
			t.Fatalf("no room for key %d", key)
		}
	}
	if k.add(maxKept, 4096, 1) || len(k.spans) != maxKept {
		t.Errorf("%d keys", len(k.spans))
	}
	if !k.add(3, 8192, 1) || !k.named(3, 4096, 1) || !k.named(3, 8000, 200) || k.named(3, 8193, 100) {
		t.Error("a key that has named two regions")
	}
}

// TestKeyRegion reads from a key what was registered.
func TestKeyRegion(t *testing.T) {
	want := hw.Region{Len: 100, Base: 50, Access: hw.RemoteRead | hw.RemoteWrite}
	m := &Memory{region: want, addr: 1000, mr: &ibv.MR{RKey: 5}}
	k, err := unpackKey(m.PackKey(nil))
	if err != nil {
		t.Fatal(err)
	}
	if r := (&MemoryDomain{}).KeyRegion(k); r != want {
		t.Errorf("%+v", r)
	}
}
