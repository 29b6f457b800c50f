package provider

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/log/logtest"
	"github.com/weft-fabric/weft/provider/token"
)

// lieSize is the length of each of the three parts of the memory that lies are about. The region is the middle one.
const lieSize = 4096

// lie is a token that claims what its region does not give, and an access that the token allows.
type lie struct {
	what   string
	access uint64 // rights of the region
	notify func(t *token.Token)
	at     uint64 // of the access, from the beginning of the memory
	write  bool   // only writes go beyond the rights
}

const bothRights = fi.RemoteRead | fi.RemoteWrite

var lies = []lie{
	{"longer", bothRights, func(t *token.Token) { t.Length *= 2 }, 2 * lieSize, false},
	{"longer, the access begins within", bothRights, func(t *token.Token) { t.Length++ }, lieSize + 1, false},
	{"from before its begin", bothRights, func(t *token.Token) { t.Base -= lieSize; t.Length += lieSize }, 0, false},
	{"all memory", bothRights, func(t *token.Token) { t.Base, t.Length = 0, 1<<63 }, 0, false},
	{"with a right more", fi.RemoteRead, func(t *token.Token) { t.Rights |= token.Write }, lieSize, true},
}

// keyedHints have an authorisation key, none if it is empty, and peers name memory by its addresses.
func keyedHints(key string) *fi.Info {
	hints := rmaHints()
	hints.Domain = &fi.DomainAttr{MRMode: fi.MRVirtAddr | fi.MRProvKey | fi.MRAllocated}
	if key != "" {
		hints.Domain.AuthKey, hints.Domain.AuthKeySize = []byte(key), uint64(len(key))
	}
	return hints
}

// forged is the token of a region, changed and sealed anew, as the holder of a key can.
func (s *side) forged(m *MR, notify func(t *token.Token), key []byte) Token {
	s.t.Helper()
	t, err := token.Parse(s.token(m), m.region.Auth.Bytes())
	if err != nil {
		s.t.Fatal(err)
	}
	notify(t)
	var keys [][]byte
	if len(key) != 0 {
		keys = [][]byte{key}
	}
	packed, err := t.Append(nil, keys...)
	if err != nil {
		s.t.Fatal(err)
	}
	return packed
}

// TestListForged: a token that claims more than its region has, with a seal that is right, also by the authorisation
// key, is refused by the owner as the same read or write without a token is.
func TestListForged(t *testing.T) {
	for name, key := range map[string]string{"no key": "", "keyed": "the key of both"} {
		t.Run(name, func(t *testing.T) {
			listPathsWith(t, func() *fi.Info { return keyedHints(key) }, func(t *testing.T, x, y *side, _ Way) {
				for i := range lies {
					t.Run(lies[i].what, func(t *testing.T) { lies[i].refused(t, x, y) })
				}
			})
		})
	}
}

// refused notifies the lie, and reads and writes by it.
func (c *lie) refused(t *testing.T, x, y *side) {
	memory, local := bytes.Repeat([]byte{1}, 3*lieSize), bytes.Repeat([]byte{2}, lieSize)
	m := y.region(memory[lieSize:2*lieSize], 0, c.access)
	defer m.Close()
	to, err := x.ep.OpenToken(y.forged(m, c.notify, m.region.Auth.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	i, addr := to.Info(), uint64(iovOf(memory)[0].Base)+c.at
	l, err := x.ep.NewList([]Piece{
		{Local: iovOf(local)[0].Base, Remote: to, Addr: addr, Len: lieSize / 4, Count: 4},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	lines := logtest.Capture(t, log.Info)
	for _, read := range []bool{false, true} {
		if read && c.write {
			continue
		}
		post(t, func() error {
			return x.ep.RMA(&RMAArgs{IOV: iovOf(local), Dest: i.Addr, Read: read,
				Remote: []fi.RMAIOVec{{Addr: addr, Key: i.Key, Len: lieSize}}})
		}, x, y)
		_, want, done := settle(t, x, y)
		if done {
			t.Fatalf("read %t: an access beyond the region succeeds", read)
		}
		for _, picks := range [][]uint32{nil, {3}, {3, 2}} { // many, one, and some
			post(t, func() error { return l.Post(&ListArgs{Read: read, Picks: picks, Context: 1}) }, x, y)
			if _, e, done := settle(t, x, y); done || e.Err != want.Err {
				t.Errorf("read %t, elements %d: done %t, %v, want %v", read, picks, done, e.Err, want.Err)
			}
		}
	}
	for n, b := range memory {
		if b != 1 && (n < lieSize || n >= 2*lieSize || c.write) {
			t.Fatalf("byte %d of the owner's memory is written", n)
		}
	}
	if c.at != lieSize+1 && !bytes.Equal(local, bytes.Repeat([]byte{2}, lieSize)) {
		t.Error("memory here is written")
	}
	what := fmt.Sprintf("%d bytes at %#x with key %#x", lieSize, addr, i.Key)
	if said := strings.Join(lines(), "\n"); !strings.Contains(said, what) {
		t.Errorf("logged %q, not %q", said, what)
	}
}

// TestListForgedDevice: a token that claims more than its region of a device's memory has is refused from the first
// element beyond, by mappings as by messages; what it says of where the memory is opens nothing.
func TestListForgedDevice(t *testing.T) {
	defer dmabuf.Pretend()()
	longer := func(t *token.Token) { t.Length *= 2 }
	elsewhere := func(t *token.Token) {
		longer(t)
		far := token.Device{Allocation: 1 << 40, Offset: 1 << 62, Buffer: 5}
		for i := range t.Parts {
			if t.Parts[i].Type == token.PartDMABuf {
				t.Parts[i].Body = far.Append(nil)
			}
		}
	}
	for _, ways := range wayChoices {
		for what, notify := range map[string]func(t *token.Token){"longer": longer, "elsewhere": elsewhere} {
			t.Run(fmt.Sprint(what, " ", ways), func(t *testing.T) {
				b := newBench(t, func(c *config.Config) { c.TokenWays = ways }, hmemHints())
				x, y := b.side(t), b.side(t)
				theirs := y.dmabuf(t, 6)
				theirs.put(t, 0, bytes.Repeat([]byte{6}, bufBytes))
				to := x.opens(y.forged(theirs.mr, notify, nil))
				local := bytes.Repeat([]byte{6}, 256)
				l := x.list([]Piece{{
					Local: iovOf(local)[0].Base, Remote: to, Addr: to.Info().Base + bufBytes - 64, Len: 64, Count: 4,
				}})
				want, first := fi.EACCES, uint64(1)
				if !ways.Message {
					want, first = fi.EOPNOTSUPP, 0
				}
				for _, read := range []bool{false, true} {
					post(t, func() error { return l.Post(&ListArgs{Read: read, Context: 1}) }, x, y)
					if _, e, done := settle(t, x, y); done || e.Err != want || e.Data != first {
						t.Errorf("read %t: done %t, %+v, want %v", read, done, e, want)
					}
				}
				theirs.want(t, 0, bytes.Repeat([]byte{6}, bufBytes))
				if !bytes.Equal(local, bytes.Repeat([]byte{6}, len(local))) {
					t.Error("memory here is written")
				}
			})
		}
	}
}

// TestTokenWrongKey: a token that is sealed with another key than the endpoint's, or with none, is refused before
// anything of it is used, whichever of both is the stranger.
func TestTokenWrongKey(t *testing.T) {
	y := newBench(t, nil, keyedHints("the owner's")).side(t)
	m := y.region(make([]byte, 64), 0, fi.RemoteRead)
	for _, c := range []struct {
		what, mine string
		seal       []byte
		says       string // "": it is right
	}{
		{"the right one", "the owner's", []byte("the owner's"), ""},
		{"another one", "the owner's", []byte("the owner'z"), "seal is not right"},
		{"a shorter one", "the owner's", []byte("the owner"), "seal is not right"},
		{"none", "the owner's", nil, "with an authorisation key there (false), here (true)"},
		{"a stranger opens it", "another's", []byte("the owner's"), "seal is not right"},
		{"one without opens it", "", []byte("the owner's"), "with an authorisation key there (true), here (false)"},
	} {
		t.Run(c.what, func(t *testing.T) {
			x := newBench(t, nil, keyedHints(c.mine)).side(t)
			packed := y.forged(m, func(*token.Token) {}, c.seal)
			lines, generation := logtest.Capture(t, log.Info), x.av.Generation()
			r, err := x.ep.OpenToken(packed)
			if c.says == "" {
				wantErrno(t, err, fi.Success, c.what)
				wantErrno(t, r.Close(), fi.Success, "close")
				return
			}
			wantErrno(t, err, fi.EINVAL, c.what)
			if l := lines(); len(l) != 1 || !strings.Contains(l[0], c.says) {
				t.Errorf("logged %q", l)
			}
			if x.av.Generation() != generation {
				t.Error("the address vector was changed")
			}
		})
	}
}
