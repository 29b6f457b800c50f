package provider

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/atomics"
)

func TestRMAHeads(t *testing.T) {
	var b [rtsBytes]byte
	for _, want := range []writeHead{
		{key: 1, request: 2, flags: rmaAck | rmaLast},
		{key: ^uint64(0), request: 2, flags: rmaData, data: 3, length: 4},
	} {
		var got writeHead
		if !got.parse(want.put(b[:])) || got != want {
			t.Errorf("write head %+v became %+v", want, got)
		}
	}
	r, gotRead := readHead{1, 2, 3, 4, true}, readHead{}
	if !gotRead.parse(r.put(b[:])) || gotRead != r {
		t.Errorf("read head %+v", gotRead)
	}
	a, gotAtomic := atomicHead{1, 2, fi.OpCSwap, fi.Double, atomics.Compare, true, 5, 6}, atomicHead{}
	if !gotAtomic.parse(a.put(b[:])) || gotAtomic != a {
		t.Errorf("atomic head %+v", gotAtomic)
	}
	for _, s := range []shareHead{{1, 2, 3, minShareChunk, 4, true}, {1, 2, maxMessage, maxShareChunk, 1<<16 - 1, false}} {
		var got shareHead
		if !got.parse(s.put(b[:])) || got != s {
			t.Errorf("offer of a share %+v became %+v", s, got)
		}
	}
	for _, s := range []shareHead{
		{want: 0, chunk: minShareChunk}, {want: 9, chunk: minShareChunk - 1}, {want: 9, chunk: maxShareChunk + 1},
		{want: maxMessage + 1, chunk: maxShareChunk}, {want: maxMessage, chunk: minShareChunk},
		{want: 9, chunk: minShareChunk, local: ^uint64(0)},
	} {
		if new(shareHead).parse(s.put(b[:])) {
			t.Errorf("offer of a share %+v is accepted", s)
		}
	}
	d, gotDone := doneHead{fi.EACCES, 9, 7}, doneHead{}
	if !gotDone.parse(d.put(b[:])) || gotDone != d {
		t.Errorf("outcome %+v", gotDone)
	}
}

// FuzzRMAHeads feeds the parsers of peers' bytes: none may fault, and what they
// accept comes back the same from put.
func FuzzRMAHeads(f *testing.F) {
	var b [rtsBytes]byte
	f.Add(bytes.Clone((&writeHead{key: 1, flags: rmaData}).put(b[:])))
	f.Add(bytes.Clone((&readHead{key: 1}).put(b[:])))
	f.Add(bytes.Clone((&atomicHead{key: 1}).put(b[:])))
	f.Add(bytes.Clone((&doneHead{}).put(b[:])))
	f.Add(bytes.Clone((&shareHead{want: 9, chunk: minShareChunk}).put(b[:])))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out [rtsBytes]byte
		var w writeHead
		if w.parse(in) && !bytes.Equal(w.put(out[:]), in) {
			t.Errorf("write head %x became %x", in, w.put(out[:]))
		}
		var r readHead
		if r.parse(in) && (r.length > maxMessage || !bytes.Equal(r.put(out[:]), in)) {
			t.Errorf("read head %x became %x", in, r.put(out[:]))
		}
		var a atomicHead
		if a.parse(in) && !bytes.Equal(a.put(out[:]), in) {
			t.Errorf("atomic head %x became %x", in, a.put(out[:]))
		}
		var s shareHead
		if s.parse(in) && !bytes.Equal(s.put(out[:]), in) {
			t.Errorf("offer of a share %x became %x", in, s.put(out[:]))
		}
		if key, ok := parseWord(in); ok && !bytes.Equal(putWord(out[:], key), in) {
			t.Errorf("key %x became %x", in, putWord(out[:], key))
		}
		var d doneHead
		if d.parse(in) && !bytes.Equal(d.put(out[:]), in) {
			t.Errorf("outcome %x became %x", in, d.put(out[:]))
		}
	})
}
