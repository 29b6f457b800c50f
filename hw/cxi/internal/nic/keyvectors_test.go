package nic

import (
	"slices"

	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// keyTests compare operations by keys of each kind: where they go, and how.
func keyTests() map[string]func(c *vectorCase) {
	tests := map[string]func(c *vectorCase){}
	for _, by := range []string{"a key of its own", "a kept key", "a chosen key with events",
		"a chosen key that shares an index"} {
		tests["fi_write by "+by] = func(c *vectorCase) { c.keyed(false, false) }
		tests["fi_writemsg with FI_DELIVERY_COMPLETE by "+by] = func(c *vectorCase) { c.keyed(false, true) }
		tests["fi_read by "+by] = func(c *vectorCase) { c.keyed(true, false) }
	}
	for _, by := range []string{"a key of its own", "a kept key"} {
		tests["fi_inject_write by "+by] = func(c *vectorCase) { c.smallWrite(false, true) }
		tests["fi_fetch_atomic by "+by] = func(c *vectorCase) {
			c.smallAtomic(Atomic{Op: wire.AmoSum, Type: wire.AmoTypeU64, Fetch: true}, State{})
		}
	}
	for call, compare := range map[string]func(c *vectorCase){
		"fi_write of 224 bytes":                             func(c *vectorCase) { c.smallWrite(false, false) },
		"fi_writemsg of 24 bytes with FI_DELIVERY_COMPLETE": func(c *vectorCase) { c.smallWrite(true, false) },
		"fi_inject_atomic": func(c *vectorCase) {
			c.smallAtomic(Atomic{Op: wire.AmoBor, Type: wire.AmoTypeU32}, State{Quiet: true})
		},
		"fi_atomic of a complex number": func(c *vectorCase) {
			c.smallAtomic(Atomic{Op: wire.AmoSum, Type: wire.AmoTypeC64}, State{})
		},
		"fi_compare_atomic with FI_MSWAP": func(c *vectorCase) {
			c.smallAtomic(Atomic{Op: wire.AmoAxor, Type: wire.AmoTypeU64, Fetch: true}, State{})
		},
		"fi_atomicmsg with FI_DELIVERY_COMPLETE": func(c *vectorCase) {
			c.smallAtomic(Atomic{Op: wire.AmoSum, Type: wire.AmoTypeU64}, State{Flush: true})
		},
	} {
		tests[call+" by a key of its own"] = compare
	}
	return tests
}

// region is where the key of a call leads, and the address and offset there.
func (c *vectorCase) region(read bool) (proto.Region, Address, uint64) {
	c.Helper()
	r, ok := proto.RegionOf(c.values["key"])
	if !ok {
		c.Fatalf("key %#x", c.values["key"])
	}
	const profile = wire.CmdTypeCmdq | wire.CmdSizeB64<<2 | wire.CmdqOpLcid<<wire.CommandOpcodeShift
	c.commands = slices.DeleteFunc(c.commands, func(b []byte) bool { return b[0] == profile }) // of a traffic class
	c.to.PID = uint32(c.values["pid"])
	c.self = MatchID(c.to.NID, c.to.PID, c.to.PIDBits)
	to := c.to
	if to.Index = r.Write; read {
		to.Index = r.Read
	}
	return r, to, r.Offset + c.values["offset"]
}

// keyed compares a write or read with what this backend writes for the same key.
func (c *vectorCase) keyed(read, flush bool) {
	c.Helper()
	r, to, offset := c.region(read)
	t := Transfer{Message: Message{To: to, MatchBits: r.MatchBits, UserPtr: c.userPtr(0, wire.DmaUserPtrWord)},
		Offset: offset, Local: c.memory("local"), Initiator: c.self, EQ: c.eq(),
		Restricted: r.Own && !r.Events, Flush: flush}
	if r.Own { // the list has no matching: libfabric's provider writes the key there
		t.MatchBits = c.values["key"] &^ (1<<63 | 1<<59)
	}
	c.same(0, func(q *Queue) bool {
		if read {
			return q.Get(&t)
		}
		return q.Put(&t)
	})
	kind := uint32(wire.EventAck)
	if read {
		kind = wire.EventReply
	}
	for c.event < len(c.events) && c.events[c.event][14]>>2 != byte(kind) { // events of the region
		c.event++
	}
	c.answered(kind, t.UserPtr)
}

// inline is the state of a call's inline command, which its first command writes, and where that goes.
func (c *vectorCase) inline(read bool) (s State, to Address, offset uint64) {
	c.Helper()
	r, to, offset := c.region(read)
	if len(c.commands) != 2 || !r.Own {
		c.Fatalf("%d commands", len(c.commands))
	}
	s = State{Index: to.Index, UserPtr: c.userPtr(0, wire.CstateUserPtrWord)}
	s.EQ = uint32(c.userPtr(0, wire.CstateEqWord) >> wire.CstateEqShift)
	return s, to, offset
}

// inlined compares both commands of a call, the second of which write writes, and reads its event unless it has none.
func (c *vectorCase) inlined(s State, kind uint32, write func(q *Queue) bool) {
	c.Helper()
	c.same(0, func(q *Queue) bool { return q.SetState(&s) })
	want := c.commands[1]
	c.commands[1] = want[:want[1]] // what lies behind was there before
	c.same(1, write)
	if !s.Quiet {
		c.answered(kind, s.UserPtr)
	} else if c.event != len(c.events) {
		c.Errorf("%d events", len(c.events))
	}
}

// smallWrite compares a write with its payload in the command.
func (c *vectorCase) smallWrite(flush, quiet bool) {
	s, to, offset := c.inline(false)
	s.Restricted, s.Flush, s.Quiet = true, flush, quiet
	c.inlined(s, wire.EventAck, func(q *Queue) bool { return q.PutInline(&to, offset, c.payload) })
}

// smallAtomic compares an operation with its operand in the command.
func (c *vectorCase) smallAtomic(a Atomic, s State) {
	at, to, offset := c.inline(a.Fetch)
	s.Index, s.EQ, s.UserPtr = at.Index, at.EQ, at.UserPtr
	a.To, a.Offset = to, offset
	a.Operand, a.OperandHigh, a.Compare = c.values["operand"], c.values["operand.high"], c.values["compare"]
	kind := uint32(wire.EventAck)
	if a.Fetch {
		kind, a.Result = wire.EventReply, c.memory("result")
		s.ResultLAC = a.Result.LAC
	}
	c.inlined(s, kind, func(q *Queue) bool { return q.AtomicInline(&a) })
}
