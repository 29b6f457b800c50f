package token

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weft-fabric/weft/provider/names"
)

// sample is a token with every field set. testdata has it as this version writes it.
func sample() *Token {
	ipc := IPC{BootID: [2]uint64{0x1122334455667788, 0x99aabbccddeeff00}, PIDNS: 4026531836, NetNS: 4026531840,
		PID: 4711, Start: 123456}
	return &Token{
		Owner: names.New(netip.MustParseAddr("10.1.2.3"), 5000), Incarnation: 0xfeedfacecafebeef, Agent: "prefill-0",
		Key: 0x0123456789abcdef, Base: 0x7f0000001000, Length: 1 << 30, Rights: Read | Write, Kind: CUDA,
		Device: [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		Parts:  []Part{{PartMessages, nil}, {0x7777, []byte("of a later version")}, {PartIPC, ipc.Append(nil)}},
	}
}

var authKey = []byte("a key of the job")

func packed(t testing.TB, tok *Token, auth []byte) []byte {
	t.Helper()
	var keys [][]byte
	if auth != nil {
		keys = [][]byte{auth}
	}
	b, err := tok.Append(nil, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	six := sample()
	six.Owner = names.New(netip.MustParseAddr("fe80::1%7"), 1)
	six.Agent, six.Parts = strings.Repeat("a", MaxAgent), nil
	for _, auth := range [][]byte{nil, authKey} {
		for _, tok := range []*Token{sample(), six} {
			b := packed(t, tok, auth)
			got, err := Parse(b, auth)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tok, got, cmp.Comparer(func(a, b Part) bool {
				return a.Type == b.Type &&
					bytes.Equal(a.Body, b.Body)
			})); d != "" {
				t.Error(d)
			}
			text := AppendText(nil, b)
			if back, err := ParseText(append(text, '\n')); err != nil || !bytes.Equal(back, b) || !IsText(text) ||
				IsText(b) {
				t.Errorf("text form %s: %v", text, err)
			}
		}
	}
}

// TestOld reads the token that the first version wrote, which every later one must be
// able to, and finds that this version still writes the same bytes.
func TestOld(t *testing.T) {
	for name, auth := range map[string][]byte{"v1.token": nil, "v1-keyed.token": authKey} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := ParseText(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(b, auth)
		if err != nil {
			t.Fatal(err)
		}
		want := sample()
		if got.Owner != want.Owner || got.Key != want.Key || got.Length != want.Length || got.Agent != want.Agent ||
			got.Kind != want.Kind {
			t.Errorf("%s: %+v", name, got)
		}
		body, ok := got.Find(PartIPC)
		if ipc, parsed := ParseIPC(body); !ok || !parsed || ipc.PID != 4711 || ipc.Start != 123456 {
			t.Errorf("%s: the part about the process is %+v", name, ipc)
		}
		if Version == 1 && !bytes.Equal(packed(t, want, auth), b) {
			t.Errorf("%s: this version writes other bytes\n%s", name, AppendText(nil, packed(t, want, auth)))
		}
	}
}

// refused finds that bytes do not parse.
func refused(t *testing.T, what string, b, auth []byte) {
	t.Helper()
	if tok, err := Parse(b, auth); !errors.Is(err, ErrInvalid) {
		t.Errorf("%s: %+v, %v", what, tok, err)
	}
}

// TestChanged flips every bit and cuts at every length.
func TestChanged(t *testing.T) {
	for _, auth := range [][]byte{nil, authKey} {
		b := packed(t, sample(), auth)
		for i := range len(b) * 8 {
			b[i/8] ^= 1 << (i % 8)
			refused(t, "a bit flipped", b, auth)
			b[i/8] ^= 1 << (i % 8)
		}
		for n := range len(b) {
			refused(t, "cut", b[:n], auth)
			refused(t, "cut at the front", b[n+1:], auth)
		}
		refused(t, "longer", append(b, 0), auth)
		refused(t, "much longer", append(b, make([]byte, MaxLen)...), auth)
	}
}

// TestManyKeys: a token under several keys is one for readers with any of them, also beside others, and for no others.
// A bit that is flipped, also in the seal of a key that the reader does not have, is found.
func TestManyKeys(t *testing.T) {
	key := func(i int) []byte { return fmt.Appendf(nil, "key %d", i) }
	for _, n := range []int{2, 3, 20} {
		var keys [][]byte
		for i := range n {
			keys = append(keys, key(i))
		}
		tok := sample()
		b, err := tok.Append(nil, keys...)
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range keys {
			got, under, err := ParseUnder(b, [][]byte{[]byte("another"), k, key(0)})
			if err != nil || under != 1 || got.Key != tok.Key || len(got.Parts) != len(tok.Parts) {
				t.Errorf("%d keys, the %d.: %+v, under %d, %v", n, i, got, under, err)
			}
			if _, err := Parse(b, k); err != nil {
				t.Errorf("%d keys, the %d. alone: %v", n, i, err)
			}
		}
		refused(t, "without a key", b, nil)
		refused(t, "with another", b, []byte("another"))
		for i := range len(b) * 8 {
			b[i/8] ^= 1 << (i % 8)
			refused(t, "a bit flipped", b, keys[n-1])
			b[i/8] ^= 1 << (i % 8)
		}
		for i := range len(b) {
			refused(t, "cut", b[:i], keys[0])
		}
		forged := bytes.Clone(b) // seals that reach into the head, the sum made anew
		forged[15] = 255
		seal := sealOf(forged[:len(forged)-sealLen], nil)
		copy(forged[len(forged)-sealLen:], seal[:])
		refused(t, "seals beyond the parts", forged, keys[0])
	}
	many := make([][]byte, 60)
	for i := range many {
		many[i] = key(i)
	}
	if _, err := sample().Append(nil, many...); !errors.Is(err, ErrInvalid) {
		t.Errorf("%d keys: %v", len(many), err)
	}
	if _, err := sample().Append(nil, key(0), nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("an empty key: %v", err)
	}
}

// TestContext: which receive context the owner is.
func TestContext(t *testing.T) {
	for index := range 3 {
		tok := sample()
		if index != 0 {
			tok.Parts = append(tok.Parts, ContextPart(uint8(index)))
		}
		got, err := Parse(packed(t, tok, nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := got.Context(); !ok || int(c) != index {
			t.Errorf("context %d is %d, %t", index, c, ok)
		}
	}
	for _, body := range [][]byte{nil, {1}, {0, 1}} {
		tok := sample()
		tok.Parts = append(tok.Parts, Part{PartContext, body})
		if c, ok := tok.Context(); ok {
			t.Errorf("%x is context %d", body, c)
		}
	}
	tok := sample()
	tok.Parts = append(tok.Parts, ContextPart(1), ContextPart(2))
	refused(t, "two contexts", packed(t, tok, nil), nil)
}

// TestOtherKey shows that a token of one key is none under another, nor without one.
func TestOtherKey(t *testing.T) {
	refused(t, "keyed, read without", packed(t, sample(), authKey), nil)
	refused(t, "keyed, read with another", packed(t, sample(), authKey), []byte("another"))
	refused(t, "without a key, read with one", packed(t, sample(), nil), authKey)
}

// reseal changes bytes and seals them again, as what forges a token does.
func reseal(b []byte, change func(b []byte)) []byte {
	c := bytes.Clone(b)
	change(c)
	seal := sealOf(c[:len(c)-sealLen], nil)
	copy(c[len(c)-sealLen:], seal[:])
	return c
}

// TestForged gives out tokens whose seals are right and whose fields are not.
func TestForged(t *testing.T) {
	good := packed(t, sample(), nil)
	parts := fixedLen + len(sample().Agent)
	for what, change := range map[string]func(b []byte){
		"version 0":                       func(b []byte) { b[4] = 0 },
		"version 2":                       func(b []byte) { b[4] = 2 },
		"length below":                    func(b []byte) { b[6]-- },
		"length beyond":                   func(b []byte) { b[6]++ },
		"parts in the head":               func(b []byte) { b[8] = fixedLen - 1 },
		"parts in the agent's name":       func(b []byte) { b[8]-- },
		"parts beyond":                    func(b []byte) { b[9] = 0xff },
		"no rights":                       func(b []byte) { b[10] = 0 },
		"unknown rights":                  func(b []byte) { b[11] = 1 },
		"unknown kind":                    func(b []byte) { b[12] = 9 },
		"the agent's name beyond":         func(b []byte) { b[13] = 255 },
		"the agent's name longer":         func(b []byte) { b[13]++ },
		"keyed":                           func(b []byte) { b[14] = 1 },
		"family":                          func(b []byte) { b[16] = 1 },
		"no port":                         func(b []byte) { b[18], b[19] = 0, 0 },
		"scope of an IPv4 address":        func(b []byte) { b[20] = 1 },
		"rest of an IPv4 address":         func(b []byte) { b[39] = 1 },
		"wildcard":                        func(b []byte) { clear(b[24:40]) },
		"base and length wrap":            func(b []byte) { copy(b[56:64], "\xff\xff\xff\xff\xff\xff\xff\xff") },
		"a part claims more":              func(b []byte) { b[parts+2] = 0xff },
		"a part overlaps the seal":        func(b []byte) { b[parts+2+4]++ },
		"a part twice":                    func(b []byte) { b[parts+4], b[parts+5] = byte(PartMessages), 0 },
		"a part ends in another's header": func(b []byte) { b[parts+2] = 4 + 18 + 4 + ipcLen - 2 },
	} {
		refused(t, what, reseal(good, change), nil)
	}
	if _, err := Parse(reseal(good, func([]byte) {}), nil); err != nil {
		t.Errorf("unchanged: %v", err)
	}
}

// TestLonger reads a token whose head has grown.
func TestLonger(t *testing.T) {
	tok := sample()
	b := packed(t, tok, nil)
	at := fixedLen + len(tok.Agent)
	longer := append(append(bytes.Clone(b[:at]), "new fields"...), b[at:]...)
	longer[6] += 10
	longer[8] += 10
	got, err := Parse(reseal(longer, func([]byte) {}), nil)
	if err != nil || len(got.Parts) != 3 || got.Agent != tok.Agent {
		t.Errorf("%+v: %v", got, err)
	}
}

// TestDevice reads back where memory of a device is, with fields of later versions behind it, and cut.
func TestDevice(t *testing.T) {
	want := Device{0x7f00_0000_0000, 4096, 77}
	b := want.Append(nil)
	if got, ok := ParseDevice(append(b, "new fields"...)); !ok || got != want {
		t.Errorf("%+v, %t", got, ok)
	}
	for n := range len(b) {
		if _, ok := ParseDevice(b[:n]); ok {
			t.Errorf("%d bytes parse", n)
		}
	}
}

func TestUnwritable(t *testing.T) {
	for what, change := range map[string]func(tok *Token){
		"agent": func(tok *Token) { tok.Agent = strings.Repeat("a", MaxAgent+1) },
		"owner": func(tok *Token) { tok.Owner = names.Name{} },
		"parts": func(tok *Token) { tok.Parts = append(tok.Parts, Part{9, make([]byte, MaxLen)}) },
	} {
		tok := sample()
		change(tok)
		if b, err := tok.Append(nil); !errors.Is(err, ErrInvalid) || len(b) != 0 {
			t.Errorf("%s: %d bytes, %v", what, len(b), err)
		}
	}
}

func TestBadText(t *testing.T) {
	good := string(AppendText(nil, packed(t, sample(), nil)))
	for _, text := range []string{"", "weft1", "weft2:" + good[6:], good[6:], good + "=", good + "!", "weft1:" +
		strings.Repeat("A", MaxText)} {
		if b, err := ParseText([]byte(text)); !errors.Is(err, ErrInvalid) {
			if _, err := Parse(b, nil); !errors.Is(err, ErrInvalid) {
				t.Errorf("%q parses", text)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(packed(f, sample(), nil))
	f.Add(packed(f, rails(), nil))
	f.Add(packed(f, &Token{Owner: names.New(netip.MustParseAddr("::1"), 1), Rights: Read}, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= fixedLen+sealLen && len(b) <= MaxLen { // so that what is behind the seal is reached
			b = reseal(b, func(c []byte) {
				copy(c, magic)
				c[4], c[5], c[6], c[7] = Version, 0, byte(len(c)),
					byte(len(c)>>8)
			})
		}
		tok, err := Parse(b, nil)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		again, err := Parse(packed(t, tok, nil), nil)
		if err != nil || again.Owner != tok.Owner || again.Length != tok.Length || len(again.Parts) != len(tok.Parts) {
			t.Fatalf("%+v, %v", again, err)
		}
		rails := 0
		for _, p := range tok.Parts {
			ParseIPC(p.Body)
			ParseDevice(p.Body)
			if p.Type == PartRDMA {
				rails++
			}
		}
		list := tok.Rails()
		for i, r := range list {
			for _, other := range list[:i] {
				if bytes.Equal(r.Address, other.Address) {
					t.Fatalf("two keys for %x", r.Address)
				}
			}
		}
		if len(list) != rails || rails > MaxRails {
			t.Fatalf("%d of %d parts are keys", len(list), rails)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	tok, room := sample(), make([]byte, 0, MaxLen)
	for b.Loop() {
		_, _ = tok.Append(room)
	}
}

func BenchmarkParse(b *testing.B) {
	p := packed(b, sample(), nil)
	for b.Loop() {
		_, _ = Parse(p, nil)
	}
}
