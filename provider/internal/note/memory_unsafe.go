package note

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// What the data plane has of notifications (hot.Notes): it sends those that nothing keeps waiting, and keeps those that
// come. Streams that find no entry here, because they go over a network or there are too many, have one of their
// own, which the data plane does not see.

// ringBytes is the size of the ring of notes that have arrived, bytes: more than the messages that an endpoint has
// credit for as a rule, and less than a processor's cache.
const ringBytes = 256 << 10

// memory is that of an endpoint's hot.Notes. Immutable from Open on.
type memory struct {
	block []byte // nil: there are none
	hot   *hot.Notes
	ins   []hot.NoteIn
	outs  []hot.NoteOut
}

// open maps the memory for so many peers of each direction.
func (m *memory) open(outCount, inCount int) error {
	const head = int(unsafe.Sizeof(hot.Notes{}))
	const in, out = int(unsafe.Sizeof(hot.NoteIn{})), int(unsafe.Sizeof(hot.NoteOut{}))
	b, err := mem.Map(mem.Round(head+ringBytes+inCount*in+outCount*out), mem.NoReserve)
	if err != nil {
		return err
	}
	m.block = b
	base := unsafe.Pointer(unsafe.SliceData(b))
	ins := unsafe.Add(base, head)
	outs := unsafe.Add(ins, inCount*in)
	m.hot, m.ins = (*hot.Notes)(base), unsafe.Slice((*hot.NoteIn)(ins), inCount)
	m.outs = unsafe.Slice((*hot.NoteOut)(outs), outCount)
	*m.hot = hot.Notes{
		Ins: uintptr(ins), Outs: uintptr(outs), Ring: uintptr(unsafe.Add(outs, outCount*out)), Bytes: ringBytes,
		InCount: uint32(inCount), OutCount: uint32(outCount),
	}
	return nil
}

func (m *memory) close() {
	if m.block != nil {
		_ = mem.Unmap(m.block)
		*m = memory{}
	}
}

// Fill is the address of what the data plane has of the notifications, 0: nothing. receives is the queue of the
// endpoint's receives, nil: none. Called once, before the first message.
func (s *Notes) Fill(receives *cq.Queue) uintptr {
	m := &s.memory
	if m.block == nil {
		return 0
	}
	if in := &s.In; in.Counter == nil {
		switch in.Queue {
		case nil:
			m.hot.Keeps = hot.NotesKept
		case receives:
			m.hot.Keeps = hot.NotesComplete
		}
	}
	return uintptr(unsafe.Pointer(m.hot))
}

// lockStream takes the lock of a stream, which posting threads have for the time of a message, and which may be taken
// from the processor meanwhile.
func lockStream(o *hot.NoteOut) {
	for n := 0; !atomic.CompareAndSwapUint32(&o.Lock, 0, 1); n++ {
		if n < 100 {
			runtime.Gosched()
		} else {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

func unlockStream(o *hot.NoteOut) { atomic.StoreUint32(&o.Lock, 0) }

// lineOf is the entry by which the data plane sends to a peer, nil: there is none.
func (m *memory) lineOf(p Peer) *hot.NoteOut {
	if i := int(p.Number()); i < len(m.outs) {
		return &m.outs[i]
	}
	return nil
}

// streamTo returns the entry of a new stream to a peer, with its lock.
func (o *Outbox) streamTo(p Peer, stream uint64) *hot.NoteOut {
	s := o.notes.memory.lineOf(p)
	if s == nil || s.Stream != 0 {
		s = &hot.NoteOut{}
	}
	lockStream(s)
	s.Open, s.Stream, s.Sent, s.Limit = 0, stream, 0, window
	o.name(s)
	return s
}

// name gives a stream the endpoint's name for itself. The caller has the stream's lock.
func (o *Outbox) name(s *hot.NoteOut) { s.AgentLen = uint32(copy(s.Agent[:], o.agentNow())) }

// endStream gives a stream's entry back.
func endStream(s *hot.NoteOut) {
	lockStream(s)
	s.Open, s.Slots, s.Stream = 0, 0, 0
	unlockStream(s)
}

// open lets the data plane send what is posted next, if there is a ring that it goes to. The caller has o.mu.
func (q *queue) open() {
	slots, open := q.peer.Ring()
	if !open {
		return
	}
	lockStream(q.line)
	q.line.Open, q.line.Starved, q.line.Slots = 1, 0, slots
	unlockStream(q.line)
}

// shut keeps the data plane from sending. The caller has o.mu.
func (q *queue) shut() {
	lockStream(q.line)
	q.line.Open = 0
	unlockStream(q.line)
}

// lineFor finds an entry for a stream of notifications that arrive from a source. The caller has b.mu, and the lease.
func (b *Inbox) lineFor(src hw.Source, stream uint64, name []byte) *hot.NoteIn {
	m := &b.notes.memory
	fresh := hot.NoteIn{Stream: stream, Limit: window, Due: window / 2}
	if int(src) >= len(m.ins) || m.ins[src].Stream != 0 || stream == 0 ||
		len(name) > hot.NoteNameBytes {
		return &fresh
	}
	line := &m.ins[src]
	b.leaseRing()
	fresh.Generation, fresh.NameLen = line.Generation, uint32(copy(fresh.Name[:], name))
	*line = fresh
	dataplane.ReturnNotes(m.hot)
	return line
}

// entry is the number of a stream's entry in the endpoint's table. False: it is not there.
func (m *memory) entry(line *hot.NoteIn) (source uint32, ok bool) {
	if len(m.ins) == 0 {
		return 0, false
	}
	at := uintptr(unsafe.Pointer(line)) - m.hot.Ins
	return uint32(at / unsafe.Sizeof(*line)), at < uintptr(len(m.ins))*unsafe.Sizeof(*line)
}

// intoRing puts a notification into the ring, behind those that the data plane has put there. False: it is to go to the
// list, because its stream has no entry, the ring is full, or others are in the list. The caller has b.mu and the
// lease.
func (b *Inbox) intoRing(n *unexpected) bool {
	m := &b.notes.memory
	source, ok := m.entry(n.in.line)
	if !ok || len(b.unexpected) != 0 {
		return false
	}
	h := hot.NoticeHead{
		Op: n.head.Op, Agent: n.head.Agent, Status: uint32(n.head.Status), Tag: n.head.Tag,
		Length: n.head.Length,
	}
	return dataplane.KeepNote(m.hot, n.in.line, &h, source, uint64(n.src), n.data)
}

// ownLine returns the entry of a stream that has ended, as its own.
func (b *Inbox) ownLine(line *hot.NoteIn) *hot.NoteIn {
	m := &b.notes.memory
	if _, ok := m.entry(line); !ok {
		return line
	}
	b.leaseRing()
	own := *line
	*line = hot.NoteIn{Generation: line.Generation + 1}
	dataplane.ReturnNotes(m.hot)
	return &own
}

// takenOf is dataplane.TakenOf of any stream. The caller has b.mu.
func (b *Inbox) takenOf(line *hot.NoteIn, cost uint64) bool {
	h := b.notes.memory.hot
	if h == nil {
		return dataplane.TakenOf(line, cost)
	}
	b.leaseRing()
	defer dataplane.ReturnNotes(h)
	return dataplane.TakenOf(line, cost)
}

// leaseRing gives the caller the right to take from the ring; a thread that has it copies a few, and gives it back.
func (b *Inbox) leaseRing() {
	for n := 0; !dataplane.LeaseNotes(b.notes.memory.hot); n++ {
		if n < 100 {
			runtime.Gosched()
		} else {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// takeRing takes from the ring as Take does. The caller has b.mu. all: nothing is left there.
func (b *Inbox) takeRing(most int, room func(i int, n *Note) bool) (taken int, all bool) {
	h := b.notes.memory.hot
	if h == nil {
		return 0, true
	}
	b.leaseRing()
	defer dataplane.ReturnNotes(h)
	for taken < most {
		r := dataplane.FirstNote(h)
		if r == nil {
			return taken, true
		}
		if !room(taken, noteOf(r)) {
			return taken, false
		}
		source := r.Source
		if dataplane.DropNote(h, r) {
			b.due(source)
		}
		taken++
	}
	return taken, dataplane.FirstNote(h) == nil
}

// noteOf copies a record.
func noteOf(r *hot.NoteRecord) *Note {
	name, rest := dataplane.NoteParts(r)
	all := slices.Clone(unsafe.Slice((*byte)(rest), r.Length))
	return &Note{
		Src: fi.Addr(r.Addr), Name: slices.Clone(unsafe.Slice((*byte)(name), r.NameLen)),
		Agent: string(all[:r.Agent]), Tag: r.Tag,
		Op: Op(r.Op), Err: fi.Errno(r.Status), Data: all[r.Agent:],
	}
}

// due has progress give a sender, by its number, more. The caller has b.mu.
func (b *Inbox) due(source uint32) {
	m := &b.notes.memory
	if int(source) >= len(m.ins) {
		return
	}
	if in := b.streams[m.ins[source].Stream]; in != nil && in.src == hw.Source(source) {
		b.owe(in)
	}
}

// Credit gives a sender, by its number as hot.NoteTake has it, more.
func (b *Inbox) Credit(source uint32) {
	b.mu.Lock()
	b.due(source)
	b.mu.Unlock()
	b.notes.ep.Serve()
}
