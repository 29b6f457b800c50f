package dataplane

import (
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

// The benchmarks stand for what clients do; "make pgo" takes their profile too, because the calls of C that it measures
// spend most of their time on the way into Go.

// BenchmarkMessage sends a message to a receive that is posted, and reads both completions.
func BenchmarkMessage(b *testing.B) {
	for name, n := range map[string]int{"8": 8, "600": 600} {
		b.Run(name, func(b *testing.B) {
			l := newLoop(b)
			l.grow()
			payload, buf := l.bytes(n), l.bytes(n)
			entries := l.bytes(taggedBytes)
			recv := hot.RecvEntry{
				Flags: hot.RecvTagged, Buf: uint64(at(buf)), Len: uint64(n), Src: uint64(fi.AddrUnspec), Tag: 7,
				Context: 1,
			}
			for b.Loop() {
				l.post(recv)
				p := l.message(payload, hot.PostTagged, 7, 1)
				if send(&p) != hot.PostDone {
					b.Fatal("refused")
				}
				r := hot.Reader{CQ: l.ep.RxCQ, Buf: at(entries), Left: 1}
				d := hot.Delivery{EP: p.EP, Reader: uintptr(unsafe.Pointer(&r))}
				if deliver(&d) != hot.DeliveryDone || r.Left != 0 {
					b.Fatal("not received")
				}
				if _, ok := l.completed(); !ok {
					b.Fatal("not completed")
				}
			}
		})
	}
}

// BenchmarkNotes posts, receives and takes 8 notifications of 32 bytes; beside it as many messages.
func BenchmarkNotes(b *testing.B) {
	const each, n = 8, 32
	b.Run("notes", func(b *testing.B) {
		l := newNotes(b)
		l.out.AgentLen, l.in.NameLen = 0, 16
		l.out.Limit, l.in.Limit, l.in.Due = 1<<62, 1<<62, 1<<62
		entries := unsafe.Slice((*hot.NoteEntry)(l.memory(each*int(unsafe.Sizeof(hot.NoteEntry{})))), each)
		for i := range entries {
			entries[i].Data, entries[i].Size = at(l.bytes(n)), n
		}
		p := l.note(l.bytes(n))
		for b.Loop() {
			for range each {
				if postNote(&p) != hot.PostDone {
					b.Fatal("refused")
				}
			}
			d := hot.Delivery{EP: p.EP}
			if deliver(&d) != hot.DeliveryDone {
				b.Fatal("not received")
			}
			t := hot.NoteTake{EP: p.EP, Entries: uintptr(unsafe.Pointer(&entries[0])), Left: each}
			if takeNotes(&t) != hot.TakeDone || t.Taken != each {
				b.Fatal("not taken")
			}
			for range each {
				l.completed()
			}
		}
	})
	b.Run("messages", func(b *testing.B) {
		l := newLoop(b)
		l.grow()
		recv := hot.RecvEntry{
			Flags: hot.RecvTagged, Buf: uint64(at(l.bytes(n))), Len: n, Src: uint64(fi.AddrUnspec), Tag: 7, Context: 1,
		}
		p, entries := l.message(l.bytes(n), hot.PostTagged, 7, 1), l.bytes(each*taggedBytes)
		for b.Loop() {
			for range each {
				l.post(recv)
				if send(&p) != hot.PostDone {
					b.Fatal("refused")
				}
			}
			r := hot.Reader{CQ: l.ep.RxCQ, Buf: at(entries), Left: each}
			d := hot.Delivery{EP: p.EP, Reader: uintptr(unsafe.Pointer(&r))}
			if deliver(&d) != hot.DeliveryDone || r.Left != 0 {
				b.Fatal("not received")
			}
			for range each {
				l.completed()
			}
		}
	})
}

// BenchmarkQueued receives into the second of two receives, by way of matching.
func BenchmarkQueued(b *testing.B) {
	l := newLoop(b)
	l.grow()
	payload, buf := l.bytes(8), l.bytes(8)
	recv := hot.RecvEntry{Flags: hot.RecvTagged, Buf: uint64(at(buf)), Len: 8, Src: uint64(fi.AddrUnspec), Context: 1}
	for b.Loop() {
		for tag := range uint64(2) {
			recv.Tag = tag
			l.post(recv)
		}
		for tag := range uint64(2) {
			p := l.message(payload, hot.PostTagged|hot.PostInject, 1-tag, 1)
			if send(&p) != hot.PostDone {
				b.Fatal("refused")
			}
		}
		d := hot.Delivery{EP: uintptr(unsafe.Pointer(l.ep))}
		if deliver(&d) != hot.DeliveryDone {
			b.Fatal("not received")
		}
		for range 2 {
			if _, ok := l.pop(); !ok {
				b.Fatal("not completed")
			}
		}
	}
}

// BenchmarkWrite writes to a region, and has that served.
func BenchmarkWrite(b *testing.B) {
	for name, n := range map[string]int{"8": 8, "600": 600} {
		b.Run(name, func(b *testing.B) {
			l := newLoop(b)
			payload := l.bytes(n)
			for b.Loop() {
				p := l.message(payload, 0, 64, 1)
				p.Key = regionKey
				if write(&p) != hot.PostDone {
					b.Fatal("refused")
				}
				d := hot.Delivery{EP: p.EP}
				for deliver(&d) == hot.DeliveryPause {
				}
				if _, ok := l.completed(); !ok || d.Worked == 0 {
					b.Fatal("not done")
				}
			}
		})
	}
}

// BenchmarkListOne is BenchmarkWrite of 8 bytes by a list of one element.
func BenchmarkListOne(b *testing.B) {
	l := newLists(b)
	l.add(1, 0, 64, 8, 0, 0)
	l.list.Single = true
	for b.Loop() {
		p := l.post(0, 0)
		if postList(&p) != hot.PostDone {
			b.Fatal("refused")
		}
		d := hot.Delivery{EP: p.EP}
		for deliver(&d) == hot.DeliveryPause {
		}
		if _, ok := l.completed(); !ok || d.Worked == 0 {
			b.Fatal("not done")
		}
	}
}

// BenchmarkFetch posts a fetching operation, serves it, and takes in the answer.
func BenchmarkFetch(b *testing.B) {
	l := newLoop(b)
	operand, result := l.bytes(8), l.bytes(8)
	for b.Loop() {
		p := l.atomic(hot.AtomicFetch, fi.OpSum, fi.Uint64, 0, operand, nil, result)
		if postAtomic(&p) != hot.PostDone {
			b.Fatal("refused")
		}
		d := hot.Delivery{EP: p.EP}
		deliver(&d)
		if _, ok := l.completed(); !ok {
			b.Fatal("not answered")
		}
	}
}

// BenchmarkRead is a read of a queue with nothing to do, one that finds a completion there, and one that delivers a
// message.
func BenchmarkRead(b *testing.B) {
	b.Run("empty", func(b *testing.B) {
		p := newPoller(b)
		call := p.poll(4)
		for b.Loop() {
			call.Phase = readBegin
			if readAll(call) != hot.DeliveryDone || call.Result != again {
				b.Fatal("something was read")
			}
		}
	})
	b.Run("queue", func(b *testing.B) {
		p := newPoller(b)
		call := p.poll(1)
		e := hot.CQE{Context: 1}
		for b.Loop() {
			completeTo(p.cq, &e)
			call.Phase, call.Reader.Left, call.Reader.Buf, call.Reader.Src = readBegin, 1, at(p.entries), 0
			if readAll(call) != hot.DeliveryDone || call.Result != 1 {
				b.Fatal("nothing was read")
			}
		}
	})
	b.Run("message", func(b *testing.B) {
		p := newPoller(b)
		recv := hot.RecvEntry{Flags: hot.RecvTagged, Buf: uint64(at(p.bytes(8))), Len: 8, Src: uint64(fi.AddrUnspec),
			Tag: 7}
		payload, call := p.bytes(8), p.poll(1)
		for b.Loop() {
			p.post(recv)
			m := p.message(payload, hot.PostTagged|hot.PostInject, 7, 1)
			if send(&m) != hot.PostDone {
				b.Fatal("refused")
			}
			call.Phase, call.Reader.Left, call.Reader.Buf, call.Reader.Src = readBegin, 1, at(p.entries), 0
			if readAll(call) != hot.DeliveryDone || call.Result != 1 {
				b.Fatal("nothing was read")
			}
		}
	})
	b.Run("delivery", func(b *testing.B) { // the same without the read around it
		p := newPoller(b)
		recv := hot.RecvEntry{Flags: hot.RecvTagged, Buf: uint64(at(p.bytes(8))), Len: 8, Src: uint64(fi.AddrUnspec),
			Tag: 7}
		payload := p.bytes(8)
		var call hot.Poll
		d := &call.Delivery
		for b.Loop() {
			p.post(recv)
			m := p.message(payload, hot.PostTagged|hot.PostInject, 7, 1)
			if send(&m) != hot.PostDone {
				b.Fatal("refused")
			}
			call.Reader = hot.Reader{CQ: p.ep.RxCQ, Buf: at(p.entries), Left: 1}
			*d = hot.Delivery{EP: m.EP, Reader: uintptr(unsafe.Pointer(&call.Reader))}
			if deliver(d) != hot.DeliveryDone || call.Reader.Left != 0 {
				b.Fatal("nothing was read")
			}
		}
	})
}
