package cxi

import (
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// aim judges an operation on n bytes at addr, and says where the peer's NIC finds them.
func (e *Endpoint) aim(addr, n uint64, key hw.RemoteKey, need hw.Access) (t nic.Transfer, err error) {
	nid, pid, bits, off, err := remote(key, addr, n, need)
	if err == nil && (nid != e.addr.nid || pid >= 1<<e.addr.pidBits) {
		err = hw.ErrKey
	}
	if err != nil {
		return t, fmt.Errorf("cxi: %d bytes at %#x of peer %s: %w", n, addr, e, err)
	}
	t.To = nic.Address{NID: nid, PID: pid, Index: indexMemory, PIDBits: uint32(e.addr.pidBits)}
	t.MatchBits, t.Offset = bits, off
	t.Initiator = e.i.addr.id()
	return t, nil
}

// start takes an operation of the peer's queue. nil: nothing may be posted now, or never again. The caller has the
// queue's lock.
func (e *Endpoint) start(t *nic.Transfer, kind opKind) (*op, uint32, error) {
	if err := e.usable(); err != nil {
		return nil, 0, err
	}
	o, n := e.q.begin(e, kind)
	if o == nil {
		return nil, 0, hw.ErrNoResource
	}
	t.UserPtr, t.EQ = cookieOp|uint64(n), e.q.events.number
	return o, n, nil
}

// post posts the put or get of an operation from start.
func (e *Endpoint) post(t *nic.Transfer, get bool, o *op, n uint32) error {
	q := e.q
	if get && !q.q.Get(t) || !get && !q.q.Put(t) {
		return hw.ErrNoResource
	}
	q.commit(o, n)
	return nil
}

// PutZcopy writes local.
func (e *Endpoint) PutZcopy(local []hw.Segment, addr uint64, key hw.RemoteKey, c *hw.Completion) (hw.Status, error) {
	return e.zcopy(false, local, addr, key, c)
}

// GetZcopy reads into local.
func (e *Endpoint) GetZcopy(local []hw.Segment, addr uint64, key hw.RemoteKey, c *hw.Completion) (hw.Status, error) {
	return e.zcopy(true, local, addr, key, c)
}

func (e *Endpoint) zcopy(get bool, local []hw.Segment, addr uint64, key hw.RemoteKey, c *hw.Completion) (hw.Status, error) {
	memory, err := e.segment(local, get)
	if err != nil {
		return hw.Done, err
	}
	need := hw.RemoteWrite
	if get {
		need = hw.RemoteRead
	}
	t, err := e.aim(addr, uint64(memory.Len), key, need)
	if err != nil {
		return hw.Done, err
	}
	if memory.Len == 0 {
		return hw.Done, e.Err()
	}
	t.Local = memory
	e.q.take()
	defer e.q.give()
	o, n, err := e.start(&t, opPlain)
	if err != nil {
		return hw.Done, err
	}
	o.comp = c
	if err := e.post(&t, get, o, n); err != nil {
		return hw.Done, err
	}
	return hw.InProgress, nil
}

// amoOps are the NIC's operations.
var amoOps = [...]uint64{
	hw.OpAdd: wire.AmoSum, hw.OpAnd: wire.AmoBand, hw.OpOr: wire.AmoBor, hw.OpXor: wire.AmoBxor,
	hw.OpSwap: wire.AmoSwap, hw.OpCSwap: wire.AmoCswap,
}

// AtomicPost performs op and returns nothing.
func (e *Endpoint) AtomicPost(op hw.AtomicOp, size int, operand, addr uint64, key hw.RemoteKey) error {
	if err := checkAtomic(op, size, addr, postOps); err != nil {
		return err
	}
	_, err := e.atomic(op, size, operand, 0, addr, key, nil, nil, false)
	return err
}

// AtomicFetch performs op and stores what the word was before in *result.
func (e *Endpoint) AtomicFetch(op hw.AtomicOp, size int, operand, compare, addr uint64, key hw.RemoteKey, result *uint64, c *hw.Completion) (hw.Status, error) {
	if err := checkAtomic(op, size, addr, fetchOps); err != nil {
		return hw.Done, err
	}
	return e.atomic(op, size, operand, compare, addr, key, result, c, true)
}

// checkAtomic judges an operation's arguments.
func checkAtomic(op hw.AtomicOp, size int, addr uint64, mask hw.OpMask) error {
	if size != 4 && size != 8 || addr%uint64(size) != 0 || !mask.Has(op) {
		return fmt.Errorf("cxi: atomic operation %d on %d bytes at %#x: %w", op, size, addr, hw.ErrInvalid)
	}
	return nil
}

// atomic has the NICs perform op. The operand is the first word of the operation's memory, the result the second.
func (e *Endpoint) atomic(op hw.AtomicOp, size int, operand, compare, addr uint64, key hw.RemoteKey, result *uint64, c *hw.Completion, fetch bool) (hw.Status, error) {
	t, err := e.aim(addr, uint64(size), key, hw.RemoteAtomic)
	if err != nil {
		return hw.Done, err
	}
	a := nic.Atomic{Transfer: t, Op: amoOps[op], Type: wire.AmoTypeU64, Fetch: fetch, Compare: compare}
	kind := opPlain
	if fetch {
		kind = opFetch
	}
	if size == 4 {
		a.Type, a.Compare = wire.AmoTypeU32, compare&(1<<32-1)
	}
	q := e.q
	q.take()
	defer q.give()
	o, n, err := e.start(&a.Transfer, kind)
	if err != nil {
		return hw.Done, err
	}
	o.size, o.result, o.comp = uint8(size), result, c
	q.setOperand(n, size, operand)
	a.Local, a.Result = q.memory.at(int(n)*opBytes, size), q.memory.at(int(n)*opBytes+8, size)
	if !q.q.Atomic(&a) {
		return hw.Done, hw.ErrNoResource
	}
	q.commit(o, n)
	return hw.InProgress, nil
}
