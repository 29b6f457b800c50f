package nic

import (
	"encoding/binary"
	"encoding/hex"
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
		tests["fi_inject_write by "+by] = func(c *vectorCase) { c.smallWrite() }
		tests["fi_fetch_atomic by "+by] = func(c *vectorCase) { c.smallAtomic() }
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

// inline is the last command of a call, which has the operand or payload in it, behind the state that it needs.
func (c *vectorCase) inline(read bool) []byte {
	c.Helper()
	r, to, offset := c.region(read)
	if len(c.commands) != 2 || !r.Own {
		c.Fatalf("%d commands", len(c.commands))
	}
	state, b := c.commands[0], c.commands[1]
	if state[0]>>wire.CommandOpcodeShift != wire.OpCstate ||
		uint32(state[8]&wire.CstateIndexExtMask) != to.Index&wire.CstateIndexExtMask ||
		!read && state[3]&4 == 0 { // a write is restricted
		c.Errorf("the state is % x", state)
	}
	if got := uint64(binary.LittleEndian.Uint32(b[4:])); got != to.dfa() {
		c.Errorf("to %#x, not %#x", got, to.dfa())
	}
	if got := binary.LittleEndian.Uint64(b[8:]) & (1<<56 - 1); got != offset {
		c.Errorf("at offset %#x, not %#x", got, offset)
	}
	return b
}

// smallWrite reads a write with its payload in the command, which this backend takes from memory.
func (c *vectorCase) smallWrite() {
	b := c.inline(false)
	if string(b[16:16+len(c.payload)]) != string(c.payload) {
		c.Errorf("the payload is %s", hex.EncodeToString(b[16:]))
	}
}

// smallAtomic reads an operation with its operand in the command, likewise.
func (c *vectorCase) smallAtomic() {
	b := c.inline(true)
	if uint64(b[24]&15) != wire.AmoSum || uint64(b[25]&15) != wire.AmoTypeU64 ||
		binary.LittleEndian.Uint64(b[32:]) != c.values["operand"] {
		c.Errorf("the operation is % x", b)
	}
}
