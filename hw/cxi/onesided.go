package cxi

import (
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
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

func (e *Endpoint) zcopy(get bool, local []hw.Segment, addr uint64, key hw.RemoteKey, c *hw.Completion) (hw.Status,
	error) {
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
