package provider

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/token"
)

// TestListForged: a token that claims more than its region has, with a seal that is right, is refused by the owner as
// the same read or write without a token is.
func TestListForged(t *testing.T) {
	listPaths(t, func(t *testing.T, x, y *side, _ Way) {
		const size = 4096
		memory := bytes.Repeat([]byte{1}, 2*size)
		packed := y.token(y.region(memory[:size], 7, fi.RemoteRead|fi.RemoteWrite))
		forged, err := token.Parse(packed, nil)
		if err != nil {
			t.Fatal(err)
		}
		forged.Length = 2 * size
		packed, err = forged.Append(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		to := x.opens(Token(packed))
		i := to.Info()
		local := bytes.Repeat([]byte{2}, size)
		l := x.list([]Piece{{Local: iovOf(local)[0].Base, Remote: to, Addr: i.Base + size, Len: size}})
		lines := logLines(t)
		for _, read := range []bool{false, true} {
			post(t, func() error {
				return x.ep.RMA(&RMAArgs{IOV: iovOf(local), Dest: i.Addr, Read: read,
					Remote: []fi.RMAIOVec{{Addr: i.Base + size, Key: i.Key, Len: size}}})
			}, x, y)
			_, want, done := settle(t, x, y)
			if done {
				t.Fatal("an access beyond the region succeeds")
			}
			op := l.Write
			if read {
				op = l.Read
			}
			post(t, func() error { return op(1) }, x, y)
			if _, e, done := settle(t, x, y); done || e.Err != want.Err {
				t.Errorf("read %t: done %t, %v, want %v", read, done, e.Err, want.Err)
			}
		}
		if !bytes.Equal(memory, bytes.Repeat([]byte{1}, 2*size)) || !bytes.Equal(local, bytes.Repeat([]byte{2}, size)) {
			t.Error("memory has changed")
		}
		if said := strings.Join(lines(), "\n"); !strings.Contains(said, "4096") {
			t.Errorf("logged %q", said)
		}
	})
}
