package nic

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// modeTests compare calls of endpoints with settings of their own, whose names have the setting behind them.
func modeTests() map[string]func(c *vectorCase) {
	return map[string]func(c *vectorCase){
		"fi_recvmsg with FI_MULTI_RECV":       (*vectorCase).many,
		"fi_tsend of 100000 bytes (alt_read)": (*vectorCase).restricted,
		"messages without room (flow)":        (*vectorCase).flow,
		"fi_writedata (writedata)":            (*vectorCase).written,
		"fi_enable (software)":                (*vectorCase).managed,
		"fi_tinject of 8 bytes (software)":    (*vectorCase).unmatched,
		"fi_enable (alt_read)":                nil, // what the other calls need of it alone
		"fi_enable (flow)":                    nil,
		"fi_enable (writedata)":               nil,
		"fi_enable with FI_MR_PROV_KEY":       nil,
	}
}

// setting is what stands behind a call's name.
func setting(name string) string {
	if at := strings.LastIndex(name, " ("); at >= 0 {
		return name[at:]
	}
	return ""
}

// orders are flags by which the provider lets a NIC write in any order, and has no message cut off.
func orders() [][2]int {
	return [][2]int{flag(wire.TargetUnrestrictedEndRoShift), flag(wire.TargetUnrestrictedBodyRoShift),
		flag(wire.TargetNoTruncateShift), {1, wire.TargetRestartSeqShift}}
}

// id is the id in a command for a list.
func (c *vectorCase) id(n int) uint16 { return binary.LittleEndian.Uint16(c.commands[n][8:]) }

// word is a word of a command.
func (c *vectorCase) word(n, word int) uint64 {
	return binary.LittleEndian.Uint64(c.commands[n][8*word:])
}

// many compares the receive of several messages.
func (c *vectorCase) many() {
	e := Entry{PtlTE: c.rx, ID: c.id(0), Memory: c.memory("local"), Length: c.values["length"], Managed: true,
		MinFree: uint32(c.values["least"]), MatchID: AnyID(), Put: true, NoLink: true, NoUnlink: true}
	e.MatchBits, e.Ignore = proto.Receive(0, 0, false)
	c.same(0, func(q *Queue) bool { return q.Append(&e) }, orders()...)
}

// managed compares how the list of an endpoint is made whose messages software matches, and a buffer for them.
func (c *vectorCase) managed() {
	n := slices.IndexFunc(c.commands, func(b []byte) bool {
		w := binary.LittleEndian.Uint64(b)
		return w&0xff == command(wire.CmdTypeCmdq, wire.CmdSizeB64, wire.CmdqOpAppend) &&
			w>>wire.TargetPtlListShift&wire.TargetPtlListMask == wire.ListRequest
	})
	if n < 0 {
		c.Fatal("no buffer is appended")
	}
	e := Entry{PtlTE: c.rx, List: wire.ListRequest, ID: c.id(n), Length: c.word(n, 3), Managed: true,
		MinFree: uint32(c.word(n, 4)), MatchID: AnyID(), Ignore: c.word(n, 6), Put: true, NoLink: true, NoUnlink: true,
		Memory: Memory{IOVA: c.word(n, 2), LAC: uint32(c.word(n, 1) >> wire.TargetLacShift & wire.TargetLacMask)}}
	c.same(n, func(q *Queue) bool { return q.Append(&e) }, orders()...)
	last := len(c.commands) - 1
	c.same(last, func(q *Queue) bool { return q.Manage(c.rx) })
}

// unmatched reads the events of a message that software matches: its header lies before it.
func (c *vectorCase) unmatched() {
	c.same(0, func(q *Queue) bool { return q.SetState(&State{Initiator: c.self, EQ: c.eq()}) })
	m := c.message(1, wire.InlineMessageUserPtrWord, tagBit)
	c.same(1, func(q *Queue) bool { return q.Inline(&m, nil, c.payload) })
	const header = wire.PacketFabricSize + wire.PacketMessageSize
	put := c.read(wire.EventPut)
	if put.Length() != header+8 || put.Wanted() != 8 || put.PtlTE() != c.rx || put.MatchBits() != m.MatchBits {
		c.Errorf("event % x", put.w[:])
	}
	if ack := c.read(wire.EventAck); ack.AnswerList() != wire.ListRequest || ack.AnswerLength() != 8 {
		c.Errorf("event % x", ack.w[:2])
	}
}

// written compares a write with data.
func (c *vectorCase) written() {
	r, ok := proto.NotifyOf(c.values["key"])
	if !ok {
		c.Fatalf("key %#x", c.values["key"])
	}
	t := c.transfer("local", r.Write)
	t.MatchBits, t.HeaderData = r.MatchBits, c.values["data"]
	c.same(0, func(q *Queue) bool { return q.Put(&t) })
	put := c.read(wire.EventPut)
	if put.HeaderData() != t.HeaderData || put.MatchBits() != t.MatchBits || put.Offset() != t.Offset ||
		put.Initiator() != c.self || put.Length() != t.Local.Len || put.PtlTE() != c.mr {
		c.Errorf("event % x", put.w[:])
	}
	c.answered(wire.EventAck, t.UserPtr)
}

// restricted compares a long message of which software gets the rest: the list for that, the get, and the notice.
func (c *vectorCase) restricted() {
	local := c.memory("local")
	list := c.ptlte[uint64(proto.IndexRestricted+local.LAC)]
	c.same(1, func(q *Queue) bool { return q.Enable(list) })
	e := Entry{PtlTE: list, ID: c.id(2), Memory: Memory{LAC: local.LAC}, Length: wire.TargetLengthMask,
		MatchID: AnyID(), Get: true, Silent: true}
	c.same(2, func(q *Queue) bool { return q.Append(&e) }, append(orders(), [2]int{6, 0})...) // no bits are matched
	says := proto.Message{Tag: c.values["tag"], Tagged: true}
	r, ok := proto.RendezvousOf(c.word(3, wire.DmaMatchBitsWord), uint32(c.commands[3][35]))
	if !ok || r.Protocol != proto.ProtocolRestricted || r.LAC != local.LAC {
		c.Fatalf("rendezvous %+v", r)
	}
	m := Message{To: c.to, MatchBits: r.Bits(says), UserPtr: c.userPtr(3, wire.DmaUserPtrWord)}
	t := Transfer{Message: m, Offset: local.IOVA, Local: local, Initiator: c.self, EQ: c.eq()}
	c.same(3, func(q *Queue) bool { return q.PutRendezvous(&t, 2048, r.Low()) })

	c.to.Index = proto.IndexRestricted + local.LAC
	get := Transfer{Message: Message{To: c.to, UserPtr: c.userPtr(4, wire.DmaUserPtrWord)}, Offset: local.IOVA + 2048,
		Local: Memory{IOVA: c.values["target.iova"] + 2048, LAC: uint32(c.values["target.lac"]), Len: local.Len - 2048},
		EQ:    c.eq(), Restricted: true} // the provider does not say whose it is
	c.same(4, func(q *Queue) bool { return q.Get(&get) })
	c.to.Index = proto.IndexDone
	done := Transfer{Message: Message{To: c.to, MatchBits: r.Done(), UserPtr: get.UserPtr}, Initiator: c.self}
	done.EQ = c.eq()
	c.same(5, func(q *Queue) bool { return q.Put(&done) })
	c.event = len(c.events) - 2 // of the notice
	if notice := c.read(wire.EventPut); notice.PtlTE() != c.src || notice.MatchBits() != r.Done() {
		c.Errorf("event % x", notice.w[:])
	}
	c.answered(wire.EventAck, get.UserPtr)
}

// flow compares what a receiver without room and its sender write: the receiver takes over what it has, the sender
// says how many messages were dropped, and is told to go on when the list is enabled again with that count.
func (c *vectorCase) flow() {
	notified, resumed, enabled, removed := []uint32{}, 0, []uint32{}, 0
	for n := range c.commands {
		switch uint64(c.commands[n][0]) {
		case command(wire.CmdTypeCmdq, wire.CmdSizeB64, wire.CmdqOpSetState):
			drops := uint32(c.word(n, 2) & wire.SetStateDropCountMask)
			c.same(n, func(q *Queue) bool { return q.Resume(c.rx, drops) })
			enabled = append(enabled, drops)
		case command(wire.CmdTypeCmdq, wire.CmdSizeB64, wire.CmdqOpSearchAndDelete):
			e := Entry{PtlTE: c.rx, ID: c.id(n), Ignore: ^uint64(0), MatchID: AnyID()}
			c.same(n, func(q *Queue) bool { return q.Remove(&e) })
			removed++
		case command(wire.CmdTypeInline, wire.CmdSizeB64, wire.OpSmallMessage):
			kind, drops, ok := proto.ControlOf(c.word(n, wire.InlineMessageMatchBitsWord))
			c.to.Index = proto.IndexControl
			m := Message{To: c.to, MatchBits: proto.Control(kind, drops),
				UserPtr: c.userPtr(n, wire.InlineMessageUserPtrWord)}
			if c.same(n, func(q *Queue) bool { return q.Inline(&m, nil, nil) }); !ok {
				c.Errorf("command %d is no control message", n)
			}
			if kind == proto.ControlNotify {
				notified = append(notified, drops)
			} else {
				resumed++
			}
		}
	}
	// The counter of a NIC of the first generation starts at -1.
	if len(notified) != 2 || resumed != 2 || len(enabled) != 2 || removed != 2 || enabled[0] != notified[0]-1 ||
		enabled[1] != notified[1]-1 {
		c.Errorf("drops %d were notified, and enabled with %d; %d resumed, %d removed", notified, enabled, resumed,
			removed)
	}
	c.flowEvents()
}

// flowEvents reads their events: the NIC stops by itself, and refuses what comes then.
func (c *vectorCase) flowEvents() {
	stopped, refused, taken := 0, 0, 0
	for _, b := range c.events {
		r := newEventRing(4096)
		copy(r.b[firstEvent:], b)
		switch e := r.q.Peek(); {
		case e.Type() == wire.EventStateChange:
			reason, automatic := e.Automatic()
			if automatic && (e.State() != wire.PtlteStateDisabled || reason != wire.ReasonFcNoMatch) || !automatic &&
				e.State() != wire.PtlteStateEnabled || e.PtlTE() != c.rx {
				c.Errorf("event % x", b)
			}
			if automatic {
				stopped++
			}
		case e.Type() == wire.EventAck && e.Code() == wire.RcPtDisabled:
			refused++
		case e.Type() == wire.EventPutOverflow && e.Wanted() == uint32(c.values["length"]):
			taken++
		}
	}
	if stopped != 2 || refused != 8+4 || taken != 4+4+4 {
		c.Errorf("stopped %d times, %d messages refused, %d taken over or received", stopped, refused, taken)
	}
}
