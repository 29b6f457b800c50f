package dataplane

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/stats"
)

// counted is a counter of the receiving side.
func (l *long) counted(word int) uint64 { return *(*uint64)(pointer(l.ep.StatsRx + uintptr(word)*8)) }

// unexpected sends n long messages, with the tags from 0 on, before there is a receive for them, and has them kept.
func (l *long) unexpected(t *testing.T, n uint64, kind uint32) (payloads [][]byte) {
	t.Helper()
	for i := range n {
		b := l.bytes(longBytes)
		for j := range b {
			b[j] = byte(uint64(j) * (i + 3))
		}
		p := l.message(b, kind, i, i+1)
		p.Data = i + 77
		if code := send(&p); code != hot.PostDone {
			t.Fatalf("code %d", code)
		}
		payloads = append(payloads, b)
	}
	before := l.counted(stats.RxUnexpected)
	if codes := l.settle(t, l.delivery()); codes[0] != hot.DeliveryDone {
		t.Fatalf("codes %v", codes)
	}
	kept, counted := uint64(l.recv.UnexpectedMessages()), l.counted(stats.RxUnexpected)-before
	if kept != n || counted != n || l.rx.WantPosts != 1 {
		t.Fatalf("%d kept, %d counted, want %d", kept, counted, l.rx.WantPosts)
	}
	return payloads
}

// TestRTSBeforeReceive: an RTS before its receive is kept, of messages of every kind, which are read when receives for
// them are posted: in another order where they have tags.
func TestRTSBeforeReceive(t *testing.T) {
	for name, kind := range map[string]uint32{
		"untagged": 0, "tagged": hot.PostTagged,
		"data": hot.PostData, "tagged data": hot.PostTagged | hot.PostData,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLong(t)
			for range 3 { // memory is used again
				payloads := l.unexpected(t, requests, kind)
				for i := range uint64(requests) {
					l.receiveUnexpected(t, kind, i, payloads)
				}
				l.idle(t, "messages")
				if l.recv.UnexpectedMessages() != 0 {
					t.Fatalf("%d kept", l.recv.UnexpectedMessages())
				}
			}
		})
	}
}

// receiveUnexpected posts the receive number i for messages that are kept, and checks what it gets.
func (l *long) receiveUnexpected(t *testing.T, kind uint32, i uint64, payloads [][]byte) {
	t.Helper()
	buf, which, tagged := l.bytes(longBytes), i, uint64(0)
	if kind&hot.PostTagged != 0 {
		which, tagged = requests-1-i, hot.RecvTagged
	}
	l.post(hot.RecvEntry{
		Flags: tagged, Buf: uint64(at(buf)), Len: longBytes,
		Src: uint64(fi.AddrUnspec), Tag: which, Context: 100 + i,
	})
	l.settle(t, l.delivery())
	l.settle(t, l.delivery()) // the ACK: a delivery that gave away unexpected messages takes no arrivals
	got, ok := l.pop()
	if !ok || got.Context != 100+i || got.Len != longBytes || !bytes.Equal(buf, payloads[which]) {
		t.Fatalf("received %+v, %v", got, ok)
	}
	if data := kind&hot.PostData != 0; data != (got.Flags&fi.RemoteCQData != 0) || data && got.Data != which+77 {
		t.Fatalf("data %d, flags %#x", got.Data, got.Flags)
	}
	if e, ok := l.completed(); !ok || e.Context != which+1 {
		t.Fatalf("transmit completed with %+v, %v", e, ok)
	}
}

// TestKeptRTSIsTheRuntimes lists the unexpected messages that the data plane does not read: receive and message stay as
// they are for the runtime.
func TestKeptRTSIsTheRuntimes(t *testing.T) {
	source := func(l *long) *hot.Source { return (*hot.Source)(pointer(l.ep.Sources)) }
	for name, change := range map[string]func(l *long, post *hot.RecvEntry){
		"truncated":         func(_ *long, post *hot.RecvEntry) { post.Len-- },
		"a vector":          func(_ *long, post *hot.RecvEntry) { post.Flags |= hot.RecvIOV },
		"device":            func(_ *long, post *hot.RecvEntry) { post.Flags |= hot.RecvDevice },
		"multi-receive":     func(_ *long, post *hot.RecvEntry) { post.Flags |= fi.MultiRecv },
		"no right to read":  func(l *long, _ *hot.RecvEntry) { l.peer.PID = 0 },
		"no way back":       func(l *long, _ *hot.RecvEntry) { l.peer.Slots = 0 },
		"another sender":    func(l *long, _ *hot.RecvEntry) { source(l).ID++ },
		"out of the vector": func(l *long, _ *hot.RecvEntry) { source(l).Addr = 0 },
		"another interface": func(l *long, _ *hot.RecvEntry) { source(l).Context = 1 },
		"another endpoint":  func(l *long, _ *hot.RecvEntry) { l.ep.Number++ },
		"too long":          func(l *long, _ *hot.RecvEntry) { l.ep.ReadMax = longBytes - 1 },
		"the copy fails":    nil,
	} {
		l := newLong(t)
		l.unexpected(t, 1, 0)
		buf := l.bytes(longBytes)
		post := hot.RecvEntry{Buf: uint64(at(buf)), Len: longBytes, Src: uint64(fi.AddrUnspec)}
		d, want := l.delivery(), uintptr(hot.DeliveryGo)
		if change == nil {
			want = hot.DeliveryRead
		} else {
			change(l, &post)
		}
		l.post(post)
		if code := deliver(d); code != want {
			t.Errorf("%s: code %d", name, code)
		}
		if change == nil {
			d.Copy.Error = 3
			if code := deliver(d); code != hot.DeliveryGo {
				t.Errorf("%s: code %d", name, code)
			}
		}
		if l.recv.UnexpectedMessages() != 1 || headPost(l.rx) == nil || l.inUse() != 1 {
			t.Errorf("%s: %d kept, %d requests", name, l.recv.UnexpectedMessages(), l.inUse())
		}
	}
}

// TestKeptRTSNeedsMemory: an RTS for which memory has to be mapped is the runtime's, and stays on its ring.
func TestKeptRTSNeedsMemory(t *testing.T) {
	l := newLong(t)
	empty, pool := mem.NewPool(1<<20), l.recv.Pool
	t.Cleanup(func() { _ = empty.Close() })
	l.recv.Pool = empty
	p := l.message(l.bytes(longBytes), 0, 0, 1)
	if code := send(&p); code != hot.PostDone {
		t.Fatalf("code %d", code)
	}
	if code := deliver(l.delivery()); code != hot.DeliveryGo || l.recv.UnexpectedMessages() != 0 {
		t.Errorf("code %d, %d kept", code, l.recv.UnexpectedMessages())
	}
	l.recv.Pool = pool
	if code := deliver(l.delivery()); code != hot.DeliveryDone || l.recv.UnexpectedMessages() != 1 {
		t.Errorf("code %d, %d kept", code, l.recv.UnexpectedMessages())
	}
}
