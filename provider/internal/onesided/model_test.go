package onesided

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// operation is one of an initiator, as it knows it.
type operation struct {
	src      hw.Source
	units    uint64 // that are to be answered for
	elements []wire.Element
	allowed  int    // elements that are read, the first ones
	fetched  []byte // what an atomic operation is to return, from byte first on
	first    uint64
	status   fi.Errno // that it is to have
	place    uint64   // of what is refused
	counted  int      // elements that have been counted as read

	at     uint64 // of the next bytes of a read
	got    fi.Errno
	closed bool // a region has been closed: what is read of it may be refused later
}

const rightsOfAll = fi.RemoteRead | fi.RemoteWrite

// newModel makes an endpoint with some regions.
func newModel(t testing.TB, seed uint64) *host {
	h := newHost(t, seed)
	h.region(1, rightsOfAll, false, 1000)
	h.region(2, rightsOfAll, false, 304, 0, 24, 512)
	h.region(3, fi.RemoteRead, false, 200)
	h.region(4, fi.RemoteWrite, false, 200)
	h.region(5, rightsOfAll, false, 400).barred = true
	for i := range uint64(20) {
		h.region(100+i, rightsOfAll, true, 64)
	}
	h.region(9, rightsOfAll, false, 5000)
	if seed%2 == 0 {
		h.writes.Store(h.counter())
		h.reads.Store(h.counter())
		for _, m := range h.regions {
			m.counter = h.counter()
			m.m.Counter.Store(m.counter)
		}
	}
	if seed%3 != 0 {
		h.full = 3
	}
	return h
}

// key is one of a region, or of none.
func (h *host) key() uint64 {
	if h.r.IntN(12) == 0 {
		return uint64(h.r.IntN(130))
	}
	return h.regions[h.r.IntN(len(h.regions))].key
}

// reach is a range in a region, or, seldom, beyond it.
func (h *host) reach(key uint64, most int) (addr, n uint64) {
	size := 100
	if m := h.find(key); m != nil {
		size = len(m.plain)
	}
	n = uint64(h.r.IntN(min(most, size) + 1))
	addr = uint64(h.r.IntN(size - int(n) + 1))
	switch h.r.IntN(25) {
	case 0:
		addr += uint64(size)
	case 1:
		addr = ^uint64(0) - uint64(h.r.IntN(20))
	case 2:
		n = 0
	}
	return addr, n
}

// payload is bytes of chance.
func (h *host) payload(n uint64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(h.r.Uint32())
	}
	return b
}

// begin has an initiator begin an operation.
func (h *host) begin(op *operation) uint64 {
	op.src = hw.Source(h.r.IntN(sources))
	for h.gone[op.src] {
		op.src = hw.Source(h.r.IntN(sources))
	}
	h.last++
	h.ops[h.last] = op
	return h.last
}

// ends is what an element ends: of those that follow, keys are the elements'.
func (h *host) ends(last bool, key uint64, later []uint64) wire.Ends {
	switch {
	case last:
		return wire.EndsOperation
	case slices.Contains(later, key):
		return wire.EndsShared
	}
	return wire.EndsElement
}

// places is what the copies say of a write of an element.
func (h *host) places(src hw.Source, key, addr uint64, b []byte, ends wire.Ends) fi.Errno {
	n := uint64(len(b))
	if n == 0 {
		if m := h.find(key); ends == wire.EndsOperation && m != nil && m.m.Rights&fi.RemoteWrite != 0 &&
			(!m.barred || src != barred) {
			h.counted(m, ends)
		}
		return fi.Success
	}
	m, status := h.admits(src, key, addr, n, fi.RemoteWrite)
	if status == fi.Success {
		copy(m.plain[addr:], b)
		h.counted(m, ends)
	}
	return status
}

// counted is what the copies say of counters after a write.
func (h *host) counted(m *memory, ends wire.Ends) {
	if ends != wire.EndsNothing {
		m.expected++
	}
	if ends == wire.EndsOperation {
		h.wantWrites++
	}
	if ends == wire.EndsOperation || ends == wire.EndsElement {
		m.spent()
	}
}

// spent ends the key of a region for single use.
func (m *memory) spent() { m.closed = m.closed || m.m.Single }

// write has an initiator write: in one message or two, of which the second has CQ data and the end.
func (h *host) write() {
	key := h.key()
	addr, n := h.reach(key, h.part)
	b := h.payload(n)
	op := &operation{units: 1, place: wire.NoPlace}
	id := h.begin(op)
	w := wire.Write{Key: key, Request: id, Flags: wire.WriteAck}
	cut := uint64(0)
	if n > 1 && h.r.IntN(3) == 0 {
		cut = uint64(1 + h.r.IntN(int(n)-1))
	}
	if cut != 0 {
		op.status = h.places(op.src, key, addr, b[:cut], wire.EndsNothing)
		first := wire.Write{Key: key, Request: id}
		if h.r.IntN(2) == 0 { // the initiator asks for an answer to this one, too
			first.Flags, op.units = wire.WriteAck, 2
		}
		h.on[wire.AMWrite](op.src, addr, first.Put(make([]byte, 64)), b[:cut])
	}
	w.SetEnds(wire.EndsOperation)
	before := len(h.delivered)
	data := h.r.IntN(2) == 0
	var status fi.Errno
	if _, refused := h.admits(op.src, key, addr, n, fi.RemoteWrite); n != 0 && (cut == 0 || data) && refused != 0 {
		status = refused
	} else {
		status = h.places(op.src, key, addr+cut, b[cut:], wire.EndsOperation)
	}
	if data {
		w.Flags |= wire.WriteData
		w.Data, w.Length = h.r.Uint64(), n
		if cut != 0 {
			w.Flags |= wire.WriteRest
		}
	}
	if op.status == fi.Success {
		op.status = status
	}
	h.on[wire.AMWrite](op.src, addr+cut, w.Put(make([]byte, 64)), b[cut:])
	if got := h.delivered[before:]; data && status == fi.Success != slices.Equal(got, []uint64{n, w.Data}) ||
		!data && len(got) != 0 {
		h.t.Fatalf("a write with status %v delivers %d", status, got)
	}
}

// list makes elements that fit into a message, with the bytes of a write or without.
func (h *host) list(payload bool) (list []wire.Element, total uint64) {
	room := h.part
	for range 1 + h.r.IntN(6) {
		el := wire.Element{Key: h.key()}
		room -= wire.ElementBytes
		most := 400
		if payload {
			most = room
		}
		if room <= 0 {
			break
		}
		if el.Addr, el.Len = h.reach(el.Key, most); payload {
			room -= int(el.Len)
		}
		list, total = append(list, el), total+el.Len
	}
	for i := range list {
		var later []uint64
		for _, el := range list[i+1:] {
			later = append(later, el.Key)
		}
		list[i].Ends = h.ends(i+1 == len(list), list[i].Key, later)
	}
	return list, total
}

// put encodes elements.
func put(list []wire.Element) []byte {
	b := make([]byte, len(list)*wire.ElementBytes)
	for i := range list {
		list[i].Put(b[i*wire.ElementBytes:])
	}
	return b
}

// writeElements has an initiator write several elements in one message.
func (h *host) writeElements() {
	list, total := h.list(true)
	b, before := h.payload(total), uint64(h.r.IntN(5))
	op := &operation{units: before + uint64(len(list)), place: wire.NoPlace}
	id := h.begin(op)
	left := b
	for i, el := range list {
		if op.status = h.places(op.src, el.Key, el.Addr, left[:el.Len], el.Ends); op.status != fi.Success {
			op.place = before + uint64(i)
			break
		}
		left = left[el.Len:]
	}
	w := wire.Write{Key: before, Request: id, Flags: wire.WriteAck | wire.WriteElements}
	h.on[wire.AMWrite](op.src, uint64(len(list)), w.Put(make([]byte, 64)), append(put(list), b...))
}

// notify has an initiator say that it has written.
func (h *host) notify() {
	key := h.key()
	_, n := h.reach(key, 1000)
	op := &operation{units: 1, place: wire.NoPlace}
	id := h.begin(op)
	m := h.find(key)
	if m != nil && m.m.Rights&fi.RemoteWrite != 0 && (!m.barred || op.src != barred) && n <= uint64(len(m.plain)) {
		h.counted(m, wire.EndsOperation)
	}
	w := wire.Write{Key: key, Request: id, Flags: wire.WriteAck, Length: n}
	w.SetEnds(wire.EndsOperation)
	if h.r.IntN(2) == 0 {
		w.Flags |= wire.WriteData
	} else {
		w.Length = 0
	}
	h.on[wire.AMNotify](op.src, 0, w.Put(make([]byte, 64)), nil)
}

// read has an initiator read: one element, or several in one message.
func (h *host) read() {
	op := &operation{place: wire.NoPlace}
	id := h.begin(op)
	r := wire.Read{Request: id}
	var payload []byte
	var header uint64
	if h.r.IntN(2) == 0 {
		el := wire.Element{Key: h.key(), Ends: wire.EndsOperation}
		el.Addr, el.Len = h.reach(el.Key, 5000)
		op.elements = []wire.Element{el}
		r.Key, r.Length, r.Ends, header = el.Key, el.Len, el.Ends, el.Addr
	} else {
		op.elements, r.Length = h.list(false)
		r.Elements, header, payload = true, uint64(len(op.elements)), put(op.elements)
	}
	op.units = max(1, r.Length)
	for _, el := range op.elements {
		status := fi.Success
		if el.Len != 0 {
			_, status = h.admits(op.src, el.Key, el.Addr, el.Len, fi.RemoteRead)
		}
		if status != fi.Success {
			op.status, op.place = status, 0
			for _, before := range op.elements[:op.allowed] {
				op.place += before.Len
			}
			break
		}
		op.allowed++
	}
	if op.allowed == 0 && op.status != 0 || r.Length == 0 && op.status != 0 {
		op.allowed = 0
	}
	h.on[wire.AMRead](op.src, header, r.Put(make([]byte, 64)), payload)
}

// atomic has an initiator change or fetch elements of 8 bytes.
func (h *host) atomic() {
	key := h.key()
	addr, n := h.reach(key, 4096)
	if h.r.IntN(20) != 0 {
		addr &^= 7
	}
	n = max(n&^7, 8)
	kind := atomics.Kind(h.r.IntN(3))
	op := &operation{units: 1, place: wire.NoPlace, first: uint64(h.r.IntN(100))}
	id := h.begin(op)
	a := wire.Atomic{Key: key, Request: id, Op: fi.OpSum, Datatype: fi.Uint64, Kind: kind, Ends: wire.EndsOperation,
		Count: uint32(n / 8), At: uint32(op.first)}
	rights, operands := fi.RemoteWrite, n
	switch kind {
	case atomics.Fetch:
		if h.r.IntN(3) == 0 {
			a.Op, operands, rights = fi.OpRead, 0, fi.RemoteRead
			break
		}
		rights = rightsOfAll
	case atomics.Compare:
		if n > 2048 {
			n = 2048
			a.Count, operands = uint32(n/8), n
		}
		a.Op, rights = fi.OpCSwap, rightsOfAll
	}
	x := h.payload(operands)
	m, status := h.admits(op.src, key, addr, n, rights)
	if op.status = status; status == fi.Success && !h.aligned(m, addr, n) {
		op.status = fi.EINVAL
	}
	var compare []byte
	if kind == atomics.Compare {
		compare = h.payload(n)
		if op.status == fi.Success {
			for i := uint64(0); i < n; i += 16 { // each second one is as it is there
				copy(compare[i:i+8], m.plain[addr+i:])
			}
		}
	}
	if kind != atomics.Base {
		op.units = n
	}
	if op.status == fi.Success {
		op.fetched = bytes.Clone(m.plain[addr:][:n])
		change(m.plain[addr:][:n], x, compare, a.Op)
		if a.Op != fi.OpRead {
			h.counted(m, a.Ends)
		}
		if kind != atomics.Base {
			h.wantReads++
		}
		m.spent()
	}
	if kind == atomics.Base && h.r.IntN(4) == 0 {
		a.Request = 0
		delete(h.ops, id)
	}
	h.on[wire.AMAtomic](op.src, addr, a.Put(make([]byte, 64)), append(x, compare...))
}

// aligned reports whether elements of 8 bytes are aligned, and none is in two parts.
func (h *host) aligned(m *memory, addr, n uint64) bool {
	for _, p := range m.parts {
		size := uint64(len(p))
		if addr >= size {
			addr -= size
			continue
		}
		part := min(n, size-addr)
		if part == 0 {
			break
		}
		if (address(p)+addr)%8 != 0 || part%8 != 0 {
			return false
		}
		addr, n = 0, n-part
	}
	return true
}

// change does an atomic operation on a copy.
func change(to, x, compare []byte, op fi.Op) {
	le := binary.LittleEndian
	for i := 0; i < len(to); i += 8 {
		switch old := le.Uint64(to[i:]); {
		case op == fi.OpSum:
			le.PutUint64(to[i:], old+le.Uint64(x[i:]))
		case op == fi.OpCSwap && old == le.Uint64(compare[i:]):
			le.PutUint64(to[i:], le.Uint64(x[i:]))
		}
	}
}

// data takes in bytes of a read, or of a result: in their order, as the copies have them now.
func (op *operation) data(h *host, at uint64, b []byte) {
	n := uint64(len(b))
	if at != op.first+op.at || n > op.units {
		h.t.Fatalf("%d bytes at %d of %d, %d are missing", n, at, op.first+op.at, op.units)
	}
	if op.fetched != nil {
		if !bytes.Equal(b, op.fetched[op.at:][:n]) {
			h.t.Fatal("the result of an atomic operation differs")
		}
		op.at, op.units = op.at+n, op.units-n
		return
	}
	start := uint64(0)
	var want []byte
	for i, el := range op.elements[:op.allowed] {
		from, to := max(start, at), min(start+el.Len, at+n)
		if from < to {
			m, status := h.admits(op.src, el.Key, el.Addr, el.Len, fi.RemoteRead)
			if status != fi.Success {
				h.t.Fatalf("bytes of a region come that are refused: %v", status)
			}
			want = append(want, m.plain[el.Addr+from-start:el.Addr+to-start]...)
		}
		if start += el.Len; start <= at+n && i == op.counted {
			op.counted++
			if el.Ends == wire.EndsOperation {
				h.wantReads++
			}
			if m := h.find(el.Key); m != nil && (el.Ends == wire.EndsOperation || el.Ends == wire.EndsElement) &&
				(!m.barred || op.src != barred) {
				defer m.spent()
			}
		}
	}
	if !bytes.Equal(b, want) {
		h.t.Fatalf("%d bytes at %d that were read differ from the copy", n, at)
	}
	op.at += n
	op.units -= max(n, 1)
}

// answered takes in an outcome.
func (op *operation) answered(h *host, src hw.Source, d *wire.Done) {
	if src != op.src || d.Units > op.units {
		h.t.Fatalf("source %d is answered %d units of %d that are missing for %d", src, d.Units, op.units, op.src)
	}
	if op.units -= d.Units; d.Status == fi.Success {
		return
	}
	if op.got == fi.Success {
		op.got = d.Status
	}
	if len(op.elements) == 0 {
		if d.At != op.place {
			h.t.Fatalf("%v is of %d, want %d", d.Status, d.At, op.place)
		}
		return
	}
	if op.status == d.Status && d.At == op.place { // refused at once
		return
	}
	if start := uint64(0); d.At == op.at {
		for _, el := range op.elements[:op.allowed] {
			if start += el.Len; start > op.at {
				if _, status := h.admits(op.src, el.Key, el.Addr, el.Len, fi.RemoteRead); status == d.Status {
					op.closed = true
					return
				}
			}
		}
	}
	h.t.Fatalf("%v of byte %d, %d are read", d.Status, d.At, op.at)
}

// complete has the target send all that waits, and checks the ends of all operations.
func (h *host) complete() {
	h.t.Helper()
	for n := 0; h.target.Replying(); n++ {
		if h.target.Reply(); n > 10_000 {
			h.t.Fatal("results wait for ever")
		}
	}
	for id, op := range h.ops {
		if h.gone[op.src] {
			continue
		}
		if op.units != 0 || !op.closed && op.got != op.status {
			h.t.Fatalf("operation %d %+v: %d units are missing, status %v, want %v", id, op, op.units, op.got,
				op.status)
		}
	}
	clear(h.ops)
	if left := h.target.Left(); left != (TargetLeft{}) || h.bad != 0 || h.pool.Used() != 0 {
		h.t.Fatalf("left %+v, %d bytes, %d messages are malformed", left, h.pool.Used(), h.bad)
	}
	if h.writes.Load() == nil {
		return
	}
	if w, r := h.writes.Load().Read(), h.reads.Load().Read(); w != h.wantWrites || r != h.wantReads {
		h.t.Fatalf("%d writes and %d reads are counted, want %d and %d", w, r, h.wantWrites, h.wantReads)
	}
	for _, m := range h.regions {
		if n := m.counter.Read(); n != m.expected {
			h.t.Fatalf("region %d counts %d, want %d", m.key, n, m.expected)
		}
	}
}

// step does one thing.
func (h *host) step() {
	switch h.r.IntN(8) {
	case 0, 1:
		h.write()
	case 2:
		h.writeElements()
	case 3:
		h.notify()
	case 4, 5:
		h.read()
	case 6:
		h.atomic()
	default:
		h.target.Reply()
	}
	h.check()
}
