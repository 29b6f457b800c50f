package nic

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// A call of libfabric's own CXI provider, which is compiled with the vendor's headers: what is known of it, what it put
// into its queues, and the events that it took (tests/cxi/vectors.sh).
type vector struct {
	values   map[string]uint64
	payload  []byte
	ptlte    map[uint64]uint32 // by index
	commands [][]byte
	events   [][]byte
	eventQ   []uint32 // of events
}

// readVectors reads the calls by their names.
func readVectors(t *testing.T) map[string]*vector {
	t.Helper()
	f, err := os.Open("testdata/vectors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	calls := map[string]*vector{}
	var v *vector
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "call":
			v = &vector{values: map[string]uint64{}, ptlte: map[uint64]uint32{}}
			calls[strings.TrimPrefix(line, "call ")] = v
		default:
			if err := v.line(words); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
	}
	return calls
}

func (v *vector) line(words []string) error {
	last := words[len(words)-1]
	switch words[0] {
	case "command", "event", "payload":
		b, err := hex.DecodeString(last)
		if err != nil {
			return err
		}
		switch words[0] {
		case "command":
			v.commands = append(v.commands, b)
		case "event":
			n, err := strconv.ParseUint(words[1], 10, 32)
			if err != nil {
				return err
			}
			v.events, v.eventQ = append(v.events, b), append(v.eventQ, uint32(n))
		default:
			v.payload = b
		}
		return nil
	case "ptlte", "queue":
		var n, index uint64
		if _, err := fmt.Sscan(words[1], &n); err != nil {
			return err
		}
		if _, err := fmt.Sscan(last, &index); err != nil {
			return err
		}
		if words[0] == "ptlte" {
			v.ptlte[index] = uint32(n)
		}
		return nil
	}
	n, err := strconv.ParseUint(last, 0, 64)
	v.values[words[0]] = n
	return err
}

// vectorCase compares one call.
type vectorCase struct {
	*testing.T
	*vector
	self  uint32 // match id of the endpoint, which sends to itself
	to    Address
	rx    uint32 // its portal table entry of messages
	mr    uint32 // that of memory
	src   uint32 // that of the data of rendezvous
	event int    // the next one to be read
}

// same compares a command with what write writes, but for bits that both may have otherwise, a shift and a word each.
func (c *vectorCase) same(n int, write func(q *Queue) bool, except ...[2]int) {
	c.Helper()
	r := newRing(512)
	if !write(&r.q) {
		c.Fatal("no room")
	}
	want := c.commands[n]
	got, _ := hex.DecodeString(r.bytes(firstHalf, len(want)))
	for _, x := range except {
		for _, b := range [][]byte{got, want} {
			b[8*x[0]+x[1]/8] &^= 1 << (x[1] % 8)
		}
	}
	if string(got) != string(want) {
		c.Errorf("command %d:\n weft    %x\n prov/cxi %x", n, got, want)
	}
}

// memory is a piece of memory as the NIC sees it, by its name.
func (c *vectorCase) memory(name string) Memory {
	if _, ok := c.values[name+".iova"]; !ok {
		c.Fatalf("there is no %s", name)
	}
	return Memory{IOVA: c.values[name+".iova"], LAC: uint32(c.values[name+".lac"]), Len: uint32(c.values["length"])}
}

// read reads the next event as a queue does, and its type and code.
func (c *vectorCase) read(kind uint32) Event {
	c.Helper()
	if c.event >= len(c.events) {
		c.Fatalf("%d events", len(c.events))
	}
	r := newEventRing(4096)
	copy(r.b[firstEvent:], c.events[c.event])
	e := r.q.Peek()
	if !e.There() || e.Type() != kind || e.Code() != wire.RcOk || int(8*e.words()) != len(c.events[c.event]) {
		c.Fatalf("event %d % x is not of type %d", c.event, c.events[c.event], kind)
	}
	c.event++
	return e
}

// userPtr is the provider's own pointer, which nothing else knows: that its event has it is checked.
func (c *vectorCase) userPtr(n, word int) uint64 {
	return binary.LittleEndian.Uint64(c.commands[n][8*word:])
}

// eq is the queue to which the last event came.
func (c *vectorCase) eq() uint32 { return c.eventQ[len(c.eventQ)-1] }

// answered checks the event at the initiator.
func (c *vectorCase) answered(kind uint32, user uint64) {
	c.Helper()
	if got := c.read(kind).UserPtr(); got != user {
		c.Errorf("the event has the pointer %#x, the command %#x", got, user)
	}
}

// arrived checks the event of a message at its target.
func (c *vectorCase) arrived() {
	c.Helper()
	e := c.read(wire.EventPut)
	n := uint32(c.values["completed.length"])
	if e.Initiator() != c.self || e.PtlTE() != c.rx || e.Length() != n || e.Wanted() != n ||
		e.Start() != c.values["target.iova"] || !e.Last() ||
		e.HeaderData() != c.values["completed.data"] || e.MatchBits()&tagMask != c.values["completed.tag"] ||
		e.BufferID() == 0 {
		c.Errorf("event % x", e.w[:])
	}
}

// Match bits of libfabric's CXI provider.
const (
	tagMask  = 1<<48 - 1
	dataBit  = 1 << 59 // the header data is the application's
	tagBit   = 1 << 60 // of a tagged message
	anyExtra = 0xefff << 48
)

// message is a message to itself.
func (c *vectorCase) message(n, word int, bits uint64) Message {
	return Message{To: c.to, MatchBits: c.values["tag"] | bits, HeaderData: c.values["data"],
		UserPtr: c.userPtr(n, word)}
}

// transfer is a put or get of the memory of a key.
func (c *vectorCase) transfer(local string, index uint32) Transfer {
	to := c.to
	to.Index = index
	t := Transfer{Message: Message{To: to, MatchBits: c.values["key"], UserPtr: c.userPtr(0, wire.DmaUserPtrWord)},
		Offset:    c.values["offset"],
		Initiator: c.self, EQ: c.eq()}
	if local != "" {
		t.Local = c.memory(local)
	}
	return t
}

// Index of memory that peers write, and that they read.
const (
	indexWrite = 117
	indexRead  = 228
)

// vectorTests compare each call. Bits that may differ are flags that this backend uses otherwise.
var vectorTests = map[string]func(c *vectorCase){
	"fi_enable": func(c *vectorCase) {
		tables := 0
		for n, b := range c.commands {
			if b[0]>>wire.CommandOpcodeShift != wire.CmdqOpSetState {
				continue
			}
			tables++
			// they are made in the order of their numbers
			c.same(n, func(q *Queue) bool { return q.Enable(uint32(tables)) })
		}
		changes := 0
		for n := range c.events {
			if kind := c.events[n][14] >> 2; kind == wire.EventStateChange {
				e := c.read(wire.EventStateChange)
				if changes++; e.State() != wire.PtlteStateEnabled || e.PtlTE() != uint32(changes) ||
					e.Code() != wire.RcOk {
					c.Errorf("event % x", c.events[n])
				}
			} else {
				c.event++
			}
		}
		if tables != 3 || changes != 3 {
			c.Errorf("%d entries are enabled, %d changes told", tables, changes)
		}
	},
	"fi_trecv": func(c *vectorCase) {
		local := c.memory("local")
		e := Entry{PtlTE: c.rx, ID: binary.LittleEndian.Uint16(c.commands[0][8:]), Memory: local,
			Length: c.values["length"], Managed: true,
			MatchBits: c.values["tag"] | tagBit, Ignore: c.values["ignore"] |
				anyExtra, MatchID: AnyID(), Put: true, NoLink: true, NoUnlink: true}
		c.same(0, func(q *Queue) bool { return q.Append(&e) }, flag(wire.TargetUseOnceShift),
			flag(wire.TargetUnrestrictedEndRoShift),
			flag(wire.TargetUnrestrictedBodyRoShift), [2]int{1, wire.TargetRestartSeqShift})
	},
	"fi_tsend of 1000 bytes": func(c *vectorCase) {
		m := c.message(0, wire.DmaUserPtrWord, tagBit)
		t := Transfer{Message: m, Local: c.memory("local"), Initiator: c.self, EQ: c.eq()}
		c.same(0, func(q *Queue) bool { return q.Put(&t) })
		c.arrived()
		c.answered(wire.EventAck, m.UserPtr)
	},
	"fi_tinject of 8 bytes": func(c *vectorCase) {
		c.same(0, func(q *Queue) bool { return q.SetState(&State{Initiator: c.self, EQ: c.eq()}) })
		m := c.message(1, wire.InlineMessageUserPtrWord, tagBit)
		c.same(1, func(q *Queue) bool { return q.Inline(&m, nil, c.payload) })
		c.arrived()
		c.answered(wire.EventAck, m.UserPtr)
	},
	"fi_tsenddata of 100 bytes": func(c *vectorCase) {
		m := c.message(0, wire.InlineMessageUserPtrWord, tagBit|dataBit)
		c.commands[0] = c.commands[0][:wire.InlineMessageSize+len(c.payload)]
		c.same(0, func(q *Queue) bool { return q.Inline(&m, c.payload[:30], c.payload[30:]) })
		c.arrived()
		c.answered(wire.EventAck, m.UserPtr)
	},
	"fi_cancel": func(c *vectorCase) {
		id := binary.LittleEndian.Uint16(c.commands[0][8:])
		c.same(0, func(q *Queue) bool { return q.Unlink(&Entry{PtlTE: c.rx, ID: id}) })
		if e := c.read(wire.EventUnlink); e.BufferID() != id || e.PtlTE() != c.rx {
			c.Errorf("event % x", e.w[:])
		}
	},
	"fi_tsend of 100000 bytes": func(c *vectorCase) {
		b := c.commands[0]
		e := Entry{PtlTE: c.src, ID: binary.LittleEndian.Uint16(b[8:]), Memory: Memory{LAC: c.memory("local").LAC},
			Length:  wire.TargetLengthMask,
			MatchID: AnyID(), Get: true, NoUnlink: true}
		e.MatchBits, e.Ignore = proto.SourceEntry(e.Memory.LAC)
		c.same(0, func(q *Queue) bool { return q.Append(&e) }, flag(wire.TargetUnrestrictedEndRoShift),
			flag(wire.TargetUnrestrictedBodyRoShift),
			[2]int{1, wire.TargetRestartSeqShift})
		if link := c.read(wire.EventLink); link.BufferID() != e.ID || link.PtlTE() != c.src {
			c.Errorf("event % x", link.w[:])
		}
		c.rendezvous(1, proto.Message{Tag: c.values["tag"], Tagged: true})
	},
	"fi_send of 100000 bytes": func(c *vectorCase) { c.rendezvous(0, proto.Message{}) },
	"fi_tsendmsg with FI_MATCH_COMPLETE": func(c *vectorCase) {
		says := proto.Message{Tag: c.values["tag"], Tagged: true}
		bits := binary.LittleEndian.Uint64(c.commands[0][8*wire.InlineMessageMatchBitsWord:])
		id, ok := proto.Awaits(bits)
		if !ok || proto.MessageOf(bits) != says {
			c.Fatalf("match bits %#x", bits)
		}
		m := Message{To: c.to, MatchBits: says.BitsMatched(id), UserPtr: c.userPtr(0, wire.InlineMessageUserPtrWord)}
		c.commands[0] = c.commands[0][:wire.InlineMessageSize+len(c.payload)]
		c.same(0, func(q *Queue) bool { return q.Inline(&m, nil, c.payload) })
		if e := c.read(wire.EventPut); e.PtlTE() != c.rx || e.Length() != 64 || e.Rendezvous() ||
			e.MatchBits() != bits {
			c.Errorf("event % x", e.w[:])
		}
		if e := c.read(wire.EventAck); e.AnswerList() != wire.ListOverflow || e.AnswerLength() != 64 {
			c.Errorf("event % x", e.w[:2])
		}
	},
	"fi_trecvmsg with FI_PEEK": func(c *vectorCase) {
		e := Entry{PtlTE: c.rx, ID: binary.LittleEndian.Uint16(c.commands[0][8:]), MatchID: AnyID(), Once: true}
		e.MatchBits, e.Ignore = proto.Receive(c.values["tag"], c.values["ignore"], true)
		c.same(0, func(q *Queue) bool { return q.Search(&e) })
		if found := c.read(wire.EventSearch); found.BufferID() != e.ID || found.Wanted() != 64 ||
			found.Initiator() != c.self {
			c.Errorf("event % x", found.w[:])
		}
	},
	"fi_trecv of what has come": func(c *vectorCase) {
		taken := c.read(wire.EventPutOverflow)
		id, ok := proto.Awaits(taken.MatchBits())
		if !ok || taken.Length() != 64 || taken.BufferID() != binary.LittleEndian.Uint16(c.commands[0][8:]) {
			c.Fatalf("event % x", taken.w[:])
		}
		// The notice: an inline message of no bytes, here the match bits.
		if got := binary.LittleEndian.Uint64(c.commands[2][8*wire.InlineMessageMatchBitsWord:]); got != proto.Matched(id) {
			c.Errorf("the notice has match bits %#x", got)
		}
		to := c.to
		to.Index = proto.IndexSource
		if got := uint64(binary.LittleEndian.Uint32(c.commands[2][4:])); got != to.dfa() {
			c.Errorf("the notice goes to %#x", got)
		}
		notice := c.read(wire.EventPut)
		if got, done, ok := proto.NoticeOf(notice.MatchBits()); got != id || done || !ok || notice.PtlTE() != c.src {
			c.Errorf("event % x", notice.w[:])
		}
	},
	"fi_mr_enable": func(c *vectorCase) {
		e := Entry{PtlTE: c.mr, ID: binary.LittleEndian.Uint16(c.commands[0][8:]), Memory: c.memory("local"),
			Length:    c.values["length"],
			MatchBits: c.values["key"], MatchID: AnyID(), Put: true, Get: true, Silent: true}
		c.same(0, func(q *Queue) bool { return q.Append(&e) }, flag(wire.TargetEventCommDisableShift),
			flag(wire.TargetEventSuccessDisableShift),
			flag(wire.TargetUnrestrictedEndRoShift), flag(wire.TargetUnrestrictedBodyRoShift), [2]int{1,
				wire.TargetRestartSeqShift})
		if link := c.read(wire.EventLink); link.BufferID() != e.ID || link.PtlTE() != c.mr {
			c.Errorf("event % x", link.w[:])
		}
	},
	"fi_close of a region": func(c *vectorCase) {
		id := binary.LittleEndian.Uint16(c.commands[0][8:])
		c.same(0, func(q *Queue) bool { return q.Unlink(&Entry{PtlTE: c.mr, ID: id}) })
		c.read(wire.EventUnlink)
	},
	"fi_write of 2048 bytes": func(c *vectorCase) {
		t := c.transfer("local", indexWrite)
		c.same(0, func(q *Queue) bool { return q.Put(&t) })
		c.answered(wire.EventAck, t.UserPtr)
	},
	"fi_read of 1536 bytes": func(c *vectorCase) {
		t := c.transfer("local", indexRead)
		c.same(0, func(q *Queue) bool { return q.Get(&t) })
		c.answered(wire.EventReply, t.UserPtr)
	},
	"fi_atomic": func(c *vectorCase) {
		a := Atomic{Transfer: c.anonymous(indexWrite), Op: wire.AmoSum, Type: wire.AmoTypeU64}
		c.same(0, func(q *Queue) bool { return q.Atomic(&a) })
		c.answered(wire.EventAck, a.UserPtr)
	},
	"fi_compare_atomic": func(c *vectorCase) {
		a := Atomic{Transfer: c.anonymous(indexRead), Op: wire.AmoCswap, Type: wire.AmoTypeU64, Fetch: true,
			Result:  c.memory("result"),
			Compare: c.values["compare"]}
		c.same(0, func(q *Queue) bool { return q.Atomic(&a) })
		c.answered(wire.EventReply, a.UserPtr)
	},
}

// rendezvous checks the command of a long message and the events at both sides.
func (c *vectorCase) rendezvous(n int, says proto.Message) {
	c.Helper()
	local := c.memory("local")
	b := c.commands[n]
	bits, low := binary.LittleEndian.Uint64(b[8*wire.DmaMatchBitsWord:]), uint32(b[35])
	r, ok := proto.RendezvousOf(bits, low)
	if !ok || r.LAC != local.LAC || r.Protocol != proto.ProtocolDefault || proto.MessageOf(bits) != says ||
		says.Tagged != (r.ID >= proto.UntaggedIDs) {
		c.Fatalf("match bits %#x with %#x", bits, low)
	}
	m := Message{To: c.to, MatchBits: r.Bits(says), UserPtr: c.userPtr(n, wire.DmaUserPtrWord)}
	t := Transfer{Message: m, Offset: local.IOVA, Local: local, Initiator: c.self, EQ: uint32(b[30])}
	c.same(n, func(q *Queue) bool { return q.PutRendezvous(&t, 2048, r.Low()) })

	put := c.read(wire.EventPut)
	if put.PtlTE() != c.rx || put.Length() != 2048 || put.Wanted() != local.Len || !put.Rendezvous() ||
		put.RendezvousID() != r.Low() || !put.Last() {
		c.Errorf("event % x", put.w[:])
	}
	asked := c.read(wire.EventRendezvous)
	from := proto.FromFabricAddress(asked.Initiator(), 9, asked.VNI())
	if MatchID(from.NID, from.PID, 9) != c.self || asked.Offset() != local.IOVA+2048 || !asked.GetIssued() ||
		asked.RendezvousID() != r.Low() ||
		asked.Start() != c.values["target.iova"]+2048 {
		c.Errorf("event % x", asked.w[:])
	}
	c.answered(wire.EventAck, m.UserPtr)
	get := c.read(wire.EventGet)
	// The NIC has its own bits in a field that says nothing here.
	const kind = wire.RendezvousMatchBitsTransactionTypeMask << wire.RendezvousMatchBitsTransactionTypeShift
	if proto.SourceID(get.MatchBits()) != r.ID || get.MatchBits()&^uint64(kind)&^(1<<60) != r.Source() ||
		get.PtlTE() != c.src {
		c.Errorf("event % x: match bits %#x, not %#x", get.w[:], get.MatchBits(), r.Source())
	}
	reply := c.read(wire.EventReply)
	nid, pid, id, buffer := reply.Fetched()
	if !reply.AnswerRendezvous() || MatchID(nid, pid, 9) != c.self || id != r.Low() || buffer != put.BufferID() ||
		reply.AnswerLength() != local.Len-2048 {
		c.Errorf("event % x", reply.w[:2])
	}
}

// flag is a bit of a command's first word.
func flag(shift int) [2]int { return [2]int{0, shift} }

// anonymous is the transfer of an atomic: the provider leaves out who sends it, and nothing else knows where its copy
// of the operand is.
func (c *vectorCase) anonymous(index uint32) Transfer {
	t := c.transfer("", index)
	b := c.commands[0]
	t.Local = Memory{IOVA: binary.LittleEndian.Uint64(b[16:]), LAC: uint32(b[2] & 7), Len: uint32(c.values["length"])}
	t.Initiator = 0
	return t
}

// TestVectors compares commands with those of libfabric's own provider for named calls, and reads the events that it
// took: the model of the NIC shares the table of formats, so a mistake in that is seen here.
func TestVectors(t *testing.T) {
	calls := readVectors(t)
	enable := calls["fi_enable"]
	keyed, modes := keyTests(), modeTests()
	if len(calls) != len(vectorTests)+len(keyed)+len(modes) || enable == nil {
		t.Fatalf("%d calls, %d are compared", len(calls), len(vectorTests)+len(keyed)+len(modes))
	}
	maps.Copy(keyed, vectorTests)
	maps.Copy(keyed, modes)
	nid, pid := uint32(enable.values["nid"]), uint32(enable.values["pid"])
	for name, compare := range keyed {
		if compare == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			v, enable := calls[name], calls["fi_enable"+setting(name)]
			if v == nil || len(v.commands) == 0 {
				t.Fatal("nothing is recorded")
			}
			compare(&vectorCase{T: t, vector: v, self: MatchID(nid, pid, 9),
				to: Address{NID: nid, PID: pid, PIDBits: 9}, rx: enable.ptlte[0],
				mr: enable.ptlte[indexWrite], src: enable.ptlte[proto.IndexSource]})
		})
	}
}
