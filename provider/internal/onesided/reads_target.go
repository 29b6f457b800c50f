package onesided

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// reply is what an initiator waits for: a piece of a region, or the result of an atomic, which is copied because the
// memory may change before there is room to send.
type reply struct {
	src     hw.Source // the source behind which to is
	to      Sender
	request uint64
	key     uint64
	addr    uint64
	length  uint64
	at      uint64 // offset in the operation
	sent    uint64
	result  uint64 // address of the result, 0: read the region
	ends    wire.Ends
	// of a read of several elements: these, the next to be sent, and how many bytes of it are
	list []wire.Element
	next int
	in   uint64
}

// maxReplies bounds what initiators that do not take their answers cost.
const maxReplies = 1 << 16

// onRead begins to send what is asked for.
func (t *Target[O]) onRead(src hw.Source, addr uint64, head, payload []byte) {
	var h wire.Read
	if !h.Parse(head) {
		t.ep.Malformed(src, "read does not parse")
		return
	}
	if h.Elements {
		t.readElements(src, &h, addr, payload)
		return
	}
	t.ep.Count(stats.RxServedReads, 1)
	if h.Length != 0 {
		m, _, err := t.ep.Access(src, h.Key, addr, h.Length, fi.RemoteRead)
		if err != nil {
			t.answer(src, h.Request, &wire.Done{Status: t.refuse(src, "read", h.Key, addr, h.Length, err),
				Units: h.Length, At: h.At})
			return
		}
		m.Gate.Leave()
	}
	if len(t.replies) >= maxReplies {
		t.answer(src, h.Request, &wire.Done{Status: fi.ENOMEM, Units: max(1, h.Length), At: h.At})
		return
	}
	t.reply(reply{src: src, to: t.ep.Sender(src), request: h.Request, key: h.Key, addr: addr, length: h.Length,
		at: h.At, ends: h.Ends})
	t.ep.FillBack(src) // the data plane answers the next one
}

// reply sends a reply as far as there is room and keeps the rest.
func (t *Target[O]) reply(r reply) {
	if len(t.replies) == 0 && t.pumpReply(&r) {
		return
	}
	t.replies.Add(r)
}

// pumpReply reports whether the reply is done with.
func (t *Target[O]) pumpReply(r *reply) bool {
	if !t.sendAll(r) {
		return false
	}
	t.dropReply(r)
	return true
}

// sendAll sends what is left of a reply, and reports whether nothing is: false, there is no room. Why nothing more can
// be read is answered.
func (t *Target[O]) sendAll(r *reply) bool {
	for {
		p, err := t.ep.Back(r.src, r.to)
		if err == nil {
			err = t.sendReply(p, r)
		}
		status := fi.ErrnoOf(err)
		switch {
		case status == fi.EAGAIN:
			return false
		case status == fi.ENOKEY || status == fi.EACCES || status == fi.EIO:
			// The region was closed meanwhile, or is of a device that fails.
			d := wire.Done{Status: status, Units: r.length - r.sent, At: r.at + r.sent}
			t.ep.Answer(r.src, r.to, r.request, d.Put(t.head[:]))
			return true
		case err != nil:
			return true
		case r.sent == r.length:
			if r.result == 0 && r.list == nil {
				t.wasRead(r.src, r.key, r.length, r.ends)
			}
			return true
		}
	}
}

// wasRead counts n bytes of a read that replies have sent.
func (t *Target[O]) wasRead(src hw.Source, key, n uint64, ends wire.Ends) {
	if c := t.counters.Reads.Load(); c != nil {
		c.Part(n, ends.Operation())
	}
	if !ends.Region() {
		return
	}
	if m := t.ep.Reached(src, key); m != nil && m.Single {
		t.ep.Spend(m)
	}
}

// sendReply sends the next piece of a reply.
func (t *Target[O]) sendReply(p Path, r *reply) error {
	if r.list != nil {
		return t.sendElements(p, r)
	}
	n := min(r.length-r.sent, uint64(p.MaxPart()))
	iov := t.regionIOV[:0]
	switch {
	case r.result != 0:
		iov = append(iov, fi.IOVec{Base: uintptr(r.result + r.sent), Len: n})
	case n != 0:
		m, offset, err := t.ep.AccessOf(r.to, r.key, r.addr+r.sent, n, fi.RemoteRead)
		if err != nil {
			return err
		}
		defer m.Gate.Leave()
		iov = vector.Window(iov, m.Memory.Parts, offset, n)
	}
	err := t.ep.Send(p, wire.AMReadData, r.request, wire.PutWord(t.head[:], r.at+r.sent), iov, int(n))
	if err == nil {
		r.sent += n
	}
	return err
}

// dropReply frees the result, or the elements, that a reply keeps.
func (t *Target[O]) dropReply(r *reply) {
	if r.list != nil {
		t.elements.drop(r.list)
		r.list = nil
	}
	if r.result != 0 {
		t.ep.Pool().Put(r.result, int(r.length))
		r.result = 0
	}
}
