package nic

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// ring is the memory of a command queue with its launch page.
type ring struct {
	words  []uint64
	launch [1]uint64
	q      Queue
}

func newRing(halves uint32) *ring {
	r := &ring{words: make([]uint64, halves*4, halves*4+32)} // a pointer to the longest command stays in it
	r.words[0] = firstHalf / 2
	r.q.Init(unsafe.Pointer(&r.words[0]), unsafe.Pointer(&r.launch[0]), halves)
	return r
}

// bytes are n bytes from a half slot on.
func (r *ring) bytes(half uint32, n int) string {
	return hex.EncodeToString(unsafe.Slice((*byte)(unsafe.Pointer(&r.words[half*4])), n))
}

// read has the NIC read everything.
func (r *ring) read() { r.words[0] = r.launch[0] }

// want compares a command with bytes written by hand from the description of the formats, spaces left out.
func want(t *testing.T, what, got, text string) {
	t.Helper()
	if text = strings.ReplaceAll(text, " ", ""); got != text {
		t.Errorf("%s:\n got %s\nwant %s", what, got, text)
	}
}

// TestCommands compares each command with its bytes, written by hand.
func TestCommands(t *testing.T) {
	to := Address{NID: 0x12345, PID: 0x67, Index: 41, PIDBits: 9}
	// dfa: NIC from bit 12, upper part of the index (1) above the 9 bits of the PID
	const dfa = "67 52 34 12"
	m := Message{To: to, MatchBits: 0x1122334455667788, HeaderData: 0x99aabbccddeeff00, UserPtr: 0x0102030405060708}
	tail := "88 77 66 55 44 33 22 11 00 ff ee dd cc bb aa 99 08 07 06 05 04 03 02 01"
	transfer := Transfer{Message: m, Offset: 0x5000, Local: Memory{IOVA: 0xabcdef, LAC: 5, Len: 0x1000},
		Initiator: 0xcafe, EQ: 0x123}
	for _, c := range []struct {
		name  string
		write func(q *Queue) bool
		bytes string
	}{
		{"state", func(q *Queue) bool { return q.SetState(&State{Initiator: 0x33800007, Index: 8, EQ: 0x234}) },
			"a0 20 08 00 07 00 80 33 08 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 34 02"},
		{"state of what is fetched", func(q *Queue) bool {
			return q.SetState(&State{Index: 33, EQ: 1, UserPtr: 0x0102030405060708, ResultLAC: 5, Restricted: true,
				Flush: true, Quiet: true})
		}, "a0 20 1d 14 00 00 00 00 01 00 00 00 00 00 00 00 08 07 06 05 04 03 02 01 00 00 00 00 00 00 01 00"},
		{"inline put of nothing", func(q *Queue) bool { return q.PutInline(&to, 0x5000, nil) },
			"10 10 00 00" + dfa + "00 50 00 00 00 00 00 00"},
		{"inline put", func(q *Queue) bool { return q.PutInline(&to, 0x5000, []byte{0xf1, 0xf2}) },
			"10 12 00 00" + dfa + "00 50 00 00 00 00 00 00 f1 f2"},
		{"inline put of 48 bytes", func(q *Queue) bool { return q.PutInline(&to, 0, make([]byte, 48)) },
			"14 40 00 00" + dfa},
		{"inline put of 49 bytes", func(q *Queue) bool { return q.PutInline(&to, 0, make([]byte, 49)) },
			"18 41 00 00" + dfa},
		{"short atomic", func(q *Queue) bool {
			return q.AtomicInline(&Atomic{Transfer: transfer, Op: wire.AmoSum, Type: wire.AmoTypeI32, Operand: 0x42})
		}, "40 20 00 00" + dfa + "00 50 00 00 00 00 00 00 02 04 00 00 00 00 00 00 42 00 00 00 00 00 00 00"},
		{"inline swap", func(q *Queue) bool {
			return q.AtomicInline(&Atomic{Transfer: transfer, Op: wire.AmoCswap, Type: wire.AmoTypeU64,
				Condition: wire.CswapNe, Operand: 0x42, OperandHigh: 0x43, Compare: 0x44, CompareHigh: 0x45})
		}, "44 40 00 00" + dfa + "00 50 00 00 00 00 00 00 00 00 00 00 00 00 00 00 0b 07 01 00 00 00 00 00" +
			"42 00 00 00 00 00 00 00 43 00 00 00 00 00 00 00 44 00 00 00 00 00 00 00 45 00 00 00 00 00 00 00"},
		{"message", func(q *Queue) bool { return q.Inline(&m, []byte{0xf1}, []byte{0xf2, 0xf3}) },
			"74 23 00 00" + dfa + tail + "f1 f2 f3"},
		{"message of 8 bytes", func(q *Queue) bool { return q.Inline(&m, nil, []byte{1, 2, 3, 4, 5, 6, 7, 8}) },
			"74 28 00 00" + dfa + tail + "01 02 03 04 05 06 07 08"},
		{"long message", func(q *Queue) bool { return q.Inline(&m, nil, make([]byte, 192)) },
			"7c e0 00 00" + dfa + tail + "00 00"},
		{"put", func(q *Queue) bool { return q.Put(&transfer) },
			"15 09 0d 00" + dfa + "00 50 00 00 00 00 00 00 ef cd ab 00 00 00 00 00 00 10 00 00 00 00 23 01 00 00 00 00 fe ca 00 00" + tail},
		{"get", func(q *Queue) bool { return q.Get(&transfer) },
			"25 09 0d 00" + dfa + "00 50 00 00 00 00 00 00 ef cd ab 00 00 00 00 00 00 10 00 00 00 00 23 01 00 00 00 00 fe ca 00 00" + tail},
		{"atomic", func(q *Queue) bool {
			return q.Atomic(&Atomic{Transfer: transfer, Op: wire.AmoCswap, Type: wire.AmoTypeU64, Fetch: true,
				Result: Memory{IOVA: 0x77, LAC: 6}, Compare: 0x42})
		}, "59 09 0d 00" + dfa + "00 50 00 00 00 00 00 00 ef cd ab 00 00 00 00 00 00 10 00 00 00 00 23 01 00 00 00 00 fe ca 00 00" + tail +
			"77 00 00 00 00 00 00 00 0b 07 00 00 06 00 00 00 42 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"},
		{"append", func(q *Queue) bool {
			return q.Append(&Entry{PtlTE: 0x321, ID: 0x4567, Memory: Memory{IOVA: 0x9000, LAC: 3}, Length: 0x10000,
				MatchBits: 0x1122334455667788,
				Ignore:    0xff, MatchID: 0xabcd, MinFree: 0x1234, Managed: true, Put: true, NoLink: true, NoUnlink: true})
		}, "87 00 21 03 48 50 00 00 67 45 03 01 00 00 00 00 00 90 00 00 00 00 00 00 00 00 01 00 00 00 00 00" +
			"34 12 00 00 cd ab 00 00 88 77 66 55 44 33 22 11 ff 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"},
		{"silent entry", func(q *Queue) bool { return q.Append(&Entry{PtlTE: 1, Put: true, Get: true, Silent: true}) },
			"87 00 01 00 30 60 00 00 00 00 00 01"},
		{"unlink", func(q *Queue) bool { return q.Unlink(&Entry{PtlTE: 2, ID: 3}) },
			"b7 00 02 00 00 00 00 00 03 00 00 00"},
		{"enable", func(q *Queue) bool { return q.Enable(5) },
			"c7 02 05 00 00 00 00 00 00 00 00 00 00 00 00 00 ff ff ff 00"},
	} {
		r := newRing(512)
		if !c.write(&r.q) {
			t.Fatalf("%s: no room", c.name)
		}
		got := r.bytes(firstHalf, 128)
		want(t, c.name, got[:len(strings.ReplaceAll(c.bytes, " ", ""))], c.bytes)
	}
}

// TestQueue writes commands of all sizes round and round a small ring: none crosses a multiple of its size, none
// overruns the NIC, padding does nothing, and each doorbell says how far the ring is written.
func TestQueue(t *testing.T) {
	r := newRing(64)
	sizes := []int{1, 100, 40, 192, 8, 33, 97, 130}
	for n := range 2000 {
		payload := make([]byte, sizes[n%len(sizes)])
		for k := range payload {
			payload[k] = byte(n)
		}
		before := r.q.wp
		for i := range r.words[firstHalf*4:] {
			if i/4+firstHalf < int(before) {
				continue
			}
			r.words[firstHalf*4+i] = 0xffffffffffffffff // what padding must clear
		}
		if !r.q.Inline(&Message{}, nil, payload) {
			r.q.Ring()
			r.read()
			if !r.q.Idle() {
				t.Fatal("not idle")
			}
			if !r.q.Inline(&Message{}, nil, payload) {
				t.Fatalf("command %d finds no room in an empty queue", n)
			}
		}
		size := uint32(2)
		if len(payload) > 96 {
			size = 8
		} else if len(payload) > 32 {
			size = 4
		}
		end := r.q.wp
		if end == firstHalf {
			end = r.q.size
		}
		if at := end - size; at%size != 0 || at < firstHalf || end > r.q.size {
			t.Fatalf("command %d of %d half slots at %d", n, size, at)
		} else if head := r.words[at*4]; head>>8&0xff != uint64(32+len(payload)) {
			t.Fatalf("command %d: head %#x", n, head)
		}
		if n%3 == 0 {
			r.q.Ring()
			if r.launch[0] != uint64(r.q.wp/2) || r.q.Waiting() {
				t.Fatalf("doorbell %d with the ring written up to half slot %d", r.launch[0], r.q.wp)
			}
		}
	}
	if r.q.Bells == 0 {
		t.Error("no doorbell is counted")
	}
}

// TestFull: what the NIC has not read is not written over.
func TestFull(t *testing.T) {
	r := newRing(64)
	n := 0
	for r.q.Put(&Transfer{}) {
		n++
	}
	if n != (64-firstHalf-2)/2 {
		t.Errorf("%d commands fit", n)
	}
	r.q.Ring()
	if r.q.Room(1) {
		t.Error("room in a full queue")
	}
	r.words[0] += 4 // the NIC has read four
	for range 4 {
		if !r.q.Put(&Transfer{}) {
			t.Fatal("no room where the NIC has read")
		}
	}
	if r.q.Put(&Transfer{}) {
		t.Error("more room than the NIC has read")
	}
}

// eventRing is the memory of an event queue.
type eventRing struct {
	b    []byte
	word [1]uint64
	at   int
	q    EventQueue
}

func newEventRing(n int) *eventRing {
	words := make([]uint64, n/8, n/8+8) // a pointer to the longest event stays in it
	r := &eventRing{b: unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n), at: firstEvent}
	r.q.Init(unsafe.Pointer(&words[0]), unsafe.Pointer(&r.word[0]), uint32(n))
	return r
}

// put writes an event of n bytes, behind what fills the ring so that none crosses a multiple of 64 bytes.
func (r *eventRing) put(n int, kind, code byte, first uint64) {
	for r.at/64 != (r.at+n-1)/64 {
		r.raw(16, wire.EventNull, 1, 0)
	}
	r.raw(n, kind, code, first)
}

func (r *eventRing) raw(n int, kind, code byte, first uint64) {
	e := r.b[r.at : r.at+n]
	binary.LittleEndian.PutUint64(e, first)
	size := map[int]byte{16: 1, 32: 2, 64: 3}[n]
	e[14] |= size | kind<<2
	e[15] |= kind >> 6
	e[n-1] |= code
	if r.at += n; r.at == len(r.b) {
		r.at = firstEvent
	}
}

// TestEvents reads events of all sizes, and sees to it that they are cleared and told.
func TestEvents(t *testing.T) {
	r := newEventRing(4096)
	sizes := []int{16, 64, 16, 32, 16, 16, 16}
	for n := range uint64(3000) {
		if r.q.Peek().There() || r.q.Waiting() {
			t.Fatalf("event %d is there before it is written", n)
		}
		size := sizes[n%uint64(len(sizes))]
		r.put(size, wire.EventAck, byte(1+n%60), n)
		if !r.q.Waiting() {
			t.Fatalf("event %d is not seen", n)
		}
		e := r.q.Peek()
		if !e.There() || e.UserPtr() != n || e.Type() != wire.EventAck || e.Code() != uint32(1+n%60) ||
			e.words() != uint32(size/8) {
			t.Fatalf("event %d of %d bytes: %v", n, size, e)
		}
		r.q.Done(e)
		if behind := (int(r.q.off) - int(r.word[0]&0x3ffffff)*64 + 4032) % 4032; behind > 1024+64 {
			t.Fatalf("the NIC is told too late: %d bytes", behind)
		}
	}
	for n, c := range r.b[firstEvent:] {
		if c != 0 && firstEvent+n != r.at {
			t.Fatalf("byte %d is not cleared", n)
		}
	}
}

// TestUnread: how much is unread is said in the middle of a batch, too, and is bounded.
func TestUnread(t *testing.T) {
	r := newEventRing(1024) // 15 blocks
	for round := range 40 {
		const count = 9
		for n := range uint64(count) {
			r.put(64, wire.EventPut, 1, n)
		}
		for n := range count {
			if got := r.q.Unread(100); got != count-n || !r.q.Waiting() || r.q.Unread(3) != min(3, count-n) {
				t.Fatalf("round %d: %d blocks are unread, not %d", round, got, count-n)
			}
			r.q.Done(r.q.Peek())
		}
		if got := r.q.Unread(100); got != 0 || r.q.Waiting() {
			t.Fatalf("round %d: %d blocks are unread of none", round, got)
		}
	}
}

// TestEventHalfWritten: an event counts when its last byte does.
func TestEventHalfWritten(t *testing.T) {
	r := newEventRing(4096)
	r.put(64, wire.EventPut, 0, 7)
	if r.q.Peek().There() {
		t.Fatal("half an event is taken")
	}
	r.b[firstEvent+63] = 1
	if !r.q.Peek().There() {
		t.Fatal("the event is not seen")
	}
}

// TestTargetEvent reads the fields of an event at a target, whose bytes are written by hand.
func TestTargetEvent(t *testing.T) {
	r := newEventRing(4096)
	b, _ := hex.DecodeString(strings.ReplaceAll("00 ff ee dd cc bb aa 99 78 56 34 12 21 03 03 10 88 77 66 55 44 33 22 11 67 45 0a 00 00 00 00 00"+
		"34 12 00 00 78 56 00 00 00 00 00 00 00 00 00 00 00 90 00 00 00 00 00 00 00 00 00 00 00 00 00 01", " ", ""))
	copy(r.b[firstEvent:], b)
	e := r.q.Peek()
	if e.Type() != wire.EventPut || e.HeaderData() != 0x99aabbccddeeff00 || e.Initiator() != 0x12345678 ||
		e.PtlTE() != 0x321 || !e.Last() ||
		e.MatchBits() != 0x1122334455667788 || e.BufferID() != 0x4567 || e.Length() != 0x1234 || e.Wanted() != 0x5678 ||
		e.Start() != 0x9000 || e.Code() != 1 {
		t.Errorf("event % x", b)
	}
}

// TestInterrupts: they are off but when asked for.
func TestInterrupts(t *testing.T) {
	r := newEventRing(4096)
	if r.word[0] != 1|3<<32 {
		t.Errorf("at first the word is %#x", r.word[0])
	}
	r.q.Interrupts(true)
	if r.word[0] != 1 {
		t.Errorf("with interrupts it is %#x", r.word[0])
	}
	r.q.Interrupts(false)
	if r.word[0] != 1|3<<32 || r.q.Dropped() {
		t.Errorf("without it is %#x", r.word[0])
	}
}

// TestOverrun: dropped events are noticed when a quarter of the queue is given back, and acknowledged with that; the
// same status does not count twice.
func TestOverrun(t *testing.T) {
	r := newEventRing(4096)
	status := func(seq uint64) {
		binary.LittleEndian.PutUint64(r.b[8*wire.EqStatusUnackdDroppedEventWord:],
			1<<wire.EqStatusUnackdDroppedEventShift|seq<<wire.EqStatusEventDropSeqNoShift)
	}
	for n := range uint64(4) {
		seq := ^n & 1
		if r.q.Overran() || r.q.Dropped() {
			t.Fatalf("drop %d: noticed too early", n)
		}
		if status(seq); !r.q.Dropped() || r.q.Overran() {
			t.Fatalf("drop %d: no drop", n)
		}
		r.q.Interrupts(n%2 == 0)
		if r.word[0]>>wire.EqStateEventDropSeqNoShift&1 == seq {
			t.Fatalf("drop %d: acknowledged, and not noticed", n)
		}
		Bell(r.q.Due())
		r.q.unlock()
		if !r.q.Overran() || r.q.Dropped() || r.word[0]>>wire.EqStateEventDropSeqNoShift&1 != seq {
			t.Fatalf("drop %d: word %#x", n, r.word[0])
		}
		r.q.Interrupts(n%2 != 0)
		if r.word[0]>>wire.EqStateEventDropSeqNoShift&1 != seq {
			t.Fatalf("drop %d: no longer acknowledged", n)
		}
		if r.q.ClearOverran(); r.q.Overran() {
			t.Fatalf("drop %d: still noticed", n)
		}
	}
}

// TestSlot: a command is where a refused one's event would say, behind padding, and ends with an event or does not.
func TestSlot(t *testing.T) {
	r := newRing(512)
	transfer := Transfer{}
	for _, c := range []struct {
		name  string
		write func() bool
		ends  bool
	}{
		{"put", func() bool { return r.q.Put(&transfer) }, true},
		{"get", func() bool { return r.q.Get(&transfer) }, true},
		{"rendezvous", func() bool { return r.q.PutRendezvous(&transfer, 1, 2) }, true},
		{"atomic", func() bool { return r.q.Atomic(&Atomic{Transfer: transfer}) }, true},
		{"8 bytes", func() bool { return r.q.Inline(&transfer.Message, nil, make([]byte, 8)) }, true},
		{"192 bytes", func() bool { return r.q.Inline(&transfer.Message, nil, make([]byte, 192)) }, true},
		{"put of 224 bytes", func() bool { return r.q.PutInline(&transfer.To, 0, make([]byte, 224)) }, true},
		{"short atomic", func() bool { return r.q.AtomicInline(&Atomic{}) }, true},
		{"state", func() bool { return r.q.SetState(&State{}) }, false},
		{"profile", func() bool {
			r.q.beginTo(&Address{Profile: 1}, wire.CmdSizeB32)
			r.q.last -= 2
			return true
		}, false},
	} {
		r.q.Ring()
		from := r.q.wp
		if !c.write() {
			t.Fatalf("%s: no room", c.name)
		}
		for r.words[from*4]&0xff == 0 { // padding
			from++
		}
		if got := r.q.Slot(); got != from/2 {
			t.Errorf("%s: in slot %d, not %d", c.name, got, from/2)
		}
		if got := Ends(r.words[from*4] & 0xff); got != c.ends {
			t.Errorf("%s: an event says how it ends: %v", c.name, got)
		}
	}
}

// TestState: a state is written once, and again behind another, or where the queue does not know which it has.
func TestState(t *testing.T) {
	r := newRing(512)
	one, other := State{Index: 3, UserPtr: 7}, State{Index: 3, UserPtr: 8}
	for n, c := range []struct {
		s      *State
		forget bool
		writes uint32
	}{{&one, false, 1}, {&one, false, 0}, {&other, false, 1}, {&one, false, 1}, {&one, true, 1}, {&one, false, 0}} {
		if c.forget {
			r.q.NoState()
		}
		from := r.q.wp
		if !r.q.SetState(c.s) || r.q.wp-from != c.writes {
			t.Errorf("state %d: %d half slots", n, r.q.wp-from)
		}
	}
}

// TestMatchID: who sends, and everybody.
func TestMatchID(t *testing.T) {
	if got := MatchID(0x12345, 0x1ff, 9); got != 0xff812345 {
		t.Errorf("match id %#x", got)
	}
	if got := AnyID(); got != 0xffffffff {
		t.Errorf("match id of everybody %#x", got)
	}
}

func TestNoAllocation(t *testing.T) {
	r, er := newRing(4096), newEventRing(4096)
	m, payload := Message{}, make([]byte, 8)
	if n := testing.AllocsPerRun(100, func() {
		r.q.Inline(&m, nil, payload)
		r.q.Ring()
		r.read()
		er.put(16, wire.EventAck, 1, 1)
		er.q.Done(er.q.Peek())
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPost(b *testing.B) {
	r := newRing(4096)
	m, payload := Message{}, make([]byte, 8)
	for b.Loop() {
		r.q.Inline(&m, nil, payload)
		r.q.Ring()
		r.read()
	}
}

// TestRoom: the room for several commands is what the NIC leaves, though it was not known of.
func TestRoom(t *testing.T) {
	r := newRing(256)
	for n := 0; r.q.Room(2); n++ {
		if n > 100 {
			t.Fatal("there is no end of the room")
		}
		r.q.Inline(&Message{}, nil, make([]byte, 192))
	}
	r.q.Ring()
	r.read()
	if !r.q.Room(2) {
		t.Error("no room for 2 commands in a queue of 32 that the NIC has read")
	}
}

// TestProfile: a command to an address with another profile has one before it that changes it, also where the queue
// does not know which it has; the others have none.
func TestProfile(t *testing.T) {
	r := newRing(64)
	r.q.SetProfile(3)
	const change = wire.CmdTypeCmdq | wire.CmdSizeB64<<2 | wire.CmdqOpLcid<<wire.CommandOpcodeShift
	at := firstHalf
	put := func(profile uint32, changes bool) {
		t.Helper()
		if !r.q.Put(&Transfer{Message: Message{To: Address{NID: 1, PIDBits: 9, Profile: profile}}}) {
			t.Fatal("no room")
		}
		if changes {
			if w := r.words[at*4]; w != change|uint64(profile)<<wire.CmdqLcidShift {
				t.Errorf("profile %d: %#x", profile, w)
			}
			at += 2
		}
		if w := r.words[at*4]; w&0xff != wire.CmdTypeDma|wire.CmdSizeB64<<2|wire.OpPut<<wire.CommandOpcodeShift&0xff {
			t.Errorf("profile %d: no put but %#x", profile, w)
		}
		at += 2
	}
	put(3, false)
	put(5, true)
	put(5, false)
	put(3, true)
	r.q.NoProfile()
	put(3, true)
	put(3, false)
}

// FuzzHeader: whatever lies in a buffer of the request list, the header that is read is within it, and is of one of the
// two kinds of packets; an offset has 56 bits.
func FuzzHeader(f *testing.F) {
	f.Add([]byte{})
	f.Add(append([]byte{0x45}, make([]byte, MaxHeader)...))
	message := append([]byte{0x45}, make([]byte, MaxHeader)...)
	message[wire.PacketFabricSize] = packetMessage << wire.PacketPutVerPktTypeBit
	f.Add(message)
	f.Fuzz(func(t *testing.T, b []byte) {
		n, offset, ok := Header(b)
		switch {
		case !ok && (n != 0 || offset != 0):
			t.Errorf("% x: %d, %#x of none", b, n, offset)
		case !ok:
		case n > len(b) || n != MaxHeader && n != wire.PacketFabricSize+wire.PacketMessageSize:
			t.Errorf("% x: header of %d of %d bytes", b, n, len(b))
		case offset>>wire.PacketPutRemoteOffsetWidth != 0 || n != MaxHeader && offset != 0:
			t.Errorf("% x: offset %#x", b, offset)
		}
	})
}
