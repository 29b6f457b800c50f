package provider

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

// TestMultiRecv streams messages into two buffers that are posted again when
// they are given back. A third buffer is for others.
func TestMultiRecv(t *testing.T) {
	for _, tagged := range []bool{false, true} {
		t.Run(map[bool]string{false: "untagged", true: "tagged"}[tagged], func(t *testing.T) { multiRecv(t, tagged) })
	}
}

func multiRecv(t *testing.T, tagged bool) {
	const count, size, least, tag = 5000, 65536, 512, 7
	var hints *fi.Info
	kind := fi.Recv | fi.Msg
	if tagged {
		hints, kind = &fi.Info{Caps: fi.Tagged | fi.TaggedMultiRecv}, fi.Recv|fi.Tagged
	}
	for name, length := range map[string]func(i int) int{
		"eager":      func(i int) int { return i * 37 % least },
		"rendezvous": func(i int) int { return []int{100, 9000, 80000}[i%3] },
	} {
		t.Run(name, func(t *testing.T) {
			bench := newBench(t, nil, hints)
			a, b := bench.side(t), bench.side(t)
			a.know(b)
			b.know(a)
			if err := b.ep.SetOpt(fi.OptMinMultiRecv, least); err != nil {
				t.Fatal(err)
			}
			var bufs [2][]byte
			post := func(i uint64) {
				b.recv(RecvArgs{IOV: iovOf(bufs[i]), Src: fi.AddrUnspec, Flags: fi.MultiRecv, Context: i, Tag: tag,
					Ignore: 0xf00, Tagged: tagged}, a)
			}
			for i := range bufs {
				bufs[i] = make([]byte, size)
				post(uint64(i))
			}
			if tagged {
				other := make([]byte, size)
				b.recv(RecvArgs{IOV: iovOf(other), Src: fi.AddrUnspec, Flags: fi.MultiRecv, Context: 2, Tag: tag + 1,
					Tagged: true}, a)
			}
			out := make([][]byte, count)
			released, received := 0, 0
			for sent := 0; received < count; {
				if sent < count && sent < received+100 {
					out[sent] = pattern(length(sent), byte(sent))
					if a.ep.Send(&SendArgs{IOV: iovOf(out[sent]), Dest: a.addr[b], Tag: tag | uint64(sent&0xf)<<8,
						Tagged: tagged}) == nil {
						sent++
					}
				}
				var e [16]cq.Entry
				_, _ = a.cq.Read(e[:])
				a.ep.Progress()
				b.ep.Progress()
				n, err := b.cq.Read(e[:])
				if errors.Is(err, fi.EAVAIL) {
					x, _ := b.cq.ReadErr()
					if x.Err != fi.ETRUNC {
						t.Fatalf("%+v", x)
					}
					received++ // the rest of a buffer was too short for it
					e[0], n = x.Entry, 1
				}
				for _, c := range e[:n] {
					if err == nil {
						want := out[received]
						if c.Flags&^fi.MultiRecv != kind || tagged && c.Tag != tag|uint64(received&0xf)<<8 {
							t.Fatalf("message %d: %+v", received, c)
						}
						at := c.Buf - uint64(uintptr(unsafe.Pointer(&bufs[c.Context][0])))
						if c.Len != uint64(len(want)) || !bytes.Equal(bufs[c.Context][at:at+c.Len], want) {
							t.Fatalf("message %d: %+v, want %d bytes", received, c, len(want))
						}
						received++
					}
					if c.Flags&fi.MultiRecv != 0 {
						released++
						post(c.Context)
					}
				}
			}
			if released < 10 {
				t.Errorf("%d buffers given back", released)
			}
		})
	}
}
