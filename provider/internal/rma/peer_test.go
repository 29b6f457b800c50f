package rma

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// perform has the peer take in the initiator's oldest message. It answers as package onesided does.
func (p *peer) perform() {
	m := p.out[0]
	p.out = p.out[1:]
	switch m.id {
	case wire.AMRead:
		p.read(m)
	case wire.AMWrite:
		p.write(m)
	case wire.AMNotify:
		var w wire.Write
		if !w.Parse(m.head) {
			p.h.t.Fatal("a notice does not parse")
		}
		p.deliver(&w)
	case wire.AMAtomic:
		p.atomic(m)
	case wire.AMShare: // it has been seen (offered)
	default:
		p.h.t.Fatalf("message %d", m.id)
	}
}

func (p *peer) deliver(w *wire.Write) {
	if w.Flags&wire.WriteData == 0 {
		return
	}
	if _, twice := p.delivered[w.Data]; twice {
		p.h.t.Fatalf("data %d is delivered twice", w.Data)
	}
	p.delivered[w.Data] = w.Length
}

func (p *peer) answer(request uint64, d wire.Done) {
	p.h.ids = append(p.h.ids, request)
	p.back = append(p.back, message{id: wire.AMRMADone, header: request, head: d.Put(make([]byte, wire.DoneBytes))})
}

// result sends bytes of a read or of an atomic's result, in pieces.
func (p *peer) result(request, at uint64, b []byte) {
	p.h.ids = append(p.h.ids, request)
	for {
		n := len(b)
		if n > 1 {
			n = 1 + p.h.r.IntN(n)
		}
		p.back = append(p.back, message{wire.AMReadData, request, wire.PutWord(make([]byte, 8), at),
			append([]byte(nil), b[:n]...)})
		if b, at = b[n:], at+uint64(n); len(b) == 0 {
			return
		}
	}
}

// parse reads the elements of a message.
func (p *peer) parse(m message) (list []wire.Element, rest []byte, total uint64) {
	list, rest, total, ok := wire.ParseElements(nil, m.payload, m.header)
	if !ok {
		p.h.t.Fatal("elements do not parse")
	}
	return list, rest, total
}

func (p *peer) read(m message) {
	var r wire.Read
	if !r.Parse(m.head) {
		p.h.t.Fatal("a read does not parse")
	}
	list := []wire.Element{{Key: r.Key, Addr: m.header, Len: r.Length}}
	if r.Elements {
		var total uint64
		if list, _, total = p.parse(m); total != r.Length {
			p.h.t.Fatalf("elements of %d bytes in a read of %d", total, r.Length)
		}
	}
	var b []byte
	for _, el := range list {
		if el.Key == badKey && el.Len != 0 {
			if len(b) != 0 {
				p.result(r.Request, r.At, b)
			}
			n := uint64(len(b))
			p.answer(r.Request, wire.Done{Status: fi.EACCES, Units: max(1, r.Length-n), At: r.At + n})
			return
		}
		b = append(b, p.memory[el.Addr:][:el.Len]...)
	}
	p.result(r.Request, r.At, b)
}

func (p *peer) write(m message) {
	var w wire.Write
	if !w.Parse(m.head) {
		p.h.t.Fatal("a write does not parse")
	}
	list, rest := []wire.Element{{Key: w.Key, Addr: m.header, Len: uint64(len(m.payload))}}, m.payload
	d := wire.Done{At: wire.NoPlace}
	if w.Flags&wire.WriteElements != 0 {
		list, rest, _ = p.parse(m)
	}
	for i, el := range list {
		if el.Key == badKey && el.Len != 0 {
			d.Status = fi.EACCES
			if w.Flags&wire.WriteElements != 0 {
				d.At = uint64(i)
			}
			break
		}
		copy(p.memory[el.Addr:], rest[:el.Len])
		rest = rest[el.Len:]
	}
	if d.Status == fi.Success {
		p.deliver(&w)
	}
	if w.Flags&wire.WriteAck != 0 {
		d.Units = uint64(len(list))
	}
	if d.Status != fi.Success || w.Flags&wire.WriteAck != 0 {
		p.answer(w.Request, d)
	}
}

// atomic adds words.
func (p *peer) atomic(m message) {
	var a wire.Atomic
	if !a.Parse(m.head) {
		p.h.t.Fatal("an atomic does not parse")
	}
	n, ok := a.Bytes(len(m.payload))
	if !ok || a.Op != fi.OpSum || a.Datatype != fi.Uint64 {
		p.h.t.Fatalf("an atomic of %d bytes: %+v", len(m.payload), a)
	}
	units := uint64(1)
	if a.Kind != atomics.Base {
		units = n
	}
	if a.Key == badKey {
		p.answer(a.Request, wire.Done{Status: fi.EACCES, Units: units, At: wire.NoPlace})
		return
	}
	at := p.memory[m.header:][:n]
	before := append([]byte(nil), at...)
	for i := 0; i < len(at); i += 8 {
		le := binary.LittleEndian
		le.PutUint64(at[i:], le.Uint64(at[i:])+le.Uint64(m.payload[i:]))
	}
	if a.Kind == atomics.Base {
		p.answer(a.Request, wire.Done{Units: 1, At: wire.NoPlace})
		return
	}
	p.result(a.Request, uint64(a.At), before)
}
