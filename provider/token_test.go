package provider

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/log/logtest"
	"github.com/weft-fabric/weft/provider/token"
)

// token makes a token of a region.
func (s *side) token(m *MR) Token {
	s.t.Helper()
	t, err := m.Token(&TokenAttr{EP: s.ep})
	if err != nil {
		s.t.Fatal(err)
	}
	return t
}

// opens opens a token, until the test ends.
func (s *side) opens(t Token) *Remote {
	s.t.Helper()
	r, err := s.ep.OpenToken(t)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := r.Close(); err != nil && fi.ErrnoOf(err) != fi.EBADF {
			s.t.Errorf("close remote region: %v", err)
		}
	})
	return r
}

// TestToken has a peer that is not in the address vector open a token, and read and write
// through the key that it finds there.
func TestToken(t *testing.T) {
	forEachPath(t, func(t *testing.T, b *bench) {
		x, y := b.side(t), b.side(t)
		memory := bytes.Repeat([]byte{1}, 1<<16)
		m := y.region(memory, 7, fi.RemoteRead|fi.RemoteWrite)
		tok := y.token(m)
		if again := y.token(m); !bytes.Equal(again, tok) {
			t.Error("two tokens of a region differ")
		}
		r := x.opens(tok)
		i := r.Info()
		if i.Length != 1<<16 || i.Base != 0 || i.Rights != fi.RemoteRead|fi.RemoteWrite || i.Kind != token.Host ||
			i.Key == 7 {
			t.Errorf("%+v", i)
		}
		x.addr[y] = i.Addr
		local := make([]byte, 1<<16)
		for n, length := range []int{1 << 16, 8} {
			post(t, func() error {
				return x.ep.RMA(&RMAArgs{IOV: iovOf(local[:length]),
					Remote: []fi.RMAIOVec{{Key: i.Key, Len: uint64(length)}}, Dest: i.Addr, Context: uint64(n),
					Read: true})
			}, x, y)
			wantDone(t, x, y, uint64(n), fi.RMA|fi.Read)
		}
		if !bytes.Equal(local, memory) {
			t.Error("read wrong bytes")
		}
		if again := x.opens(tok).Info(); again.Addr != i.Addr {
			t.Errorf("the owner is at %d, and at %d", i.Addr, again.Addr)
		}
		want := map[bool]Way{true: WayIPC, false: WayMessage}[b.domain.cfg.UseCMA == config.Auto]
		if now := r.Info(); now.Way != want || now.Why[want] != "" || now.Why[WayRDMA] == "" ||
			now.Why[WayIPC+WayMessage-want] == "" {
			t.Errorf("way %v, why not %q", now.Way, now.Why)
		}
	})
}

// wantRefused reads through a key and wants an error.
func wantRefused(t *testing.T, x *side, i RemoteInfo, want fi.Errno, others ...*side) {
	t.Helper()
	local := make([]byte, 4096)
	post(t, func() error {
		return x.ep.RMA(&RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Addr: i.Base, Key: i.Key, Len: 4096}},
			Dest: i.Addr, Read: true})
	}, append(others, x)...)
	if _, e, done := settle(t, x, others...); done || e.Err != want || !bytes.Equal(local, make([]byte, 4096)) {
		t.Errorf("read after the end: done %t, %v, want %v", done, e.Err, want)
	}
}

// TestTokenReplayed shows that a token ends with its region, although the application
// gives another one the same key.
func TestTokenReplayed(t *testing.T) {
	forEachPath(t, func(t *testing.T, b *bench) {
		x, y := b.side(t), b.side(t)
		secret := bytes.Repeat([]byte{1}, 4096)
		m := y.region(secret, 7, fi.RemoteRead)
		old := x.opens(y.token(m))
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, x, old.Info(), fi.ENOKEY, y)
		m = y.region(secret, 7, fi.RemoteRead)
		wantRefused(t, x, old.Info(), fi.ENOKEY, y)
		if n := x.opens(y.token(m)).Info(); n.Key == old.Info().Key {
			t.Error("another region, the same key")
		}
		wantRefused(t, x, old.Info(), fi.ENOKEY, y)
	})
}

// TestTokenOfProviderKeys shows that where keys are random a token has the region's.
func TestTokenOfProviderKeys(t *testing.T) {
	hints := rmaHints()
	hints.Domain = &fi.DomainAttr{MRMode: fi.MRProvKey | fi.MRVirtAddr | fi.MRAllocated}
	b := newBench(t, nil, hints)
	x, y := b.side(t), b.side(t)
	memory := make([]byte, 4096)
	m := y.region(memory, 0, fi.RemoteWrite)
	if i := x.opens(y.token(m)).Info(); i.Key != m.Key() || i.Base != uint64(iovOf(memory)[0].Base) ||
		i.Rights != fi.RemoteWrite {
		t.Errorf("%+v, the region's key is %#x", i, m.Key())
	}
}

func TestTokenRefused(t *testing.T) {
	b, other := newBench(t, nil, rmaHints()), newBench(t, nil, rmaHints())
	x, y, z := b.side(t), b.side(t), other.side(t)
	m := y.region(make([]byte, 64), 7, fi.RemoteRead)
	hidden := y.region(make([]byte, 64), 8, fi.Read)
	closed := y.region(make([]byte, 64), 9, fi.RemoteRead)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	disabled, err := b.domain.OpenEndpoint(b.info)
	if err != nil {
		t.Fatal(err)
	}
	defer disabled.Close()
	for _, c := range []struct {
		what string
		m    *MR
		attr TokenAttr
		want fi.Errno
	}{
		{"closed", closed, TokenAttr{}, fi.EBADF},
		{"not for peers", hidden, TokenAttr{}, fi.EACCES},
		{"another domain's endpoint", m, TokenAttr{EP: z.ep}, fi.EDOMAIN},
		{"an endpoint that is not enabled", m, TokenAttr{EP: disabled}, fi.EOPBADSTATE},
		{"name too long", m, TokenAttr{Agent: strings.Repeat("x", token.MaxAgent+1)}, fi.EINVAL},
		{"any endpoint", m, TokenAttr{Agent: strings.Repeat("x", token.MaxAgent)}, fi.Success},
	} {
		tok, err := c.m.Token(&c.attr)
		wantErrno(t, err, c.want, c.what)
		if err == nil && x.opens(tok).Info().Agent != c.attr.Agent {
			t.Errorf("%s: %+v", c.what, x.opens(tok).Info())
		}
	}
	lines := logtest.Capture(t, log.Info)
	if _, err := x.ep.OpenToken([]byte("no token")); fi.ErrnoOf(err) != fi.EINVAL {
		t.Errorf("no token: %v", err)
	}
	if l := lines(); len(l) != 1 || !strings.Contains(l[0], "8 bytes that do not begin as one") {
		t.Errorf("logged %q", l)
	}
	_, err = disabled.OpenToken(y.token(m))
	wantErrno(t, err, fi.EOPBADSTATE, "open by an endpoint that is not enabled")
}

// TestTokenChanged has every bit of a token flipped, and cuts it, and finds the address vector as
// it was.
func TestTokenChanged(t *testing.T) {
	b := newBench(t, nil, rmaHints())
	x, y := b.side(t), b.side(t)
	tok := y.token(y.region(make([]byte, 64), 7, fi.RemoteRead))
	generation := x.av.Generation()
	for i := range len(tok) * 8 {
		bad := bytes.Clone(tok)
		bad[i/8] ^= 1 << (i % 8)
		if _, err := x.ep.OpenToken(bad); fi.ErrnoOf(err) != fi.EINVAL {
			t.Errorf("bit %d flipped: %v", i, err)
		}
	}
	for n := range tok {
		if _, err := x.ep.OpenToken(tok[:n]); fi.ErrnoOf(err) != fi.EINVAL {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if x.av.Generation() != generation {
		t.Error("the address vector was changed")
	}
}

// TestTokenText takes tokens through their text and binary forms.
func TestTokenText(t *testing.T) {
	b := newBench(t, nil, rmaHints())
	y := b.side(t)
	tok := y.token(y.region(make([]byte, 64), 7, fi.RemoteRead))
	text, err := tok.MarshalText()
	if err != nil || string(text) != tok.String() || len(text) > token.MaxLen {
		t.Errorf("%q, %v", text, err)
	}
	var back Token
	if err := back.UnmarshalText(text); err != nil || !bytes.Equal(back, tok) {
		t.Errorf("%v, %v", back, err)
	}
	wantErrno(t, back.UnmarshalText(text[1:]), fi.EINVAL, "cut text")
	packed, _ := tok.MarshalBinary()
	if err := back.UnmarshalBinary(packed); err != nil || !bytes.Equal(back, tok) {
		t.Errorf("%v, %v", back, err)
	}
	wantErrno(t, back.UnmarshalBinary(make([]byte, token.MaxLen+1)), fi.EINVAL, "too many bytes")
}

// TestTokenKeyed shows that a token of an endpoint with an authorisation key is for those what
// have it.
func TestTokenKeyed(t *testing.T) {
	hints := rmaHints()
	hints.Domain = &fi.DomainAttr{AuthKey: []byte("one"), AuthKeySize: 3}
	with := newBench(t, nil, hints)
	without := newBench(t, nil, rmaHints())
	x, y, z := with.side(t), with.side(t), without.side(t)
	tok := y.token(y.region(make([]byte, 64), 7, fi.RemoteRead))
	x.opens(tok)
	_, err := z.ep.OpenToken(tok)
	wantErrno(t, err, fi.EINVAL, "open without the key")
	_, err = x.ep.OpenToken(z.token(z.region(make([]byte, 64), 7, fi.RemoteRead)))
	wantErrno(t, err, fi.EINVAL, "open one without a key")
}

// TestTokenBusy shows what closes first.
func TestTokenBusy(t *testing.T) {
	b := newBench(t, nil, rmaHints())
	x, y := b.side(t), b.side(t)
	r := x.opens(y.token(y.region(make([]byte, 64), 7, fi.RemoteRead)))
	wantErrno(t, x.ep.Close(), fi.EBUSY, "close the endpoint first")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	wantErrno(t, r.Close(), fi.EBADF, "close twice")
}

// TestTokenOverUDP opens the token of a peer of which nothing is known, and reads.
func TestTokenOverUDP(t *testing.T) {
	sides := overUDP(t, 2, nil)
	x, y := sides[0], sides[1]
	memory := bytes.Repeat([]byte{9}, 4096)
	i := x.opens(y.token(y.region(memory, 7, fi.RemoteRead))).Info()
	local := make([]byte, 4096)
	post(t, func() error {
		return x.ep.RMA(&RMAArgs{IOV: iovOf(local), Remote: []fi.RMAIOVec{{Key: i.Key, Len: 4096}}, Dest: i.Addr,
			Context: 3, Read: true})
	}, x, y)
	wantDone(t, x, y, 3, fi.RMA|fi.Read)
	if !bytes.Equal(local, memory) {
		t.Error("read wrong bytes")
	}
	i = x.opens(y.token(y.region(memory, 8, fi.RemoteRead))).Info()
	if i.Way != WayMessage || !strings.Contains(i.Why[WayIPC], "reached over") {
		t.Errorf("way %v, why not %q", i.Way, i.Why)
	}
}
