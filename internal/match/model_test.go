package match

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// The model keeps both queues as slices and searches them from the front.

type modelRecv struct {
	source      uint32
	tag, ignore uint64
	context     uint64
	serial      uint64 // names the receive; in Buf
	keep        bool
	r           *Recv
}

type modelMessage struct {
	source uint32
	tag    uint64
	serial uint64 // names the message; in Payload
	claim  uint64
	m      *Message
}

func matches(source uint32, tag, ignore uint64, from uint32, t uint64) bool {
	group := source&inGroup == inGroup && source>>GroupShift == from>>GroupShift
	return (source == AnySource || group || source == from) && (tag^t)&^ignore == 0
}

// player applies operations to an engine and to the model and compares what they do.
type player struct {
	t       testing.TB
	e       *Engine
	next    func(n int) int // the next choice, 0 to n-1
	sources int
	tags    int
	masks   []uint64
	serial  uint64
	posted  []modelRecv
	kept    []modelMessage
	claimed []modelMessage
	out     []*Recv    // handed out, to be released later
	outM    []*Message // likewise
	log     []string   // the last operations
	scarce  bool       // memory may not be had
}

// starved reports whether an operation may have failed for lack of memory, and checks that the engine says so.
func (p *player) starved() bool {
	err := p.e.Err()
	p.e.err = nil
	return p.scarce && errors.Is(err, unix.ENOMEM)
}

func (p *player) say(format string, args ...any) {
	if len(p.log) == 30 {
		p.log = append(p.log[:0], p.log[1:]...)
	}
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

func (p *player) fail(format string, args ...any) {
	p.t.Helper()
	for _, l := range p.log {
		p.t.Log(l)
	}
	p.t.Fatalf(format, args...)
}

// source spreads sources over three groups.
func (p *player) source() uint32 {
	n := uint32(p.next(p.sources))
	return n | n%3<<GroupShift
}

// tag spreads its bits over the word, so that masks of high and low bits both matter.
func (p *player) tag() uint64 {
	n := uint64(p.next(p.tags))
	return n&3 | n>>2&3<<30 | n>>4&15<<60 | n>>8<<8
}

func (p *player) wanted() (source uint32, tag, ignore uint64) {
	source = p.source()
	switch p.next(8) {
	case 0, 1:
		source = AnySource
	case 2:
		source = Group(uint8(p.next(3)))
	}
	return source, p.tag(), p.masks[p.next(len(p.masks))]
}

// findKept returns the place of the message that a receive takes, or -1.
func (p *player) findKept(source uint32, tag, ignore uint64) int {
	for i, m := range p.kept {
		if matches(source, tag, ignore, m.source, m.tag) {
			return i
		}
	}
	return -1
}

func cut[T any](s []T, i int) []T { return append(s[:i:i], s[i+1:]...) }

func (p *player) checkMessage(m *Message, want modelMessage) {
	p.t.Helper()
	if m != want.m || m.Payload != want.serial || m.Len != ^want.serial || m.Data != want.serial*3 ||
		m.Request != want.serial*5 || m.Flags != want.serial*7 || m.Source() != want.source || m.Tag() != want.tag {
		p.fail("message %+v, want %+v", m, want)
	}
}

func (p *player) checkRecv(r *Recv, want modelRecv) {
	p.t.Helper()
	if r != want.r || r.Buf != want.serial || r.Context != want.context || r.Len != ^want.serial ||
		r.Flags != want.serial*3 || r.IOV != want.serial*5 || r.User[5] != want.serial*7 ||
		r.Source() != want.source || r.Tag() != want.tag || r.Kept() != want.keep {
		p.fail("receive %+v, want %+v", r, want)
	}
}

// tookMessage checks a message that was handed out against the model's and keeps it for release.
func (p *player) tookMessage(m *Message, i int) {
	p.t.Helper()
	p.checkMessage(m, p.kept[i])
	p.kept = cut(p.kept, i)
	p.outM = append(p.outM, m)
}

func (p *player) post() {
	source, tag, ignore := p.wanted()
	i := p.findKept(source, tag, ignore)
	p.say("post source %#x tag %#x ignore %#x", source, tag, ignore)
	r, m := p.e.Post(source, tag, ignore)
	if i >= 0 {
		if r != nil || m == nil {
			p.fail("post: receive %v, message %v; want kept message %+v", r, m, p.kept[i])
		}
		p.tookMessage(m, i)
		return
	}
	if r == nil && m == nil && p.starved() {
		return
	}
	if r == nil || m != nil {
		p.fail("post: receive %v, message %v; want it queued", r, m)
	}
	p.queued(r, modelRecv{source: source, tag: tag, ignore: ignore})
}

// queued fills in a receive that was just posted.
func (p *player) queued(r *Recv, w modelRecv) {
	p.serial++
	w.serial, w.context, w.r = p.serial, uint64(p.next(8)), r
	w.keep = p.next(8) == 0
	r.SetKeep(w.keep)
	r.Buf, r.Context, r.Len, r.Flags, r.IOV = w.serial, w.context, ^w.serial, w.serial*3, w.serial*5
	for i := range r.User {
		r.User[i] = w.serial * 7
	}
	p.posted = append(p.posted, w)
}

// takeOrQueue is post by its parts.
func (p *player) takeOrQueue() {
	source, tag, ignore := p.wanted()
	p.say("take source %#x tag %#x ignore %#x", source, tag, ignore)
	i := p.findKept(source, tag, ignore)
	m := p.e.Take(source, tag, ignore)
	switch {
	case i >= 0 && m != nil:
		p.tookMessage(m, i)
	case i < 0 && m == nil:
		r := p.e.Queue(source, tag, ignore)
		if r == nil && p.starved() {
			return
		}
		if r == nil {
			p.fail("queue: %v", p.e.Err())
		}
		p.queued(r, modelRecv{source: source, tag: tag, ignore: ignore})
	default:
		p.fail("take: %v, want place %d", m, i)
	}
}

func (p *player) arrive() {
	source, tag := p.source(), p.tag()
	p.say("arrive source %#x tag %#x", source, tag)
	r := p.e.Arrive(source, tag)
	for i, w := range p.posted {
		if !matches(w.source, w.tag, w.ignore, source, tag) {
			continue
		}
		if r == nil {
			p.fail("arrive: nothing, want %+v", w)
		}
		p.checkRecv(r, w)
		if r.Posted() != w.keep {
			p.fail("arrive: posted %v, keep %v", r.Posted(), w.keep)
		}
		if !w.keep {
			p.posted = cut(p.posted, i)
			p.out = append(p.out, r)
		}
		return
	}
	if r != nil {
		p.fail("arrive: %+v, want nothing", r)
	}
	m := p.e.Hold(source, tag)
	if m == nil && p.starved() {
		return
	}
	if m == nil {
		p.fail("hold: %v", p.e.Err())
	}
	p.serial++
	w := modelMessage{source: source, tag: tag, serial: p.serial, m: m}
	m.Payload, m.Len, m.Data, m.Request, m.Flags = w.serial, ^w.serial, w.serial*3, w.serial*5, w.serial*7
	p.kept = append(p.kept, w)
}

func (p *player) peek() {
	source, tag, ignore := p.wanted()
	context := uint64(p.next(4))
	claim := p.next(2) == 0
	p.say("peek source %#x tag %#x ignore %#x claim %v", source, tag, ignore, claim)
	i := p.findKept(source, tag, ignore)
	m := p.e.Peek(source, tag, ignore)
	if (m != nil) != (i >= 0) {
		p.fail("peek: %v, want place %d", m, i)
	}
	if m == nil {
		return
	}
	p.checkMessage(m, p.kept[i])
	if !claim {
		return
	}
	w := p.kept[i]
	w.claim = context<<32 | context
	if !p.e.Claim(m, w.claim) || !m.Claimed() || p.e.Claim(m, w.claim) {
		p.fail("claim of %+v", m)
	}
	p.kept = cut(p.kept, i)
	p.claimed = append(p.claimed, w)
}

func (p *player) takeClaimed() {
	context := uint64(p.next(4))
	context = context<<32 | context
	p.say("take claimed %#x", context)
	for i, w := range p.claimed {
		if w.claim != context {
			continue
		}
		if m := p.e.FindClaimed(context); m != w.m {
			p.fail("find claimed: %+v, want %+v", m, w)
		}
		m := p.e.TakeClaimed(context)
		p.checkMessage(m, w)
		p.claimed = cut(p.claimed, i)
		p.outM = append(p.outM, m)
		return
	}
	if m := p.e.TakeClaimed(context); m != nil {
		p.fail("take claimed: %+v, want nothing", m)
	}
}

func (p *player) cancel() {
	context := uint64(p.next(8))
	p.say("cancel %d", context)
	r := p.e.Cancel(context)
	for i, w := range p.posted {
		if w.context == context {
			if r == nil {
				p.fail("cancel: nothing, want %+v", w)
			}
			p.checkRecv(r, w)
			p.posted = cut(p.posted, i)
			p.out = append(p.out, r)
			return
		}
	}
	if r != nil {
		p.fail("cancel: %+v, want nothing", r)
	}
}

// remove takes any receive out, as the owner of a kept one does.
func (p *player) remove() {
	if len(p.posted) == 0 {
		return
	}
	i := p.next(len(p.posted))
	w := p.posted[i]
	p.say("remove %+v", w)
	if !p.e.Remove(w.r) || p.e.Remove(w.r) {
		p.fail("remove of %+v", w)
	}
	p.checkRecv(w.r, w)
	p.posted = cut(p.posted, i)
	p.out = append(p.out, w.r)
}

// discard removes and releases any kept or claimed message.
func (p *player) discard() {
	queue := &p.kept
	if p.next(4) == 0 {
		queue = &p.claimed
	}
	if len(*queue) == 0 {
		return
	}
	i := p.next(len(*queue))
	w := (*queue)[i]
	p.say("discard %+v", w)
	p.checkMessage(w.m, w)
	p.e.Discard(w.m)
	*queue = cut(*queue, i)
}

// die removes everything that names a source.
func (p *player) die() {
	source := p.source()
	p.say("source %d dies", source)
	for r := range p.e.Recvs() {
		if r.Source() == source {
			p.e.Remove(r)
			p.e.Release(r)
		}
	}
	for m := range p.e.Messages() {
		if m.Source() == source {
			p.e.Discard(m)
		}
	}
	var posted []modelRecv
	for _, w := range p.posted {
		if w.source != source {
			posted = append(posted, w)
		}
	}
	p.posted = posted
	p.kept = others(p.kept, source)
	p.claimed = others(p.claimed, source)
}

// rename has the receives from one source name another, of which no message is
// kept.
func (p *player) rename() {
	from, to := p.source(), p.source()
	if len(others(p.kept, to)) != len(p.kept) {
		return
	}
	p.say("source %d becomes %d", from, to)
	p.e.Rename(from, to)
	for i := range p.posted {
		if p.posted[i].source == from {
			p.posted[i].source = to
		}
	}
}

func others(all []modelMessage, source uint32) []modelMessage {
	var rest []modelMessage
	for _, w := range all {
		if w.source != source {
			rest = append(rest, w)
		}
	}
	return rest
}

// release gives back all that was handed out.
func (p *player) release() {
	for _, r := range p.out {
		p.e.Release(r)
	}
	for _, m := range p.outM {
		p.e.ReleaseMessage(m)
	}
	p.out, p.outM = p.out[:0], p.outM[:0]
}

// compare checks that both hold the same, in the same order.
func (p *player) compare() {
	want := Counts{len(p.posted), len(p.kept), len(p.claimed), len(p.out) + len(p.outM)}
	if got := p.e.Counts(); got != want {
		p.fail("counts %+v, want %+v", got, want)
	}
	i := 0
	for r := range p.e.Recvs() {
		p.checkRecv(r, p.posted[i])
		i++
	}
	if i != len(p.posted) {
		p.fail("walked %d receives, want %d", i, len(p.posted))
	}
	all := append(p.kept[:len(p.kept):len(p.kept)], p.claimed...)
	i = 0
	for m := range p.e.Messages() {
		p.checkMessage(m, all[i])
		i++
	}
	if i != len(all) {
		p.fail("walked %d messages, want %d", i, len(all))
	}
}

// step does one operation.
func (p *player) step() {
	switch n := p.next(64); {
	case n < 16:
		p.post()
	case n < 20:
		p.takeOrQueue()
	case n < 44:
		p.arrive()
	case n < 49:
		p.peek()
	case n < 52:
		p.takeClaimed()
	case n < 54:
		p.cancel()
	case n < 56:
		p.remove()
	case n < 58:
		p.discard()
	case n < 60:
		p.release()
	case n < 62:
		p.compare()
	case n == 62 && p.next(4) == 0:
		p.die()
	case n == 62 && p.next(3) == 0:
		p.rename()
	case n == 63 && p.next(4) == 0:
		if err := p.e.Trim(); err != nil {
			p.fail("trim: %v", err)
		}
	}
}

// complete releases everything and checks that nothing is left.
func (p *player) complete() {
	p.compare()
	p.release()
	for r := range p.e.Recvs() {
		p.e.Remove(r)
		p.e.Release(r)
	}
	for m := range p.e.Messages() {
		p.e.Discard(m)
	}
	if got := p.e.Counts(); got != (Counts{}) {
		p.fail("counts %+v after everything was removed", got)
	}
	for c := range p.e.classes {
		if cl := &p.e.classes[c]; cl.recvs.used != 0 || cl.msgs.used != 0 {
			p.fail("class %d: %d keys of receives, %d of messages left", c, cl.recvs.used, cl.msgs.used)
		}
		p.checkEmpty(&p.e.classes[c].recvs)
		p.checkEmpty(&p.e.classes[c].msgs)
	}
	if err := p.e.Close(); err != nil || p.e.Mapped() != 0 {
		p.fail("close: %v, %d bytes mapped", err, p.e.Mapped())
	}
}

// checkEmpty checks that no group of an empty table has a tag or a count left.
func (p *player) checkEmpty(t *table) {
	if t.mask == 0 {
		return
	}
	for i, g := range t.groups.Slice() {
		if g.tags != 0 && g.tags != 255<<56 {
			p.fail("group %d of an empty table has tags %#x", i, g.tags)
		}
	}
}
