package coll

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Chunks as puts. When an operation begins, a member offers each sender of a long slice the memory where the slice
// belongs (wire.CollTarget). From then on the sender puts its chunks there and, when a put is in the receiver's memory,
// sends which bytes are in place (wire.CollPut), in the slice's order: so on no transport does a count come before its
// data. What has completed at a device need not be there, and the word goes by another of its queues, so a flush
// follows each put where the transport does not promise it (hw.CapPutPlaced). A chunk goes as a message where there is
// no offer yet, where the device does not take the memory of this side, and where the put is refused at once, so no
// member waits for an offer.
//
// Memory that is offered is registered for one sender and one operation, and the registration ends before the
// operation completes, with whatever outcome: no peer writes to memory that its owner has back. That of a persistent
// operation stays registered for the next (keptMemory). It is never of a cache of registrations, whose keys live on.
// Devices give keys out again, so one that a peer may still have when its operation fails names no other region of that
// memory (hw.Lasting). What a put reads is the operation's until the put has ended: one that fails completes no sooner.
// The device knows it, from the cache, as long (localOf).

// putPiece is the most bytes of a put, putTurn the most that this thread copies before it serves others, and putHere
// those of a slice from which on it is put between members of one host by default (docs/design.md, section 16, has what
// was measured).
const (
	putPiece = 256 << 10
	putTurn  = 4 << 20
	putHere  = 1 << 20
)

// putTarget is where a peer's slice goes, or is got from: the zero value if the peer has not offered it, or copies do
// not get there.
type putTarget struct {
	transport *Transport // over which the offer came
	key       hw.RemoteKey
}

// collCopy is a put or a get of a part of a chunk. It belongs to the lease holder, and is used again when it has ended
// and the receiver knows that.
type collCopy struct {
	done  hw.Completion
	next  *collCopy // free, or behind it of those to or from the peer
	xs    *exchanges
	op    *collOp
	peer  int
	part  exchange.Chunk // from the first byte on
	bytes int64
	ended bool
	err   error
	flush hw.Flusher // of the flush behind it, which waits for room
}

// takesPuts reports whether chunks may go over the transport as puts: it says when they are in the peer's memory.
// docs/design.md, section 16, has a table of what is chosen where.
func (p *Transport) takesPuts() bool {
	return p.Caps&hw.CapPutZcopy != 0 && p.Caps&(hw.CapPutPlaced|hw.CapFlush) != 0 && p.copies()
}

// copies reports whether memory behind the transport is reached with keys that an offer has room for, and memory of
// this side can be made known to its device where it has to be.
func (p *Transport) copies() bool {
	if p.Memory() == nil {
		return false
	}
	a := p.Memory().Attr()
	return a.MaxKey <= wire.CollKey && (a.Caps&hw.MDLocal == 0 || p.Device.Domain != nil)
}

// offer offers the senders of long slices where these belong, or the receivers where they are.
func (xs *exchanges) offer(o *collOp) {
	g, x := o.group, o.exchange
	if !g.ways.puts && !g.ways.gets {
		return
	}
	for i, peer := range x.peers.ids {
		p, m := &x.peers.all[i], &g.members[g.rankOf(int(peer))]
		path, ok := m.peer.Ready()
		if !ok {
			continue
		}
		data, access := g.ways.offered(x, p, path.Over())
		if len(data) == 0 {
			continue
		}
		r, err := o.register(i, path.Over(), data, access)
		if err != nil {
			log.Infof(log.EPData, "%d bytes go as messages: %v", len(data), err)
			continue
		}
		p.region = r
		h := wire.CollTarget{CollStep: o.head(), Length: uint64(len(data))}
		h.SetKey(r.PackKey(xs.key[:0]))
		xs.c.control(m, wire.AMCollCTS, m.id, h.Put(xs.c.head[:]))
	}
}

// withdraw ends what was offered: when it returns no peer writes there any more. Of a persistent operation that has not
// failed it stays registered, and no peer has a right to it without an offer of the next one.
func (xs *exchanges) withdraw(o *collOp) {
	if o.exchange == nil {
		return
	}
	for i := range o.exchange.peers.all {
		if p := &o.exchange.peers.all[i]; p.region != nil {
			if o.status != fi.Success {
				outlive(p.region)
			}
			if o.kept == nil {
				_ = p.region.Close()
			}
			p.region = nil
		}
	}
	if o.kept != nil && o.status != fi.Success {
		o.kept.close()
	}
}

// outlive has no other region of the memory get the key of one that is to be closed, where the device might: a peer may
// have puts or gets with it that have yet to begin.
func outlive(region hw.Memory) {
	if l, ok := region.(hw.Lasting); ok && !l.Keep() {
		log.Warnf(log.EPData, "too many keys of all-to-alls that failed: a member that is late may use one again")
	}
}

// onTarget is a receiver's offer.
func (xs *exchanges) onTarget(src hw.Source, id uint64, head []byte) {
	var h wire.CollTarget
	if !h.Parse(head) {
		xs.c.malformed(src, "target of %d bytes does not parse", len(head))
		return
	}
	g, m := xs.c.member(src, id, h.Rank, "target")
	if m == nil {
		return
	}
	if !g.ways.puts && !g.ways.gets && g.state.Load() != groupJoining { // a member that has joined may be ahead
		xs.c.malformed(src, "target in a group without puts and gets")
		return
	}
	early := earlyStep{kind: earlyTarget, head: wire.CollLong{CollStep: h.CollStep}, target: h}
	if o := xs.begun(g, m, &early, nil); o != nil {
		xs.takeTarget(o, m, &h)
		xs.goOn(o)
	}
}

// takeTarget takes in an offer.
func (xs *exchanges) takeTarget(o *collOp, m *collMember, h *wire.CollTarget) {
	x, peer := o.exchange, o.group.peerOf(int(h.Rank))
	to := x.peers.in(peer)
	if o.group.ways.gets {
		to = x.peers.out(peer)
	}
	switch {
	case o.status != fi.Success:
		return
	case h.Kind != o.kind:
		xs.c.unlike(o, &h.CollStep)
		return
	case h.Length != to.Len:
		o.group.warn("operation %d: rank %d offers %d bytes, and this one has %d with it", o.seq, h.Rank,
			h.Length, to.Len)
		xs.c.fail(o, fi.ETRUNC)
		return
	}
	transport := xs.c.ep.TransportOf(m.src)
	q := x.peers.at(peer)
	if q.target.transport != nil || o.group.ways.puts && !transport.takesPuts() ||
		o.group.ways.gets && !transport.takesGets() {
		xs.c.malformed(m.src, "target of operation %d, again or over a transport without such copies", o.seq)
		return
	}
	key, err := transport.Memory().UnpackKey(h.PackedKey(xs.key[:0]))
	if err != nil {
		xs.c.malformed(m.src, "target of operation %d: %v", o.seq, err)
		return
	}
	q.target = putTarget{transport, key}
}

// copy begins to put a part of a pending chunk, or to get one of what a peer lets this member get, and returns how long
// it is: 0 if it has to go as a message.
func (xs *exchanges) copy(o *collOp, path Path, peer int, h *exchange.Chunk) (int64, error) {
	if xs.copied >= putTurn {
		return 0, fi.EAGAIN
	}
	x, q := o.exchange, o.exchange.peers.at(peer)
	n := min(h.Length, putPiece)
	slice, access, begin := x.given[q.in.Off:][:q.in.Len], hw.Access(0), hw.OneSided.PutZcopy
	flushes := path.Over().Caps&hw.CapPutPlaced == 0
	if o.group.ways.gets {
		slice, access, begin, flushes = x.got[q.out.Off:][:q.out.Len], hw.LocalWrite, hw.OneSided.GetZcopy, false
	}
	memory, err := x.localOf(peer, path.Over(), slice, access)
	if err != nil {
		q.refused = true
		return 0, nil
	}
	t := xs.newCopy(o, peer, h, n)
	if flushes {
		t.done.Expect(2)
	}
	ep := path.Transport().(hw.OneSided)
	xs.c.local[0] = segmentOf(slice[h.Offset:][:n])
	xs.c.local[0].Memory = memory
	status, err := begin(ep, xs.c.local[:], uint64(h.Offset), q.target.key, &t.done)
	xs.c.local[0] = hw.Segment{}
	if err == nil && flushes {
		status, err = t.flushed(ep.(hw.Flusher), status)
	}
	return xs.copying(t, status, err)
}

// localOf has the device of a transport know a slice until leave, where it has to: the memory is nil where it need not.
func (x *collExchange) localOf(peer int, over *Transport, slice []byte, access hw.Access) (hw.Memory, error) {
	if over.Memory().Attr().Caps&hw.MDLocal == 0 {
		return nil, nil
	}
	l := x.peers.localOf(peer)
	if l.over == nil {
		use, err := over.Device.Use(mem.Address(slice), uint64(len(slice)), access)
		if err != nil {
			log.Infof(log.EPData, "%d bytes go as messages: %v", len(slice), err)
			return nil, err
		}
		*l = peerLocal{use, over}
	}
	return l.use.Memory(), nil
}

// leave has devices forget what localOf had them know. No copy is under way.
func (x *collExchange) leave() {
	for i := range x.peers.locals {
		if l := &x.peers.locals[i]; l.over != nil {
			l.over.Device.Leave(&l.use)
			l.over = nil
		}
	}
}

// flushed has a put, of which it says how far it is, end when the peer's memory has it: the completion is of the put
// and of a flush behind it.
func (t *collCopy) flushed(f hw.Flusher, put hw.Status) (hw.Status, error) {
	if put == hw.Done {
		t.done.Update(1, nil)
	}
	switch status, err := f.Flush(hw.FlushMemory, &t.done); {
	case errors.Is(err, hw.ErrNoResource):
		t.flush = f
		t.xs.unflushed.Add(t)
	case err == nil && status == hw.InProgress:
	case put == hw.Done:
		return hw.Done, err
	default: // Progress has yet to end the put, so this is not the last
		t.done.Update(1, err)
	}
	return hw.InProgress, nil
}

// flushAgain begins the flush for which there was no room, and goes on with the operation if that ends the put.
func (t *collCopy) flushAgain() {
	switch status, err := t.flush.Flush(hw.FlushMemory, &t.done); {
	case errors.Is(err, hw.ErrNoResource):
		t.xs.unflushed.Add(t)
	case err != nil || status == hw.Done:
		t.done.Update(1, err)
	}
}

// copying takes in that a put or a get has begun, as the transport says, and returns how many bytes it has: 0 if it is
// refused, which the peer's entry says then.
func (xs *exchanges) copying(t *collCopy, status hw.Status, err error) (int64, error) {
	o, peer, n := t.op, t.peer, t.bytes
	x, q := o.exchange, o.exchange.peers.at(peer)
	if err != nil {
		xs.freeCopy(t)
	}
	switch {
	case errors.Is(err, hw.ErrKey), errors.Is(err, hw.ErrPermission): // no room for the key, or the kernel refuses
		q.target.key, q.refused = hw.RemoteKey{}, true
		return 0, nil
	case err != nil && errors.Is(outcome.OfPost(err), fi.EAGAIN):
		return 0, fi.EAGAIN
	case err != nil:
		o.group.warn("copy %d bytes to or from rank %d: %v", n, o.group.rankOf(peer), err)
		return 0, outcome.OfCopy(err)
	}
	if q.copies == nil {
		q.copies = t
	} else {
		q.lastCopy.next = t
	}
	q.lastCopy = t
	if t.ended = status == hw.Done; t.ended {
		xs.copied += n
		xs.placed(o, peer)
	} else {
		x.flying++
	}
	return n, nil
}

// newCopy returns a put or get of n bytes from the beginning of a part of a chunk on.
func (xs *exchanges) newCopy(o *collOp, peer int, h *exchange.Chunk, n int64) *collCopy {
	t := xs.spare
	if t == nil {
		t = &collCopy{xs: xs}
		t.done.Func, t.done.Idempotent = func(c *hw.Completion) { t.copied(c.Err()) }, true
	} else {
		xs.spare = t.next
	}
	t.next, t.op, t.peer, t.part, t.bytes, t.ended, t.err = nil, o, peer, *h, n, false, nil
	t.done.Expect(1)
	return t
}

func (xs *exchanges) freeCopy(t *collCopy) { t.op, t.flush, t.next, xs.spare = nil, nil, xs.spare, t }

// copied takes in that a put or a get has ended. The transport calls it under the progress lease, or while the
// endpoint closes.
func (t *collCopy) copied(err error) {
	xs, o := t.xs, t.op
	t.ended, t.err = true, err
	x := o.exchange
	x.flying--
	switch {
	case xs.c.ep.Closed():
		if x.flying == 0 {
			x.leave()
		}
	case o.status != fi.Success && x.flying == 0 && !o.advancing:
		xs.c.settle(o)
	case o.status != fi.Success || errors.Is(err, hw.ErrKey): // the peer's operation has failed: its note comes
	case err != nil:
		o.group.warn("copy %d bytes to or from rank %d: %v", t.bytes, o.group.rankOf(t.peer), err)
		xs.c.fail(o, outcome.OfCopy(err))
	default:
		o.advancing = true
		xs.placed(o, t.peer)
		xs.goOn(o)
	}
}

// placed says which bytes of a peer's slice are in place, up to the first that are not: to the peer that they were
// put to, or to the engine.
func (xs *exchanges) placed(o *collOp, peer int) {
	q, m := o.exchange.peers.at(peer), &o.group.members[o.group.rankOf(peer)]
	if o.group.ways.gets {
		xs.land(o, m, peer)
		return
	}
	for t := q.copies; t != nil && t.ended && t.err == nil; t = q.copies {
		h := wire.CollPut{Bytes: uint64(t.bytes)}
		h.CollStep, h.Part = o.head(), t.part
		xs.c.control(m, wire.AMCollStep, m.id, h.Put(xs.c.head[:]))
		xs.c.ep.Stats().Rx(stats.RxExchangePut, uint64(t.bytes))
		q.copies = t.next
		xs.freeCopy(t)
	}
}

// dropCopies forgets the puts or gets of an operation, all of which have ended.
func (xs *exchanges) dropCopies(x *collExchange) {
	for i := range x.peers.all {
		p := &x.peers.all[i]
		for t := p.copies; t != nil; t = p.copies {
			p.copies = t.next
			xs.freeCopy(t)
		}
		p.lastCopy = nil
	}
}

// onPut says which bytes a sender has put into place.
func (xs *exchanges) onPut(src hw.Source, id uint64, head, payload []byte) {
	var h wire.CollPut
	if !h.Parse(head) || len(payload) != 0 {
		xs.c.malformed(src, "word of a put of %d bytes with %d does not parse", len(head), len(payload))
		return
	}
	g, m := xs.c.member(src, id, h.Rank, "put")
	if m == nil {
		return
	}
	o := g.runs.under[h.Seq]
	if o == nil && g.runs.over(h.Seq) {
		return // it has failed here
	}
	if !g.ways.puts || o == nil || o.exchange == nil || h.Kind != o.kind ||
		o.exchange.peers.region(g.peerOf(int(h.Rank))) == nil {
		xs.c.malformed(src, "put of operation %d, of which it has no target", h.Seq)
		return
	}
	o.advancing = true
	if peer := g.peerOf(int(h.Rank)); xs.next(o, m, peer, &h.Part, int64(h.Bytes)) {
		o.exchange.arrived(o, peer, uint64(h.Part.Total))
	}
	xs.goOn(o)
}
