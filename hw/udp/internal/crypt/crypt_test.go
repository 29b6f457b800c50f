package crypt

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw/udp/internal/wire"
)

func TestCookie(t *testing.T) {
	c, err := NewCookies()
	if err != nil {
		t.Fatal(err)
	}
	client := wire.Side{CID: 2, Nonce: [wire.NonceSize]byte{3}}
	addr := []byte("an address")
	var cookie [wire.CookieSize]byte
	c.Make(&cookie, time.Minute, addr, &client)
	if !c.Share().Check(&cookie, time.Minute+CookieLife, addr, &client) {
		t.Error("a good cookie is refused")
	}
	other, _ := NewCookies()
	for name, bad := range map[string]func() bool{
		"another key":     func() bool { return other.Check(&cookie, time.Minute, addr, &client) },
		"too old":         func() bool { return c.Check(&cookie, time.Minute+CookieLife+1, addr, &client) },
		"from the future": func() bool { return c.Check(&cookie, time.Minute-1, addr, &client) },
		"another address": func() bool { return c.Check(&cookie, time.Minute, []byte("an addresS"), &client) },
		"another id": func() bool {
			s := client
			s.CID++
			return c.Check(&cookie, time.Minute, addr, &s)
		},
		"the id of another with the same index": func() bool {
			s := client
			s.CID += wire.MaxConnections
			return c.Check(&cookie, time.Minute, addr, &s)
		},
		"another nonce": func() bool {
			s := client
			s.Nonce[15]++
			return c.Check(&cookie, time.Minute, addr, &s)
		},
	} {
		if bad() {
			t.Errorf("%s: the cookie is taken", name)
		}
	}
	for i := range cookie {
		forged := cookie
		forged[i] ^= 1
		if c.Check(&forged, time.Minute, addr, &client) {
			t.Errorf("a cookie with byte %d changed is taken", i)
		}
	}
}

func TestSign(t *testing.T) {
	k, err := NewKey([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, wire.InitSize)
	(&wire.Init{Client: wire.Side{CID: 9}}).Put(b)
	k.Sign(b)
	if !k.Verify(b) {
		t.Error("a good packet is refused")
	}
	for i := range b {
		b[i] ^= 0x40
		if k.Verify(b) {
			t.Errorf("byte %d may change", i)
		}
		b[i] ^= 0x40
	}
	other, _ := NewKey([]byte("Secret"))
	if other.Verify(b) {
		t.Error("another key verifies it")
	}
	for _, n := range []int{0, MaxKey + 1} {
		if _, err := NewKey(make([]byte, n)); !errors.Is(err, ErrKey) {
			t.Errorf("key of %d bytes: %v", n, err)
		}
	}
}

// pair makes both ends of a connection.
func pair(t testing.TB) (*Seal, *Open) {
	t.Helper()
	k, err := NewKey([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	a, b := wire.Side{CID: 1}, wire.Side{CID: 2}
	seal, _, err := k.Connection(&a, &b, true)
	if err != nil {
		t.Fatal(err)
	}
	_, open, err := k.Connection(&a, &b, false)
	if err != nil {
		t.Fatal(err)
	}
	return seal, open
}

func sealed(t testing.TB, s *Seal, text string, number uint64) []byte {
	t.Helper()
	b := make([]byte, len(text), len(text)+wire.TagSize)
	copy(b, text)
	out, err := s.Seal([]byte("header"), b, number)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSealOpen(t *testing.T) {
	seal, open := pair(t)
	for _, n := range []uint64{0, 1, 77, 1<<epochBits - 1, 1 << epochBits, 1<<epochBits + 5, 2 << epochBits} {
		b := sealed(t, seal, "frames", n)
		if bytes.Contains(b, []byte("frames")) {
			t.Error("not encrypted")
		}
		for i := range b {
			bad := bytes.Clone(b)
			bad[i] ^= 1
			if _, err := open.Open([]byte("header"), bad, n); !errors.Is(err, ErrForged) {
				t.Fatalf("number %d, byte %d changed: %v", n, i, err)
			}
		}
		if _, err := open.Open([]byte("Header"), bytes.Clone(b), n); !errors.Is(err, ErrForged) {
			t.Errorf("number %d, another header: %v", n, err)
		}
		if _, err := open.Open([]byte("header"), bytes.Clone(b), n+1); !errors.Is(err, ErrForged) {
			t.Errorf("number %d as another: %v", n, err)
		}
		got, err := open.Open([]byte("header"), b, n)
		if err != nil || string(got) != "frames" {
			t.Errorf("number %d: %q, %v", n, got, err)
		}
	}
}

// TestEpochs takes packets of the epoch before, and none of far epochs.
func TestEpochs(t *testing.T) {
	seal, open := pair(t)
	late := sealed(t, seal, "late", 5)
	next := sealed(t, seal, "next", 1<<epochBits)
	far := sealed(t, seal, "far", 9<<epochBits)
	if _, err := open.Open([]byte("header"), far, 9<<epochBits); !errors.Is(err, ErrForged) {
		t.Errorf("far epoch: %v", err)
	}
	if open.after != nil {
		t.Error("a far number made keys")
	}
	if got, err := open.Open([]byte("header"), next, 1<<epochBits); string(got) != "next" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := open.Open([]byte("header"), late, 5); string(got) != "late" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestKeysDiffer compares the keys of directions and connections.
func TestKeysDiffer(t *testing.T) {
	k, _ := NewKey([]byte("secret"))
	a, b := wire.Side{CID: 1}, wire.Side{CID: 2}
	seen := map[[nonceSize]byte]string{}
	add := func(name string, iv [nonceSize]byte) {
		if other, ok := seen[iv]; ok {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[iv] = name
	}
	s, o, _ := k.Connection(&a, &b, true)
	add("up", s.now.iv)
	add("down", o.now.iv)
	n, _ := s.now.next()
	add("next", n.iv)
	a.Nonce[0]++
	s, o, _ = k.Connection(&a, &b, true)
	add("up of another", s.now.iv)
	add("down of another", o.now.iv)
}

func TestNoAllocation(t *testing.T) {
	seal, open := pair(t)
	b := make([]byte, 1200, 1200+wire.TagSize)
	header := make([]byte, wire.HeaderSize)
	n := uint64(0)
	if got := testing.AllocsPerRun(100, func() {
		n++
		out, err := seal.Seal(header, b, n)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := open.Open(header, out, n); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkSeal1400(b *testing.B) {
	seal, _ := pair(b)
	buf := make([]byte, 1400, 1400+wire.TagSize)
	header := make([]byte, wire.HeaderSize)
	b.SetBytes(1400)
	n := uint64(0)
	for b.Loop() {
		n++
		_, _ = seal.Seal(header, buf, n)
	}
}

// FuzzOpen: arbitrary bytes are refused.
func FuzzOpen(f *testing.F) {
	seal, open := pair(f)
	f.Add(sealed(f, seal, "frames", 3), uint64(4))
	f.Fuzz(func(t *testing.T, b []byte, number uint64) {
		if _, err := open.Open([]byte("another header"), b, number); !errors.Is(err, ErrForged) {
			t.Errorf("taken: %v", err)
		}
	})
}
