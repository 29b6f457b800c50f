package onesided

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/region"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// onWrite places a piece of a write.
func (t *Target[O]) onWrite(src hw.Source, addr uint64, head, payload []byte) {
	var w wire.Write
	if !w.Parse(head) {
		t.ep.Malformed(src, "write of %d bytes does not parse", len(payload))
		return
	}
	if w.Flags&wire.WriteElements != 0 {
		t.writeElements(src, &w, addr, payload)
		return
	}
	t.endWrite(src, &w, 1, &wire.Done{Status: t.Perform(src, &w, addr, payload), At: wire.NoPlace})
}

// Perform checks a piece of a write against the region of its key, copies it, and counts it. What ends an element is
// refused as all of that is.
func (t *Target[O]) Perform(src hw.Source, w *wire.Write, addr uint64, payload []byte) fi.Errno {
	start, length, ok := w.Span(addr, uint64(len(payload)))
	if !ok {
		t.ep.Count(stats.RxServedWrites, 1)
		return t.refuse(src, "write", w.Key, addr, uint64(len(payload)),
			fmt.Errorf("the end of %d bytes: %w", w.Length, fi.EACCES))
	}
	return t.place(src, placement{key: w.Key, start: start, length: length, at: addr - start, ends: w.Ends()}, payload)
}

// placement is where bytes of a write go.
type placement struct {
	key           uint64
	start, length uint64 // what the peer is to be admitted to
	at            uint64 // bytes of that before those at hand
	ends          wire.Ends
}

// place checks a piece of a write against the region of its key, copies it, and counts it.
func (t *Target[O]) place(src hw.Source, to placement, payload []byte) fi.Errno {
	t.ep.Count(stats.RxServedWrites, 1)
	n := uint64(len(payload))
	if n == 0 {
		if to.ends.Operation() {
			t.noticed(src, to.key, 0)
		}
		return fi.Success
	}
	m, offset, err := t.ep.Access(src, to.key, to.start, to.length, fi.RemoteWrite)
	if err != nil {
		return t.refuse(src, "write", to.key, to.start+to.at, n, err)
	}
	defer m.Gate.Leave()
	for _, v := range vector.Window(t.regionIOV[:0], m.Memory.Parts, offset+to.at, n) {
		if err := hmem.Store(uint64(v.Base), payload[:v.Len]); err != nil {
			return t.refuse(src, "write to a device", to.key, to.start+to.at, n, fmt.Errorf("%w: %w", fi.EIO, err))
		}
		payload = payload[v.Len:]
	}
	t.written(m, n, to.ends)
	return fi.Success
}

// onNotify counts, reports and answers a write whose payload the initiator has put in place.
func (t *Target[O]) onNotify(src hw.Source, _ uint64, head, _ []byte) {
	var w wire.Write
	if !w.Parse(head) || w.Flags&wire.WriteElements != 0 {
		t.ep.Malformed(src, "notice of a write does not parse")
		return
	}
	t.noticed(src, w.Key, w.Length)
	t.endWrite(src, &w, 1, &wire.Done{At: wire.NoPlace})
}

// noticed counts a write of n bytes that this side has not put in place: one without bytes, or one that the initiator
// has done.
func (t *Target[O]) noticed(src hw.Source, key, n uint64) {
	m := t.ep.Reached(src, key)
	if m != nil && m.Rights&fi.RemoteWrite != 0 && n <= m.Length && m.Gate.Enter() {
		t.written(m, n, wire.EndsOperation)
		m.Gate.Leave()
	}
}

// written counts n bytes of a write that are in place: for the region an element of an operation is one.
func (t *Target[O]) written(m *region.Region[O], n uint64, ends wire.Ends) {
	if c := m.Counter.Load(); c != nil {
		c.Part(n, ends.Element())
	}
	if c := t.counters.Writes.Load(); c != nil {
		c.Part(n, ends.Operation())
	}
	if ends.Region() && m.Single {
		t.ep.Spend(m)
	}
}

// endWrite delivers the CQ data of a write and answers, for that many units.
func (t *Target[O]) endWrite(src hw.Source, w *wire.Write, units uint64, d *wire.Done) {
	if w.Flags&wire.WriteData != 0 && d.Status == fi.Success {
		t.ep.Deliver(src, w.Length, w.Data)
	}
	if w.Request != 0 && (d.Status != fi.Success || w.Flags&wire.WriteAck != 0) {
		if w.Flags&wire.WriteAck != 0 {
			d.Units = units
		}
		t.answer(src, w.Request, d)
		t.ep.FillBack(src)
	}
}

// refuse logs an access that is refused and returns the errno for the initiator.
func (t *Target[O]) refuse(src hw.Source, what string, key, addr, n uint64, err error) fi.Errno {
	log.Warnf(log.EPData, "%s by %s of %d bytes at %#x with key %#x: %v", what, t.ep.NameOf(src), n, addr, key, err)
	return fi.ErrnoOf(err)
}
