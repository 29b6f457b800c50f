package onesided

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/region"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// onAtomic performs an atomic operation and answers.
func (t *Target[O]) onAtomic(src hw.Source, addr uint64, head, payload []byte) {
	var h wire.Atomic
	if !h.Parse(head) {
		t.ep.Malformed(src, "atomic does not parse")
		return
	}
	n, ok := h.Bytes(len(payload))
	if !ok {
		t.ep.Malformed(src, "operation %d on %d elements of datatype %d with %d bytes", h.Op, h.Count, h.Datatype,
			len(payload))
		return
	}
	t.ep.Count(stats.RxServedAtomics, 1)
	status := t.performAtomic(src, &h, addr, n, payload)
	switch {
	case h.Request == 0: // the initiator has completed it
	case h.Kind == atomics.Base:
		t.answer(src, h.Request, &wire.Done{Status: status, Units: 1, At: wire.NoPlace})
		t.ep.FillBack(src)
	case status != fi.Success:
		t.answer(src, h.Request, &wire.Done{Status: status, Units: n, At: wire.NoPlace})
	default:
		t.replyResult(src, &h, n)
		t.ep.FillBack(src)
	}
}

// performAtomic performs an atomic operation on n bytes and leaves what was there before in t.atomicResult.
func (t *Target[O]) performAtomic(src hw.Source, h *wire.Atomic, addr, n uint64, payload []byte) fi.Errno {
	rights := fi.RemoteWrite
	if h.Kind != atomics.Base {
		rights |= fi.RemoteRead
	}
	if h.Op == fi.OpRead {
		rights = fi.RemoteRead
	}
	m, offset, err := t.ep.Access(src, h.Key, addr, n, rights)
	if err != nil {
		return t.refuse(src, "atomic", h.Key, addr, n, err)
	}
	defer m.Gate.Leave()
	j := atomics.Job{Op: h.Op, Datatype: h.Datatype, Result: unsafe.Pointer(&t.atomicResult[0])}
	if h.Op != fi.OpRead {
		j.Operand = unsafe.Pointer(unsafe.SliceData(payload))
	}
	if h.Kind == atomics.Compare {
		j.Compare = unsafe.Pointer(unsafe.SliceData(payload[len(payload)-int(n):]))
	}
	if err := hmem.ApplyAll(&j, vector.Window(t.regionIOV[:0], m.Memory.Parts, offset, n)); err != nil {
		return t.refuse(src, "atomic", h.Key, addr, n, err)
	}
	t.countAtomic(m, h, n)
	return fi.Success
}

// countAtomic counts n bytes of an atomic operation at its target, where one that writes is a write, as far as its
// bytes go.
func (t *Target[O]) countAtomic(m *region.Region[O], h *wire.Atomic, n uint64) {
	if h.Op != fi.OpRead {
		t.written(m, n, h.Ends)
	}
	if c := t.counters.Reads.Load(); h.Kind != atomics.Base && c != nil && (h.Op == fi.OpRead || !c.Bytes()) {
		c.Part(n, h.Ends.Operation())
	}
	if h.Ends.Region() && m.Single {
		t.ep.Spend(m)
	}
}

// replyResult sends what an atomic operation fetched, or keeps it until there is room.
func (t *Target[O]) replyResult(src hw.Source, h *wire.Atomic, n uint64) {
	r := reply{src: src, to: t.ep.Sender(src), request: h.Request, length: n, at: uint64(h.At),
		result: uint64(uintptr(unsafe.Pointer(&t.atomicResult[0])))}
	if len(t.replies) == 0 && t.sendAll(&r) {
		return
	}
	if len(t.replies) < maxReplies {
		if addr, err := t.ep.Pool().Get(int(n)); err == nil {
			copy(mem.Bytes(addr, int(n)), t.atomicResult[:n])
			r.result = addr
			t.replies.Add(r)
			return
		}
	}
	log.Warnf(log.EPData, "no memory for the result of an atomic operation")
	t.answer(src, h.Request, &wire.Done{Status: fi.ENOMEM, Units: n - r.sent, At: wire.NoPlace})
}
