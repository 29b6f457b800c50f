package provider

import (
	"encoding/binary"
	"testing"

	"github.com/weft-fabric/weft/fi"
)

// TestBehind has a receiver that posts one receive at a time fall behind a sender that keeps its ring
// full. Once what is kept has been received, nothing is kept any more: the rest waits on the ring.
// Order stays.
func TestBehind(t *testing.T) {
	b := newBench(t, nil, nil)
	from, to := b.pair(t)
	sent := uint64(0)
	fill := func() {
		for {
			err := from.ep.Send(&SendArgs{IOV: iovOf(binary.LittleEndian.AppendUint64(nil, sent)), Dest: from.addr[to],
				Tag:   1,
				Flags: fi.Inject, Tagged: true, Inject: true})
			if err != nil {
				return
			}
			sent++
		}
	}
	from.send(SendArgs{IOV: iovOf(make([]byte, 8)), Dest: from.addr[to], Tag: 1, Flags: fi.Inject, Tagged: true,
		Inject: true}, to)
	sent++
	fill()
	to.ep.Progress()
	kept := leasedOf(to.ep).rx.matching.UnexpectedMessages()
	if kept == 0 {
		t.Fatal("nothing is kept")
	}
	buf := make([]byte, 8)
	for n := range uint64(kept) {
		fill()
		to.recv(RecvArgs{IOV: iovOf(buf), Src: fi.AddrUnspec, Tag: 1, Context: n, Flags: fi.Completion, Tagged: true},
			from)
		to.completion()
		if got := binary.LittleEndian.Uint64(buf); got != n {
			t.Fatalf("received message %d, want %d", got, n)
		}
		if left := leasedOf(to.ep).rx.matching.UnexpectedMessages(); left != kept-int(n)-1 {
			t.Fatalf("%d messages are kept after %d receives, %d were", left, n+1, kept)
		}
	}
}
