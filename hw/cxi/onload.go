package cxi

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// Flow control at the receiver. When the NIC has disabled the list because messages found no room, the unexpected
// messages that it keeps are taken over, which frees their buffers and list entries: receives posted from then on are
// matched with these first. The list is enabled again when the senders have reported as many drops as the NIC has
// counted. flowCore (flowstate.go) decides.

// flow is the receiver's flow control. It belongs to the lease holder, but for what is marked.
type flow struct {
	x      *matchRx
	events eventQueue // control messages, and regions

	core flowCore
	// word is core's state. Stored by the lease holder under the receiver's lock; read by posts, before they take the
	// lock and again when they have an id, and by Stats.
	word atomic.Uint32

	// claims are searches whose message the NIC keeps, which is to be set aside. Under the receiver's lock, as what
	// follows to last.
	claims  []*receive
	claimed map[hw.Claim]*softMessage
	last    hw.Claim // that was given out

	flushed  bool     // appends that were posted before have taken effect
	recalled int      // places of receives up to which they are taken back, or on their way
	recalls  int      // those that are on their way
	removed  bool     // all messages are in software
	offsets  []uint64 // of the messages that are to be taken over
	removing int      // those that are on their way
	missing  int      // those whose bytes are to come
	wanted   map[earlyKey]*softMessage
	// refused commands of these kinds are posted again, not before, unless what they are for has been done meanwhile
	again   [flowCommands]bool
	againAt time.Time
	// refusedAt is when a command or call was refused last since one was done, zero: none was. refusedTime is how long
	// they were made again meanwhile.
	refusedAt   time.Time
	refusedTime time.Duration

	said   bool // that software matches
	counts flowCounts
}

// flowCounts are counters of flow control: written by the lease holder, read by any thread.
type flowCounts struct {
	reasons  [flowReasons]atomic.Uint64 // times that the NIC stopped or left matching, by wire.ReasonFcEqFull, …
	software atomic.Uint64              // and how often it was had to
	onloaded atomic.Uint64              // messages that were taken over
	matched  atomic.Uint64              // messages that found their receive in software
	refused  atomic.Uint64              // commands that the NIC has refused
	overruns atomic.Uint64              // times that events were found to have been dropped
	unknown  atomic.Uint64              // events that nothing expects
}

const flowReasons = 8

// flowCommand is a command of flow control. Slots of the target queue have it as an id behind all others.
type flowCommand int

const (
	flowDisable flowCommand = iota
	flowFlush
	flowRemove
	flowEnable
	flowRecall   // its slots have the receive's id
	flowCommands = iota
	idFlow       = 1<<16 - flowCommands
)

// controlEvents is how many control messages, and writes with data, may wait for Progress. The NIC refuses those
// beyond, and their senders know: control messages and writes with data go again.
const controlEvents = 4095

// idOnload is the id of searches that take messages over.
func (x *matchRx) idOnload() uint16 { return x.requests.id(len(x.requests.buffers)) }

// state is the word.
func (f *flow) state() flowState { return flowState(f.word.Load()) }

// change has a step of the core be seen by posts.
func (f *flow) change(step func(c *flowCore)) {
	f.x.lock.take()
	step(&f.core)
	f.word.Store(uint32(f.core.state))
	f.x.lock.give()
}

// post writes a command, as far as there is room: else later. The caller has the lock.
func (f *flow) post(c flowCommand, write func(q *nic.Queue) bool) bool {
	q := &f.x.portal.q
	if !q.Room(1) || !write(q) {
		q.Ring()
		f.again[c], f.againAt = true, time.Time{}
		return false
	}
	f.x.slots[q.LastSlot()] = idFlow + uint16(c)
	q.Ring()
	return true
}

// open makes the list for control messages.
func (f *flow) open(x *matchRx) error {
	f.x, f.wanted, f.claimed = x, map[earlyKey]*softMessage{}, map[hw.Claim]*softMessage{}
	f.core.hybrid, f.core.software = x.m.cfg.Mode == MatchHybrid, x.m.cfg.Mode == MatchSoftware
	f.said = f.core.software
	i := x.m.i
	if i.d.dev.Version>>4 < 2 {
		f.core.first, f.core.drops = -1, -1
	}
	if err := f.events.open(i.d, controlEvents, true, i.wait, 0); err != nil {
		return err
	}
	pte, err := x.portal.place(i.d, &f.events, libcxi.PtlTEMatching|libcxi.PtlTELong, i.networks, proto.IndexControl)
	if err != nil {
		return err
	}
	if err = i.networks.place(pte, proto.IndexRead); err != nil {
		return err
	}
	if err = x.portal.enable(pte, &f.events, proto.IndexControl); err != nil {
		return err
	}
	x.regions.open(x, pte)
	e := nic.Entry{PtlTE: pte.Number(), ID: idControl, MatchID: nic.AnyID(), Put: true,
		NoUnlink: true}
	e.MatchBits, e.Ignore = proto.ControlEntry()
	if !x.portal.q.Append(&e) {
		return fmt.Errorf("cxi: the target queue is full: %w", hw.ErrNoResource)
	}
	room := nic.Entry{PtlTE: pte.Number(), ID: idControl, MatchID: nic.AnyID(), MatchBits: proto.RoomBits, Put: true,
		Silent: true, NoLink: true, NoUnlink: true}
	if !x.portal.q.Append(&room) {
		return fmt.Errorf("cxi: the target queue is full: %w", hw.ErrNoResource)
	}
	x.portal.q.Ring()
	code := uint32(0)
	err = f.events.await("append the entry for control messages", func(v nic.Event) bool {
		code = v.Code()
		return v.Type() == wire.EventLink
	}, &x.events)
	if err == nil && code != wire.RcOk {
		err = fmt.Errorf("cxi: no room for the entry for control messages (%s): %w", codeText(code),
			hw.ErrNoResource)
	}
	return err
}

// progress takes in control messages, and posts what was refused.
func (f *flow) progress() (n int) {
	for e := f.events.Peek(); e.There(); e = f.events.Peek() {
		switch {
		case e.Type() == wire.EventStateChange:
		case !e.IsLong() || e.Type() == wire.EventRendezvous:
			f.x.m.unknown(e)
		case e.BufferID() >= firstRegion:
			n += f.x.regions.take(e)
		case e.Type() == wire.EventPut && e.Code() == wire.RcOk:
			f.control(e)
			n++
		default:
			f.x.m.unknown(e)
		}
		f.events.Done(e)
	}
	if f.again != [flowCommands]bool{} && !time.Now().Before(f.againAt) {
		f.postAgain()
	}
	return n + f.x.soft.deliver()
}

// control takes in a control message, which any peer may send.
func (f *flow) control(e nic.Event) {
	from := f.x.m.sentBy(e)
	kind, drops, ok := proto.ControlOf(e.MatchBits())
	switch {
	case ok && kind == proto.ControlResume:
		f.x.m.txOf(from).resumed(from)
	case !ok || drops == 0 || !f.core.notify(from, drops):
		f.x.refuse("control message %#x from %#x", e.MatchBits(), uint64(from))
	default:
		f.enable()
	}
}

// changed takes in that the state of the list has changed, or was not changed.
func (f *flow) changed(e nic.Event) {
	f.done()
	reason, automatic := e.Automatic()
	switch {
	case e.Code() != wire.RcOk: // there are drops that no sender has reported yet
		if f.core.differs() || f.tooMany() {
			f.enable()
		}
	case e.State() == wire.PtlteStateDisabled:
		f.stopped(automatic, reason)
	case e.State() == wire.PtlteStateSoftwareManaged:
		f.managed(reason)
	case e.State() == wire.PtlteStateEnabled:
		f.resumed()
	}
}

// resumed takes in that messages are taken again, which their senders are to know.
func (f *flow) resumed() {
	var senders []hw.MatchAddress
	f.change(func(c *flowCore) { senders = c.resumed() })
	f.x.m.tx.resume(senders)
}

// managed takes in that the NIC leaves matching to software, and begins to take over what it keeps.
func (f *flow) managed(reason uint32) {
	begin := false
	f.change(func(c *flowCore) { begin = c.managed() })
	if begin {
		f.counts.reasons[reason%flowReasons].Add(1)
		f.begin()
	}
}

// saysSoftware is what the log says once.
const saysSoftware = "software matches messages from now on: the NIC has no room for that, or keeps too many of them"

// begin has messages be taken over.
func (f *flow) begin() {
	if f.core.software && !f.said {
		f.said = true
		f.x.m.i.cfg.Logf("cxi %s: %s", f.x.m.i.d.dev.Name, saysSoftware)
	}
	f.x.events.Return()
	f.flushed, f.removed = false, false
	f.again = [flowCommands]bool{} // of what went on before
	f.flush()
}

// stopped begins to take messages over.
func (f *flow) stopped(automatic bool, reason uint32) {
	begin := false
	f.change(func(c *flowCore) { begin = c.stopped(automatic, reason) })
	if !begin {
		return
	}
	if automatic {
		f.counts.reasons[reason%flowReasons].Add(1)
		f.x.m.i.logf("messages find no room (reason %d): senders wait", reason)
	} else {
		f.counts.software.Add(1)
		f.x.m.i.logf("unexpected messages are taken over for receives: senders wait")
	}
	f.begin()
}

// tooMany reports whether senders have reported more drops than there are: one of them is wrong, and the NIC is right.
// Where the driver does not say how many there are, the NIC is to take messages again after a while, which comes here.
func (f *flow) tooMany() bool {
	n, err := f.x.pte.Drops()
	if err != nil {
		f.x.m.i.logf("%v", err)
		f.later(flowEnable)
		return false
	}
	f.done()
	const sign = 1 << 23
	if drops := int64(n^sign) - sign; f.core.counted(drops) {
		f.x.refuse("senders have reported more drops than there are, %d", drops)
		return true
	}
	return false
}

// flush has a search come behind all appends.
func (f *flow) flush() {
	x := f.x
	e := nic.Entry{PtlTE: x.pte.Number(), ID: x.idOnload(), MatchBits: ^uint64(0), MatchID: nic.AnyID(), Once: true}
	x.lock.take()
	f.post(flowFlush, func(q *nic.Queue) bool { return q.Search(&e) })
	x.lock.give()
}

// take takes in an event of a search that takes messages over.
func (f *flow) take(e nic.Event) {
	f.done()
	switch {
	case appends(f.state()):
	case e.Type() == wire.EventPutOverflow && f.flushed:
		f.onload(e)
		f.removeMore()
	case e.Type() == wire.EventSearch && !f.flushed:
		f.flushed, f.recalled = true, 0
		f.recallMore()
	}
}

// remove takes over all unexpected messages. No append is under way, and the NIC takes no messages.
func (f *flow) remove() {
	f.again[flowRecall] = false
	var err error
	if f.offsets, err = f.x.pte.Offsets(); err != nil {
		f.x.m.i.logf("%v", err)
		f.later(flowRecall) // which comes here
		return
	}
	f.done()
	f.removing = 0
	f.removeMore()
}

// removeAtOnce is how many messages are taken over at a time: their events need room in a queue that may be full.
const removeAtOnce = 8

// removeMore takes over some more messages, and goes on when there are none.
func (f *flow) removeMore() {
	x := f.x
	if len(f.offsets) == 0 {
		f.removed, f.again[flowRemove] = true, false
		f.onloaded()
		return
	}
	e := nic.Entry{PtlTE: x.pte.Number(), ID: x.idOnload(), Ignore: ^uint64(0), MatchID: nic.AnyID(), Once: true}
	x.lock.take()
	remove := func(q *nic.Queue) bool { return q.Remove(&e) }
	for f.removing < min(removeAtOnce, len(f.offsets)) && f.post(flowRemove, remove) {
		f.removing++
	}
	x.lock.give()
}

// stop has the NIC stop if it keeps messages, which are needed, with leave for software to match from then on. The
// caller has the lock.
func (f *flow) stop(keeps, leave bool) {
	if f.core.stop(keeps, leave) {
		f.word.Store(uint32(f.core.state))
		f.disable()
	}
}

// disable has the NIC stop. The caller has the lock.
func (f *flow) disable() {
	f.post(flowDisable, func(q *nic.Queue) bool { return q.Disable(f.x.pte.Number()) })
}

// onload takes over one message.
func (f *flow) onload(e nic.Event) {
	if len(f.offsets) == 0 {
		return
	}
	s := &softMessage{ev: e.Keep(), source: f.offsets[0] + uint64(e.Length())}
	f.offsets = f.offsets[1:]
	f.removing--
	if e.Code() != wire.RcOk {
		return // it was not there
	}
	f.x.early.kept.Add(-1)
	f.counts.onloaded.Add(1)
	f.x.lock.take()
	f.x.soft.keep(s)
	f.x.lock.give()
	if e.Wanted() == 0 {
		s.ready = true
		return
	}
	y := &f.x.early
	key := y.key(e)
	if k, ok := y.here[key]; ok {
		delete(y.here, key)
		f.bytes(s, k.Event())
		return
	}
	f.missing++
	f.wanted[key] = s
}

// landed gives a message the event of its bytes, if it is one that was taken over.
func (f *flow) landed(key earlyKey, e nic.Event) bool {
	s := f.wanted[key]
	if s == nil {
		return false
	}
	delete(f.wanted, key)
	f.missing--
	f.bytes(s, e)
	f.onloaded()
	return true
}

// bytes copies a message's bytes, so that its buffer may be used again.
func (f *flow) bytes(s *softMessage, e nic.Event) {
	f.x.soft.store(s, f.x.early.bytes(e))
	s.ready = true
}

// onloaded goes on when all messages were taken over.
func (f *flow) onloaded() {
	if appends(f.state()) || !f.removed || f.missing > 0 {
		return
	}
	x := f.x
	x.early.list()
	x.lock.take()
	f.core.takenOver()
	f.word.Store(uint32(f.core.state))
	x.matchWaiting()
	claims := f.claims
	f.claims = nil
	for _, r := range claims {
		f.claim(r)
	}
	x.lock.give()
	x.requests.settle() // younger than what was taken over
	x.requests.list()
	f.enable()
}

// enable has the NIC take messages again, if it has dropped as many as senders have reported. Where the list is gone,
// they send what was dropped at once: that is refused, and ends.
func (f *flow) enable() {
	if f.x.down.Load() {
		f.x.m.tx.resume(f.core.released())
		return
	}
	drops, ok := f.core.ask()
	if !ok {
		return
	}
	f.again[flowEnable] = false // this is it
	if f.core.software {
		f.manage(drops)
		return
	}
	f.x.lock.take()
	f.post(flowEnable, func(q *nic.Queue) bool { return q.Resume(f.x.pte.Number(), uint32(drops)) })
	f.x.lock.give()
}

// part has senders that have notified go on, and reports whether there are any: as the lists are gone, what they send
// again is refused, and ends. Notices that come later are refused, too.
func (f *flow) part() bool {
	if f.events.eq == nil {
		return false
	}
	for e := f.events.Peek(); e.There(); e = f.events.Peek() {
		kind, drops, ok := proto.ControlOf(e.MatchBits())
		if e.Type() == wire.EventPut && e.Code() == wire.RcOk && e.BufferID() == idControl && ok &&
			kind == proto.ControlNotify {
			f.core.notify(f.x.m.sentBy(e), drops)
		}
		f.events.Done(e)
	}
	senders := f.core.released()
	f.x.m.tx.resume(senders)
	return len(senders) > 0
}

// manage does so where software matches: the driver answers at once.
func (f *flow) manage(drops int64) {
	for ok := true; ok; drops, ok = f.core.ask() {
		managed, err := f.x.pte.Manage(uint32(drops))
		if err != nil {
			f.x.m.i.logf("%v", err)
			f.later(flowEnable)
			return
		}
		f.done()
		switch {
		case managed:
			f.resumed()
			return
		case !f.core.differs() && !f.tooMany():
			return // there are drops that no sender has reported yet, or how many is not known
		}
	}
}

// setAside gives a message a name by which it is received. The caller has the lock.
func (f *flow) setAside(s *softMessage) hw.Claim {
	f.last++
	f.claimed[f.last] = s
	return f.last
}
