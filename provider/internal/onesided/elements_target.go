package onesided

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/region"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// The target's side of writes and reads that are several elements in one message (wire.Element). Each element is
// checked, then performed and counted. The first that is refused ends the message: nothing is done of it and of those
// behind it, and the answer says which it is.

// elements is what a target keeps of such messages, for the lease holder.
type elements[O any] struct {
	list []wire.Element // of the message that is handled
	// those of reads that wait for room: how many, and arrays for use again
	kept    int
	spare   [][]wire.Element
	iov     []fi.IOVec          // of the answer that is sent
	entered []*region.Region[O] // regions of that, whose gates are entered
}

const (
	// maxKept bounds what initiators that do not take the answers to reads of several elements cost.
	maxKept = 1 << 18
	// spareLists is how many arrays of elements are kept for use again.
	spareLists = 16
)

// writeElements places the bytes of n elements of a write.
func (t *Target[O]) writeElements(src hw.Source, w *wire.Write, n uint64, payload []byte) {
	e := &t.elements
	list, bytes, total, ok := wire.ParseElements(e.list[:0], payload, n)
	e.list = list[:0]
	if !ok || total != uint64(len(bytes)) {
		t.ep.Malformed(src, "write of %d elements of %d bytes, with %d bytes, does not parse", n, total, len(bytes))
		return
	}
	d := wire.Done{At: wire.NoPlace}
	for i := range list {
		el := &list[i]
		to := placement{key: el.Key, start: el.Addr, length: el.Len, ends: el.Ends}
		d.Status = t.place(src, to, bytes[:el.Len])
		if d.Status != fi.Success {
			d.At = w.Key + uint64(i)
			break
		}
		bytes = bytes[el.Len:]
	}
	t.endWrite(src, w, w.Key+uint64(len(list)), &d)
}

// readElements begins to send n elements.
func (t *Target[O]) readElements(src hw.Source, h *wire.Read, n uint64, payload []byte) {
	e := &t.elements
	list, rest, total, ok := wire.ParseElements(e.list[:0], payload, n)
	e.list = list[:0]
	if !ok || len(rest) != 0 || total != h.Length {
		t.ep.Malformed(src, "read of %d elements of %d bytes as one of %d does not parse", n, total, h.Length)
		return
	}
	status, allowed := fi.Success, uint64(0)
	for i := range list {
		el := &list[i]
		if status = t.readable(src, el); status != fi.Success {
			list = list[:i]
			break
		}
		allowed += el.Len
	}
	if allowed == h.Length || allowed != 0 {
		if len(t.replies) >= maxReplies || e.kept+len(list) > maxKept {
			status, allowed = fi.ENOMEM, 0
		} else {
			r := reply{src: src, to: t.ep.Sender(src), request: h.Request, length: allowed, at: h.At}
			r.list = e.keep(list)
			t.reply(r)
		}
	}
	if status != fi.Success {
		t.answer(src, h.Request, &wire.Done{Status: status, Units: max(1, h.Length-allowed), At: h.At + allowed})
	}
	t.ep.FillBack(src)
}

// readable counts an element of a read, and reports whether the initiator may have it.
func (t *Target[O]) readable(src hw.Source, el *wire.Element) fi.Errno {
	t.ep.Count(stats.RxServedReads, 1)
	if el.Len == 0 {
		return fi.Success
	}
	m, _, err := t.ep.Access(src, el.Key, el.Addr, el.Len, fi.RemoteRead)
	if err != nil {
		return t.refuse(src, "read", el.Key, el.Addr, el.Len, err)
	}
	m.Gate.Leave()
	return fi.Success
}

// keep returns a copy of elements, for a reply.
func (e *elements[O]) keep(list []wire.Element) []wire.Element {
	var to []wire.Element
	if n := len(e.spare); n != 0 {
		to, e.spare = e.spare[n-1], e.spare[:n-1]
	}
	e.kept += len(list)
	return append(to[:0], list...)
}

// drop takes the elements of a reply back.
func (e *elements[O]) drop(list []wire.Element) {
	e.kept -= len(list)
	if len(e.spare) < spareLists {
		e.spare = append(e.spare, list)
	}
}

// sendElements sends the next piece of a reply that has elements, and counts those of which all is sent.
func (t *Target[O]) sendElements(p Path, r *reply) error {
	e := &t.elements
	most := min(r.length-r.sent, uint64(p.MaxPart()))
	n, err := t.enterElements(r, most)
	if err == nil {
		err = t.ep.Send(p, wire.AMReadData, r.request, wire.PutWord(t.head[:], r.at+r.sent), e.iov, int(n))
	}
	for _, m := range e.entered {
		m.Gate.Leave()
	}
	clear(e.entered)
	if err != nil {
		return err
	}
	r.sent += n
	for r.next < len(r.list) {
		el := &r.list[r.next]
		left := el.Len - r.in
		if n < left {
			r.in += n
			break
		}
		n -= left
		t.wasRead(r.src, el.Key, el.Len, el.Ends)
		r.next, r.in = r.next+1, 0
	}
	return nil
}

// enterElements enters the regions of the next bytes of a reply, most at most, and gathers where they are. An error is
// that of the first byte; one of a later element ends the piece before it.
func (t *Target[O]) enterElements(r *reply, most uint64) (n uint64, err error) {
	e := &t.elements
	e.iov, e.entered = e.iov[:0], e.entered[:0]
	in := r.in
	for i := r.next; n < most; i++ {
		el := &r.list[i]
		if take := min(el.Len-in, most-n); take != 0 {
			m, offset, err := t.ep.AccessOf(r.to, el.Key, el.Addr+in, take, fi.RemoteRead)
			if err != nil && n == 0 {
				return 0, err
			}
			if err != nil {
				break
			}
			e.entered = append(e.entered, m)
			e.iov = vector.Window(e.iov, m.Memory.Parts, offset, take)
			n += take
		}
		in = 0
	}
	return n, nil
}
