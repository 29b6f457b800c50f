package dataplane

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

const (
	noteRing   = 4096
	noteStream = 99
	noteTag    = 1234
)

// notes are a loop with a stream of notifications to itself.
type notes struct {
	*loop
	hot *hot.Notes
	in  *hot.NoteIn
	out *hot.NoteOut
}

func newNotes(t testing.TB) *notes {
	n := &notes{loop: newLoop(t)}
	n.hot = (*hot.Notes)(n.memory(int(unsafe.Sizeof(hot.Notes{}))))
	n.in = (*hot.NoteIn)(n.memory(int(unsafe.Sizeof(hot.NoteIn{}))))
	n.out = (*hot.NoteOut)(n.memory(int(unsafe.Sizeof(hot.NoteOut{}))))
	*n.hot = hot.Notes{
		Ins: uintptr(unsafe.Pointer(n.in)), Outs: uintptr(unsafe.Pointer(n.out)),
		Ring: uintptr(n.memory(noteRing)), Bytes: noteRing, InCount: 1, OutCount: 1, Keeps: 1,
	}
	*n.in = hot.NoteIn{Stream: noteStream, Limit: 1 << 20, Due: 1 << 20, NameLen: 5}
	copy(n.in.Name[:], "names")
	*n.out = hot.NoteOut{Open: 1, Slots: n.peer.Slots, Stream: noteStream, Limit: 1 << 20}
	n.out.AgentLen = uint32(copy(n.out.Agent[:], "agent"))
	n.ep.Notes = uintptr(unsafe.Pointer(n.hot))
	n.peer.Link, n.peer.PID = 1, 1
	n.ep.CopyMax, n.ep.CopiedMax = 1<<20, ^uint64(0)
	return n
}

// note is a post of a notification alone.
func (n *notes) note(b []byte) hot.Post {
	p := n.message(nil, hot.PostAlone, 0, 5)
	p.Buf, p.Note, p.NoteLen, p.NoteTag = 0, at(b), uint64(len(b)), noteTag
	return p
}

// got is a notification as the application has it.
type got struct {
	hot.NoteEntry
	data []byte
}

// taking is a call that takes at most so many, with room for so many bytes.
func (n *notes) taking(most, room int) hot.NoteTake {
	entries := unsafe.Slice((*hot.NoteEntry)(n.memory(max(most, 1)*int(unsafe.Sizeof(hot.NoteEntry{})))), most)
	for i := range entries {
		entries[i].Data, entries[i].Size = at(n.bytes(room)), uint64(room)
	}
	return hot.NoteTake{
		EP: uintptr(unsafe.Pointer(n.ep)), Entries: uintptr(unsafe.Pointer(unsafe.SliceData(entries))),
		Left: uint64(most),
	}
}

// take takes at most so many, with room for so many bytes.
func (n *notes) take(most, room int) (list []got, code uintptr) {
	list, code, _ = n.takeFor(most, room)
	return list, code
}

// takeFor is take, and what the call returns. Where it is to make progress it finds nothing to do, and where the code
// is hot.TakeCredit the sender gets none.
func (n *notes) takeFor(most, room int) (list []got, code uintptr, result int64) {
	take := n.taking(most, room)
	entries := unsafe.Slice((*hot.NoteEntry)(pointer(take.Entries)), most)
	if code = takeNotes(&take); code == hot.TakePoll {
		code = takeNotes(&take)
	}
	for _, e := range entries[:take.Taken] {
		list = append(list, got{e, unsafe.Slice((*byte)(pointer(e.Data)), e.Len)})
	}
	return list, code, take.Result
}

// TestNoteArrives sends notifications of all lengths that one message takes, each of which is given out once, as it was
// posted; the ring is gone round many times.
func TestNoteArrives(t *testing.T) {
	n := newNotes(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		b := n.bytes(rnd.IntN(900))
		for k := range b {
			b[k] = byte(rnd.Uint32())
		}
		p := n.note(b)
		if code := postNote(&p); code != hot.PostDone {
			t.Fatalf("%d bytes: code %d", len(b), code)
		}
		if e, ok := n.completed(); !ok || e.Context != 5 || e.Flags != fi.Send|fi.Msg {
			t.Fatalf("completed with %+v, %v", e, ok)
		}
		if codes := n.serve(); codes[len(codes)-1] != hot.DeliveryDone {
			t.Fatalf("%d bytes: codes %v", len(b), codes)
		}
		list, code := n.take(2, 900)
		if code != hot.TakeDone || len(list) != 1 {
			t.Fatalf("note %d: %d of them, code %d", i, len(list), code)
		}
		e := &list[0]
		if !bytes.Equal(e.data, b) || e.Tag != noteTag || e.Src != senderAddr || e.Op != hot.NoticeAlone ||
			e.Err != 0 ||
			string(e.Name[:e.NameLen]) != "names" || string(e.Agent[:6]) != "agent\x00" {
			t.Fatalf("note %d: %+v", i, e.NoteEntry)
		}
	}
	if n.in.Taken != n.in.Arrived || n.in.Arrived != n.out.Sent || n.hot.Head != n.hot.Tail {
		t.Errorf("sent %d, arrived %d, taken %d", n.out.Sent, n.in.Arrived, n.in.Taken)
	}
}

// TestNoteWithData writes with a notification, in one message and behind a copy.
func TestNoteWithData(t *testing.T) {
	n := newNotes(t)
	note := n.bytes(20)
	for _, c := range []struct {
		bytes int
		kind  uint32
		code  uintptr
		op    uint32
	}{
		{8, 0, hot.PostDone, hot.NoticeWrite}, {40, 0, hot.PostDone, hot.NoticeWrite},
		{900, 0, hot.PostDone, hot.NoticeWrite},
		{2000, 0, hot.PostCopy, hot.NoticeWrite}, {8, hot.PostRead, hot.PostCopy, hot.NoticeRead},
	} {
		buf := n.bytes(c.bytes)
		for i := range buf {
			buf[i] = byte(c.bytes + i)
		}
		p := n.message(buf, c.kind, 64, 9)
		p.Key, p.Note, p.NoteLen = regionKey, at(note), uint64(len(note))
		code := postNote(&p)
		if code != c.code {
			t.Fatalf("%+v: code %d", c, code)
		}
		if code == hot.PostCopy {
			copy(n.region[64:], buf)
			if list, _ := n.take(1, 100); len(list) != 0 || n.out.Sent != n.in.Arrived {
				t.Fatalf("%+v: the notification came before the copy", c)
			}
			if code := postNote(&p); code != hot.PostDone {
				t.Fatalf("%+v: code %d behind the copy", c, code)
			}
		}
		want := fi.RMA | fi.Write
		if c.kind != 0 {
			want = fi.RMA | fi.Read
		}
		if e, ok := n.completed(); !ok || e.Context != 9 || e.Flags != want {
			t.Fatalf("%+v: completed with %+v, %v", c, e, ok)
		}
		n.serve()
		list, _ := n.take(1, 100)
		if len(list) != 1 || list[0].Op != c.op || !bytes.Equal(list[0].data, note) ||
			!bytes.Equal(n.region[64:64+c.bytes], buf) {
			t.Fatalf("%+v: got %d", c, len(list))
		}
	}
}

// TestNoteIsTheRuntimes has the runtime post what is not for the data plane, and finds that nothing has happened.
func TestNoteIsTheRuntimes(t *testing.T) {
	note := []byte("a notification")
	for name, c := range map[string]struct {
		change func(n *notes, p *hot.Post)
		code   uintptr
	}{
		"others wait":        {func(n *notes, p *hot.Post) { n.out.Open = 0 }, hot.PostGo},
		"others are added":   {func(n *notes, p *hot.Post) { n.out.Waiting = 1 }, hot.PostGo},
		"another ring":       {func(n *notes, p *hot.Post) { n.out.Slots += 64 }, hot.PostGo},
		"no stream":          {func(n *notes, p *hot.Post) { n.peer.Link = 0 }, hot.PostGo},
		"too many peers":     {func(n *notes, p *hot.Post) { n.peer.Link = 2 }, hot.PostGo},
		"no notes":           {func(n *notes, p *hot.Post) { n.ep.Notes = 0 }, hot.PostGo},
		"to be acknowledged": {func(n *notes, p *hot.Post) { p.Flags = fi.DeliveryComplete }, hot.PostGo},
		"too long":           {func(n *notes, p *hot.Post) { p.NoteLen = bounceBytes }, hot.PostGo},
		"another thread":     {func(n *notes, p *hot.Post) { n.out.Lock = 1 }, hot.PostAgain},
		"no credit, no time": {func(n *notes, p *hot.Post) { n.out.Limit = 10 }, hot.PostTime},
		"no credit":          {func(n *notes, p *hot.Post) { n.out.Limit, p.Now = 10, 1000 }, hot.PostAgain},
		"no credit for long": {func(n *notes, p *hot.Post) {
			n.out.Limit, n.out.Starved, p.Now = 10, 1000,
				1001+hot.StarvedMillis
		}, hot.PostGo},
		"a key that is gone": {func(n *notes, p *hot.Post) { p.Kind, p.Buf, p.Len, p.Key = 0, p.Note, 8, regionKey+1 },
			hot.PostGo},
		"beyond the region": {func(n *notes, p *hot.Post) {
			p.Kind, p.Buf, p.Len, p.Key, p.Header = 0, p.Note, 8, regionKey, regionLen-7
		}, hot.PostGo},
		"none of a null note": {func(n *notes, p *hot.Post) { p.Note = 0 }, hot.PostGo},
	} {
		n := newNotes(t)
		p := n.note(append(n.bytes(len(note))[:0], note...))
		c.change(n, &p)
		locked := n.out.Lock
		if code := postNote(&p); code != c.code {
			t.Errorf("%s: code %d, want %d", name, code, c.code)
		}
		if _, ok := n.completed(); ok || n.out.Sent != 0 || n.out.Lock != locked {
			t.Errorf("%s: something has happened", name)
		}
	}
}

// TestNoteIsChecked leaves what a sender may not write to the runtime.
func TestNoteIsChecked(t *testing.T) {
	for name, change := range map[string]func(n *notes, h *hot.NoticeHead){
		"another stream":      func(n *notes, h *hot.NoticeHead) { n.in.Stream++ },
		"no stream":           func(n *notes, h *hot.NoticeHead) { n.in.Stream = 0 },
		"a gap":               func(n *notes, h *hot.NoticeHead) { h.Start++ },
		"beyond its credit":   func(n *notes, h *hot.NoticeHead) { n.in.Limit = 10 },
		"part of it":          func(n *notes, h *hot.NoticeHead) { h.Length++ },
		"less than it":        func(n *notes, h *hot.NoticeHead) { h.Length-- },
		"the end of it":       func(n *notes, h *hot.NoticeHead) { h.Offset = 1 },
		"an agent's name":     func(n *notes, h *hot.NoticeHead) { h.Agent = 200 },
		"to be acknowledged":  func(n *notes, h *hot.NoticeHead) { h.Ack = 1 },
		"an operation":        func(n *notes, h *hot.NoticeHead) { h.Op = 3 },
		"an error":            func(n *notes, h *hot.NoticeHead) { h.Status = 1024 },
		"credit":              func(n *notes, h *hot.NoticeHead) { h.Kind = 2 },
		"data that is not":    func(n *notes, h *hot.NoticeHead) { h.Kind = hot.NoticeMove },
		"the runtime's turn":  func(n *notes, h *hot.NoticeHead) { n.hot.Unexpected = 1 },
		"queues and counters": func(n *notes, h *hot.NoticeHead) { n.hot.Keeps = 0 },
		"a full ring":         func(n *notes, h *hot.NoticeHead) { n.hot.Tail = noteRing - 8 },
	} {
		n := newNotes(t)
		p := n.note(n.bytes(10))
		if code := postNote(&p); code != hot.PostDone {
			t.Fatalf("%s: code %d", name, code)
		}
		slot := (*hot.Slot)(pointer(n.ep.Inbound[0].Ring.Slots))
		change(n, (*hot.NoticeHead)(unsafe.Pointer(&slot.Body)))
		tail := n.hot.Tail
		if codes := n.serve(); codes[len(codes)-1] != hot.DeliveryGo || n.hot.Tail != tail || n.in.Arrived != 0 {
			t.Errorf("%s: codes %v", name, codes)
		}
	}
}

// TestNoteShortIsChecked takes in a later notification of a stream, of which the short head and 32 bytes are in one
// cache line, and leaves to the runtime what a sender may not write there.
func TestNoteShortIsChecked(t *testing.T) {
	for name, change := range map[string]func(n *notes, s *hot.Slot, h *hot.NoticeShort){
		"":               func(*notes, *hot.Slot, *hot.NoticeShort) {},
		"another stream": func(n *notes, s *hot.Slot, h *hot.NoticeShort) { n.in.Stream++ },
		"no stream": func(n *notes, s *hot.Slot, h *hot.NoticeShort) {
			n.in.Stream, h.Mark = 0, uint32(n.in.Arrived)
		},
		"a gap":              func(n *notes, s *hot.Slot, h *hot.NoticeShort) { h.Mark++ },
		"beyond its credit":  func(n *notes, s *hot.Slot, h *hot.NoticeShort) { n.in.Limit = n.in.Arrived + 10 },
		"an agent's name":    func(n *notes, s *hot.Slot, h *hot.NoticeShort) { h.Agent = hot.AgentLongest + 1 },
		"less than the name": func(n *notes, s *hot.Slot, h *hot.NoticeShort) { s.Length = 3 },
		"more than the slot": func(n *notes, s *hot.Slot, h *hot.NoticeShort) { s.Length = hot.SlotBody },
		"an operation":       func(n *notes, s *hot.Slot, h *hot.NoticeShort) { h.Op = 3 },
		"what is 0":          func(n *notes, s *hot.Slot, h *hot.NoticeShort) { h.Rest = 1 },
		"another kind":       func(n *notes, s *hot.Slot, h *hot.NoticeShort) { h.Kind = hot.NoticeData },
		"another head":       func(n *notes, s *hot.Slot, h *hot.NoticeShort) { s.Head = 32 },
	} {
		n := newNotes(t)
		second := (*hot.Slot)(pointer(n.ep.Inbound[0].Ring.Slots + hot.SlotBytes))
		for i := range second.Body {
			second.Body[i] = 0xff // what was there before
		}
		for range 2 {
			p := n.note(n.bytes(32 - len("agent")))
			if code := postNote(&p); code != hot.PostDone {
				t.Fatalf("%s: code %d", name, code)
			}
		}
		d := hot.Delivery{EP: uintptr(unsafe.Pointer(n.ep)), Budget: 2}
		if !deliverOne(&d, n.loop) {
			t.Fatalf("%s: the first is not taken in", name)
		}
		h := (*hot.NoticeShort)(unsafe.Pointer(&second.Body))
		if h.Kind != hot.NoticeBrief || int(second.Head)+int(second.Length) != 40 {
			t.Fatalf("kind %d, %d bytes behind a head of %d", h.Kind, second.Length, second.Head)
		}
		change(n, second, h)
		arrived := n.in.Arrived
		codes := n.serve()
		if left := codes[len(codes)-1] == hot.DeliveryGo; left == (name == "") || left != (n.in.Arrived == arrived) {
			t.Errorf("%s: codes %v", name, codes)
		}
	}
}

// TestNoteCompletes writes a completion for a notification to the queue of receives, if it completes there, and leaves
// it to the runtime while that is full.
func TestNoteCompletes(t *testing.T) {
	n := newNotes(t)
	n.hot.Keeps = hot.NotesComplete
	p := n.note([]byte("a notification"))
	if code := postNote(&p); code != hot.PostDone {
		t.Fatalf("code %d", code)
	}
	q := (*hot.CQ)(pointer(n.ep.RxCQ))
	q.Overflow = 1
	if codes := n.serve(); codes[len(codes)-1] != hot.DeliveryGo || n.hot.Tail != 0 {
		t.Fatalf("a full queue: codes %v", codes)
	}
	q.Overflow = 0
	for range 2 { // the sender's own completion, and the receiver's, in one queue or two
		n.serve()
	}
	if list, _ := n.take(1, 99); len(list) != 1 {
		t.Fatalf("%d notifications", len(list))
	}
}

// TestNoteTaken gives a notification that does not fit its entry to a later call, says when a sender is to be given
// more, and when another thread takes.
func TestNoteTaken(t *testing.T) {
	n := newNotes(t)
	for i := range 3 {
		p := n.note([]byte(fmt.Sprintf("%0*d", 10*(i+1), i)))
		if code := postNote(&p); code != hot.PostDone {
			t.Fatalf("code %d", code)
		}
	}
	n.serve()
	for _, c := range []struct {
		name       string
		change     func()
		most, room int
		code       uintptr
		result     int64
		taken      int
	}{
		{"too small", func() {}, 1, 9, hot.TakeDone, -int64(fi.ETOOSMALL), 0},
		{"no entry", func() {}, 0, 0, hot.TakeDone, 0, 0},
		{"the second too small", func() {}, 3, 19, hot.TakeDone, 1, 1},
		{"another thread takes", func() { n.hot.Taking = 1 }, 1, 99, hot.TakeGo, 0, 0},
		{"credit", func() { n.hot.Taking, n.in.Due = 0, 290 }, 2, 99, hot.TakeCredit, 0, 1},
		{"others wait", func() { n.in.Due, n.hot.Asked = 1<<20, 1 }, 2, 99, hot.TakeCredit, 0, 1},
		{"nothing", func() {}, 1, 99, hot.TakeDone, 0, 0},
		{"the runtime has some", func() { n.hot.Unexpected = 1 }, 1, 99, hot.TakeGo, 0, 0},
		{"no notes", func() { n.ep.Notes = 0 }, 1, 99, hot.TakeGo, 0, 0},
	} {
		c.change()
		list, code, result := n.takeFor(c.most, c.room)
		if code != c.code || result != c.result || len(list) != c.taken {
			t.Errorf("%s: code %d, result %d, %d taken", c.name, code, result, len(list))
		}
	}
}

// TestNoteTakenBehindProgress makes progress once where there is none to take, takes what that brings, and returns
// what it has where the sender got more credit and another thread takes meanwhile.
func TestNoteTakenBehindProgress(t *testing.T) {
	n := newNotes(t)
	for range 2 {
		p := n.note([]byte("a notification"))
		if code := postNote(&p); code != hot.PostDone {
			t.Fatalf("code %d", code)
		}
	}
	take := n.taking(3, 99)
	if code := takeNotes(&take); code != hot.TakePoll {
		t.Fatalf("code %d", code)
	}
	n.serve()
	take.Found, n.in.Due = 1, 0
	if code := takeNotes(&take); code != hot.TakeCredit || take.Taken != 1 {
		t.Fatalf("code %d, %d taken", code, take.Taken)
	}
	n.hot.Taking = 1
	if code := takeNotes(&take); code != hot.TakeDone || take.Result != 1 {
		t.Errorf("another thread takes the rest: code %d, result %d", code, take.Result)
	}
	n.hot.Taking, n.in.Due = 0, 1<<20
	if list, code, result := n.takeFor(3, 99); code != hot.TakeDone || result != 1 || len(list) != 1 {
		t.Errorf("the rest: code %d, result %d", code, result)
	}
	empty := n.taking(1, 99)
	for _, want := range []uintptr{hot.TakePoll, hot.TakeDone} {
		if code := takeNotes(&empty); code != want || empty.Result != 0 {
			t.Errorf("code %d, want %d, result %d", code, want, empty.Result)
		}
		empty.Found = 1
	}
}

// TestNoteEntriesChecked refuses entries of which one, the last, has no memory for its bytes, before anything is taken.
func TestNoteEntriesChecked(t *testing.T) {
	n := newNotes(t)
	p := n.note([]byte("a notification"))
	if code := postNote(&p); code != hot.PostDone {
		t.Fatalf("code %d", code)
	}
	n.serve()
	take := n.taking(2, 99)
	last := (*hot.NoteEntry)(pointer(take.Entries + unsafe.Sizeof(hot.NoteEntry{})))
	last.Data = 0
	if code := takeNotes(&take); code != hot.TakeDone || take.Result != -int64(fi.EINVAL) || take.Taken != 0 {
		t.Errorf("code %d, result %d, %d taken", code, take.Result, take.Taken)
	}
	take = n.taking(2, 99)
	last = (*hot.NoteEntry)(pointer(take.Entries + unsafe.Sizeof(hot.NoteEntry{})))
	last.Data, last.Size = 0, 0 // none are to go there
	if code := takeNotes(&take); code != hot.TakeDone || take.Result != 1 {
		t.Errorf("code %d, result %d", code, take.Result)
	}
}
