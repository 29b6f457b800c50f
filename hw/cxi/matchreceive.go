package cxi

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/freering"
	"github.com/weft-fabric/weft/internal/libcxi"
	"github.com/weft-fabric/weft/internal/match"
)

// receiveState says what an id is used for.
type receiveState uint8

const (
	receiveNone   receiveState = iota
	receivePosted              // it is in the list, or about to be
	receiveSearch              // a search
	receiveEnded               // its id rests until the answer to its cancelling has come
)

// receive is a receive or a search. Posts and cancelling set it under the lock; messages and their ends belong to the
// lease holder.
type receive struct {
	state      receiveState // under the lock, as what follows to context
	multi      bool
	canceling  bool
	recalling  bool // it is being taken back for software
	claim      bool // a search whose message is set aside
	generation uint32
	id         uint32
	posting    uint64 // its number among those that were posted
	entry      nic.Entry
	memory     uintptr // of its bytes, which its owner keeps; an address, as threads without the runtime store it
	room       uint64  // bytes of memory
	context    uint64

	once arriving // the message of one that takes one
	// of one that takes many: its messages that have not ended, whether it is out of the list, and by a command, and
	// the bytes of unexpected messages, of those that have ended, and of all when it is out
	parts              []*arriving
	unlinked, canceled bool
	leaving            bool   // in matchRx.leaving
	taken              bool   // by messages that were taken over: it is not in the list
	skip               uint64 // bytes of those
	// posted is where software matches it, nil: it does not. Under the lock.
	posted             *match.Recv
	start, used, total uint64
}

// matchRx is the receiving side of a matcher. It belongs to the lease holder, but for what is marked.
type matchRx struct {
	m      *matcher
	events eventQueue
	pte    *libcxi.PtlTE

	// lock guards the target queue, the ids and the receives that wait for a place in the list.
	lock   bellLock
	portal portal
	unrung flag // as matchTx.unrung, of the target queue
	list   []receive
	sure   int           // of list, those whose events have room reserved (eventroom.go); immutable
	free   freering.Ring // ids that no receive has
	slots  []uint16      // by slot of the portal's queue, the buffer or receive that its command is of
	// waiting are receives that the NIC had no entry for, in their order. All that is posted behind them waits.
	waiting []uint32
	probing bool      // the first is being tried
	retryAt time.Time // not before
	// retries says that there are some, or removed. Stored under the lock, read by the lease holder.
	retries atomic.Bool
	// removed are receives that were cancelled while they were in no list of the NIC. Under the lock.
	removed []uint32
	// postings is the number of receives and searches so far. Under the lock.
	postings uint64

	early     early
	requests  requests
	soft      soft
	flow      flow
	regions   regions
	event     hw.MatchEvent
	commands  []*arriving // their get or notice is to be posted
	leaving   leaving
	malformed atomic.Uint64 // what no peer of the protocol sends. Written by refuse, read by any thread.
	// down says that events were dropped, and the list is gone (overrun.go). Stored by the lease holder under the lock,
	// read by posts.
	down atomic.Bool
	// failure is why the list was taken away. Stored before down.
	failure error
	// downUntil is when receives end then, zero: they have. Lease.
	downUntil time.Time
	// crowded says that the NIC keeps too many messages for a receive. Stored by posts, cleared by the lease holder.
	crowded atomic.Bool
	// later says that progress has something to do in a while. Stored by the lease holder and hasRoom, read by Arm.
	later atomic.Bool
}

// refuse counts and logs what no peer of the protocol sends.
func (x *matchRx) refuse(format string, args ...any) {
	x.malformed.Add(1)
	x.m.i.logf(format, args...)
}

// firstID is the least id of a receive; below are buffers for unexpected messages, from 1, those of requests, and
// idOnload.
func (x *matchRx) firstID() uint32 { return uint32(x.idOnload()) + 1 }

// open makes the lists and appends the buffers for unexpected messages.
func (x *matchRx) open() (err error) {
	i, c := x.m.i, &x.m.cfg
	x.lock.guard(&x.portal.q, &x.unrung)
	if err = x.openEvents(); err != nil {
		return err
	}
	slots := max(256, 2*c.Receives)
	if c.Mode == MatchSoftware {
		slots = 256 // no receive is appended
	}
	if err = x.portal.open(i.d, slots, &x.events); err != nil {
		return err
	}
	if err = errors.Join(x.early.open(x), x.requests.open(x), x.soft.open(x)); err != nil {
		return err
	}
	x.list, x.sure = make([]receive, c.Receives), c.sure()
	x.free.Open(x.firstID(), uint32(c.Receives))
	x.slots = make([]uint16, x.portal.cq.HalfSlots()/2)
	if err = x.m.tx.openNotices(); err != nil {
		return err
	}
	options := uint64(libcxi.PtlTEMatching | libcxi.PtlTELong | libcxi.PtlTEFlow)
	if x.pte, err = x.portal.place(i.d, &x.events, options, i.networks, proto.IndexMessages); err != nil {
		return err
	}
	if err = x.flow.open(x); err != nil {
		return err
	}
	x.early.listAll()
	x.requests.listAll()
	x.portal.q.Ring()
	x.portal.others = x.take // the NIC may have no entry for a buffer
	if x.flow.core.software {
		err = x.portal.manage(x.pte, &x.events, proto.IndexMessages)
	} else {
		x.flow.change(func(c *flowCore) { c.state = flowPendingHard })
		err = x.portal.enable(x.pte, &x.events, proto.IndexMessages)
	}
	if err == nil {
		x.flow.change(func(c *flowCore) { c.state = c.enabled() })
	}
	return err
}

// closeLists has nothing arrive any more.
func (x *matchRx) closeLists() error { return errors.Join(x.regions.close(), x.portal.close()) }

func (x *matchRx) close() error {
	return errors.Join(x.events.close(), x.flow.events.close(), x.early.memory.close(), x.requests.memory.close(),
		x.soft.close())
}

// idOther is the id of commands of another list, which no buffer or receive has.
const idOther = 0

// command writes a command of another list, and reports whether there was room.
func (x *matchRx) command(write func(q *nic.Queue) bool) bool {
	x.lock.take()
	defer x.lock.give()
	ok := write(&x.portal.q)
	if ok {
		x.slots[x.portal.q.LastSlot()] = idOther
	}
	x.portal.q.Ring()
	return ok
}

// entryOf is what a receive or search matches.
func (m *matcher) entryOf(r *hw.MatchReceive) (e nic.Entry, err error) {
	from, ok := m.sender(r.From)
	if !ok {
		return e, fmt.Errorf("cxi: endpoint %#x: %w", uint64(r.From), hw.ErrInvalid)
	}
	if r.Tagged && (r.Tag|r.Ignore)&^proto.TagMask != 0 {
		return e, fmt.Errorf("cxi: tag %#x, of which %#x matches anything: %w", r.Tag, r.Ignore, hw.ErrInvalid)
	}
	m.describe(&e, from, r.Tag, r.Ignore, r.Tagged)
	return e, nil
}

// sender is the match id of the senders that a receive admits. False: there is no such sender.
func (m *matcher) sender(a hw.MatchAddress) (id uint32, ok bool) {
	if a == hw.AnyAddress {
		return nic.AnyID(), true
	}
	from, ok := m.find(a, proto.IndexMessages)
	return nic.MatchID(from.NID, from.PID, m.pidBits), ok
}

// describe stores the list entry of a receive, but for its memory.
func (m *matcher) describe(e *nic.Entry, from uint32, tag, ignore uint64, tagged bool) {
	*e = nic.Entry{PtlTE: m.rx.pte.Number(), MatchID: from, Managed: true, Put: true, NoLink: true,
		NoUnlink: true, InOrder: true}
	e.MatchBits, e.Ignore = proto.Receive(tag, ignore, tagged)
}

// localOf is the memory of a receive.
func (m *matcher) localOf(r *hw.MatchReceive) (memory nic.Memory, err error) {
	if r.Local.Len == 0 {
		return memory, nil
	}
	return segmentMemory(&r.Local, true, 1<<47)
}

// PostReceive posts a receive.
func (m *matcher) PostReceive(r *hw.MatchReceive) (hw.MatchID, error) {
	e, err := m.entryOf(r)
	if err != nil {
		return 0, err
	}
	if r.Multi && (r.Tagged || r.MinFree < 0 || r.MinFree > maxMinFree || r.Local.Len == 0) {
		return 0, fmt.Errorf("cxi: receive of many messages in %d bytes, until less than %d are left: %w", r.Local.Len,
			r.MinFree, hw.ErrInvalid)
	}
	if e.Memory, err = m.localOf(r); err != nil {
		return 0, err
	}
	e.Length, e.Once = uint64(r.Local.Len), !r.Multi
	if r.Multi {
		e.MinFree = uint32(max(r.MinFree, 1))
	}
	if err := m.rx.usable(); err != nil {
		return 0, err
	}
	return m.rx.post(receivePosted, &e, r, false)
}

// Search finds an unexpected message, if there is one.
func (m *matcher) Search(r *hw.MatchReceive) error { return m.search(r, false) }

// search does so, and sets it aside if claim.
func (m *matcher) search(r *hw.MatchReceive, claim bool) error {
	e, err := m.entryOf(r)
	if err != nil {
		return err
	}
	if err := m.rx.usable(); err != nil {
		return err
	}
	e.Once = true
	search := *r
	search.Local = hw.Segment{}
	_, err = m.rx.post(receiveSearch, &e, &search, claim)
	return err
}

// post gives a receive or search an id, and writes its command unless receives before it wait. The NIC is to have it at
// once where its room was seen to be there, and is not reserved: what comes before the doorbell takes of that.
func (x *matchRx) post(state receiveState, e *nic.Entry, r *hw.MatchReceive, claim bool) (hw.MatchID, error) {
	if !appends(x.flow.state()) {
		return 0, hw.ErrNoResource
	}
	x.lock.take()
	sure := !r.Multi && x.certain()
	p, soft := x.postIn(state, e, r, claim)
	if p == nil {
		x.release(false)
		if x.crowded.Load() {
			x.m.i.bell.Ring()
		}
		return 0, hw.ErrNoResource
	}
	name := p.name() // before another thread has the receive
	x.release(r.More && sure)
	if soft && x.soft.local.Load() {
		x.m.i.bell.Ring()
	}
	return name, nil
}

// postIn does so for the holder of the lock, and reports whether software matches. nil: there is no room.
func (x *matchRx) postIn(state receiveState, e *nic.Entry, r *hw.MatchReceive, claim bool) (p *receive, soft bool) {
	if !x.portal.q.Room(1) || !appends(x.flow.state()) || len(x.soft.short) > 0 || !x.hasRoom(r.Multi) {
		return nil, false
	}
	if p = x.enter(state, e, segmentAddress(&r.Local), uint64(r.Local.Len), r.Context); p == nil {
		return nil, false
	}
	p.multi, p.claim = r.Multi, claim
	if soft = x.flow.core.software || x.soft.count() > 0; !soft {
		x.postHard(p)
	} else if !x.postSoft(p) {
		x.freeID(p)
		return nil, false
	}
	return p, soft
}

// release gives the lock back, and sees to the doorbell unless more follows (bellLock).
func (x *matchRx) release(more bool) {
	if more {
		x.lock.keep()
		return
	}
	x.unrung.take()
	x.lock.give()
}

// name is what a receive is cancelled by.
func (r *receive) name() hw.MatchID { return hw.MatchID(r.generation)<<32 | hw.MatchID(r.id) }

// enter gives a receive or search an id, nil: there is none. The caller has the lock.
func (x *matchRx) enter(state receiveState, e *nic.Entry, memory uintptr, room, context uint64) *receive {
	p := x.identify(state, memory, room, context)
	if p != nil {
		p.entry = *e
		p.entry.ID = uint16(p.id)
	}
	return p
}

// identify is enter but for the entry. Of a receive that has ended nothing is left but its generation (giveID).
func (x *matchRx) identify(state receiveState, memory uintptr, room, context uint64) *receive {
	id, ok := x.free.Take()
	if !ok {
		return nil
	}
	p := &x.list[id-x.firstID()]
	p.state, p.id, p.memory, p.room = state, id, memory, room
	p.context, p.posting = context, x.postings
	p.generation++
	x.postings++
	return p
}

// postSoft has software match a receive or search first, and the NIC what it leaves. False: no memory. The caller has
// the lock.
func (x *matchRx) postSoft(p *receive) bool {
	software := x.flow.core.software
	switch {
	case p.state == receiveSearch && x.soft.search(p):
	case p.state == receiveSearch && software:
		x.soft.missing(p)
	case p.state == receivePosted && software && len(x.waiting) > 0:
		x.waiting = append(x.waiting, p.id)
	case p.state == receivePosted && software:
		return x.soft.post(p)
	case p.state == receivePosted && x.soft.match(p): // those that wait have had their choice
	default:
		x.postHard(p)
	}
	return true
}

// postHard has the NIC match one. The caller has the lock, and has seen that there is room.
func (x *matchRx) postHard(p *receive) {
	switch {
	case p.state == receiveSearch:
		x.portal.q.Search(&p.entry)
		x.slots[x.portal.q.LastSlot()] = p.entry.ID
	case len(x.waiting) > 0:
		x.waiting = append(x.waiting, p.id)
	default:
		x.append(p.toAppend())
	}
}

// matchWaiting matches receives that the NIC had no entry for with messages that were taken over: they are older than
// receives that are posted from now on. Where software matches they are posted there. The caller has the lock.
func (x *matchRx) matchWaiting() {
	if x.probing {
		return // the flush has answered for all
	}
	short := false
	x.waiting = slices.DeleteFunc(x.waiting, func(id uint32) bool {
		r := x.receive(id)
		if r == nil || short {
			return r == nil
		}
		if x.flow.core.software {
			short = !x.soft.post(r)
			return !short
		}
		return x.soft.match(r)
	})
	x.retries.Store(len(x.waiting) > 0 || len(x.removed) > 0 || len(x.soft.short) > 0)
}

// toAppend is the entry without the memory that messages have which were taken over.
func (r *receive) toAppend() *nic.Entry {
	e := r.entry
	e.Memory.IOVA += r.skip
	e.Length -= r.skip
	return &e
}

// append writes the command that appends an entry. The caller has the lock, and has seen that there is room.
func (x *matchRx) append(e *nic.Entry) bool {
	if !x.portal.q.Append(e) {
		return false
	}
	x.slots[x.portal.q.LastSlot()] = e.ID
	return true
}

// receive is the one with an id, nil: there is none.
func (x *matchRx) receive(id uint32) *receive {
	if n := id - x.firstID(); n < uint32(len(x.list)) && x.list[n].state != receiveNone {
		return &x.list[n]
	}
	return nil
}

// posted is receive of a thread that takes in events: what was posted before them is seen.
func (x *matchRx) posted(id uint32) *receive {
	x.lock.takeQuietly()
	defer x.lock.keep()
	return x.receive(id)
}

// retire gives the id of a receive back, once nothing more comes of it.
func (x *matchRx) retire(r *receive) {
	x.lock.takeQuietly()
	if r.canceling || r.recalling {
		r.state = receiveEnded
	} else {
		x.freeID(r)
	}
	x.lock.keep()
}

// freeID does so at once. The caller has the lock.
func (x *matchRx) freeID(r *receive) {
	*r = receive{id: r.id, generation: r.generation, parts: r.parts[:0]}
	x.giveID(r)
}

// giveID gives the id of a receive back which is as it was entered. The caller has the lock.
func (x *matchRx) giveID(r *receive) {
	r.state = receiveNone
	x.free.Put(r.id)
}

// say hands an event out.
func (x *matchRx) say(ev *hw.MatchEvent) {
	x.event = *ev
	x.m.on(&x.event)
}

// searched takes in the answer to a search.
func (x *matchRx) searched(r *receive, e nic.Event) {
	ev := hw.MatchEvent{Kind: hw.MatchMissing, Context: r.context, Last: true}
	if e.Code() == wire.RcOk && r.claim {
		x.flow.claimFound(r)
		return
	}
	if e.Code() == wire.RcOk {
		ev.Kind = hw.MatchFound
		x.describe(&ev, e)
	}
	x.retire(r)
	x.say(&ev)
}

// describe stores what the event of a message says of it.
func (x *matchRx) describe(ev *hw.MatchEvent, e nic.Event) {
	says := proto.MessageOf(e.MatchBits())
	ev.From, ev.Wanted = x.m.sentBy(e), uint64(e.Wanted())
	ev.Tagged, ev.Tag, ev.HasData = says.Tagged, says.Tag, says.Data
	if says.Data {
		ev.Data = e.HeaderData()
	}
}

// retryDelay is how long receives wait that the NIC had no entry for.
const retryDelay = time.Millisecond

// refusedEntry takes in that the NIC had no entry for a receive.
func (x *matchRx) refusedEntry(id uint32, code uint32) {
	x.lock.take()
	defer x.lock.give()
	probed := x.probing && len(x.waiting) > 0 && x.waiting[0] == id
	if probed {
		x.probing = false
	} else {
		x.waiting = append(x.waiting, id)
	}
	if !x.retries.Load() {
		x.m.i.logf("no list entry for a receive: %s", codeText(code))
	}
	x.retryAt = time.Now().Add(retryDelay)
	x.retries.Store(true)
	if x.flow.core.hybrid { // the NIC leaves matching to software, as a rule
		x.flow.stop(probed, true)
		return
	}
	x.flow.stop(x.early.kept.Load() > 0, false)
}

// listed takes in that the NIC has an entry again, for the first receive that waited: all that it has refused before
// have been taken in.
func (x *matchRx) listed(id uint32) {
	x.lock.take()
	defer x.lock.give()
	if !x.probing || len(x.waiting) == 0 || x.waiting[0] != id {
		return
	}
	x.probing = false
	n := 1
	// What is appended while messages are taken over would take some of them.
	for n < len(x.waiting) && x.admitsWaiting(n) && x.append(x.receive(x.waiting[n]).toAppend()) {
		n++
	}
	x.waiting = append(x.waiting[:0], x.waiting[n:]...)
	x.retries.Store(len(x.waiting) > 0)
	x.portal.q.Ring()
}

// admitsWaiting reports whether a receive that waits may be appended. The caller has the lock.
func (x *matchRx) admitsWaiting(n int) bool {
	return appends(x.flow.state()) && x.portal.q.Room(1) && x.hasRoom(x.receive(x.waiting[n]).multi)
}

// retry tries the first receive that waits, and ends those that were cancelled meanwhile.
func (x *matchRx) retry() (n int) {
	x.lock.take()
	removed := x.removed
	x.removed = nil
	x.soft.retry()
	if x.flow.core.software && appends(x.flow.state()) {
		x.matchWaiting()
	} else if len(x.waiting) > 0 && !x.probing && !time.Now().Before(x.retryAt) && x.admitsWaiting(0) {
		e := *x.receive(x.waiting[0]).toAppend()
		e.InOrder, e.NoLink = false, false
		x.probing = x.append(&e)
		x.portal.q.Ring()
	}
	x.retries.Store(len(x.waiting) > 0 || len(x.soft.short) > 0)
	x.lock.give()
	n += x.soft.deliver() // messages that they got before, the last of which does not end them
	for _, id := range removed {
		r := x.receive(id)
		x.lock.take()
		r.canceling, r.canceled = false, true
		x.lock.give()
		if len(r.parts) == 0 {
			x.takenBack(r)
			n++
		}
	}
	return n
}

// cancel ends all receives. The caller is Close, and the lists are still there, so nothing is given back.
func (x *matchRx) cancel(err error) {
	for n := range x.list {
		r := &x.list[n]
		if r.state == receivePosted || r.state == receiveSearch {
			r.state = receiveEnded
			x.say(&hw.MatchEvent{Kind: hw.MatchCanceled, Context: r.context, Last: true, Err: err})
		}
	}
}
