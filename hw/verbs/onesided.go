package verbs

import (
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
)

// transfer is what a one-sided operation has found out before it takes a place.
type transfer struct {
	q    *queue
	addr uint64 // at the peer's device
	rkey uint32
}

// prepare judges an operation on n bytes at addr.
func (e *Endpoint) prepare(addr uint64, n uint64, key hw.RemoteKey, need hw.Access) (t transfer, err error) {
	if t.addr, t.rkey, err = remote(key, addr, n, need); err != nil {
		return t, fmt.Errorf("verbs: %d bytes at %#x of peer %s: %w", n, addr, e, err)
	}
	if t.q, err = e.memoryQueue(); err != nil {
		return t, err
	}
	if e.fenced(&e.msg, &e.mem.fence) {
		return t, e.full()
	}
	return t, nil
}

// place takes a place for an operation and fills in where it goes.
func (e *Endpoint) place(t *transfer, opcode uint32) (*ibv.Op, *entry, uint64, error) {
	pos, ok := t.q.Claim(reserve)
	if !ok {
		return nil, nil, 0, e.fullOf(t.q)
	}
	op := t.q.op(pos)
	op.Opcode, op.Flags, op.Pieces, op.RemoteAddr, op.RKey = opcode, t.q.takeFence(), 1, t.addr, t.rkey
	return op, t.q.entry(pos), pos, nil
}

// fullOf is full of a queue that may have kept operations back. Those go, and free places when they end.
func (e *Endpoint) fullOf(q *queue) error {
	if q.Post(); q.FullForNow() {
		return hw.ErrNoResource
	}
	return e.full()
}

// Uncork has one-sided operations that were kept for the next one go, and end.
func (e *Endpoint) Uncork() {
	q := e.mem.started()
	if q == nil || e.failure.Load() != nil {
		return
	}
	if q.Post(); !q.signaled() {
		e.i.wantSignals()
		e.i.bell.Ring() // a thread may sleep that waits for the ends
	}
}

// PutZcopy writes local.
func (e *Endpoint) PutZcopy(local []hw.Segment, addr uint64, key hw.RemoteKey, c *hw.Completion) (hw.Status, error) {
	return e.zcopy(ibv.OpWrite, local, addr, key, c)
}

// GetZcopy reads into local.
func (e *Endpoint) GetZcopy(local []hw.Segment, addr uint64, key hw.RemoteKey, c *hw.Completion) (hw.Status, error) {
	return e.zcopy(ibv.OpRead, local, addr, key, c)
}

func (e *Endpoint) zcopy(opcode uint32, local []hw.Segment, addr uint64, key hw.RemoteKey, c *hw.Completion) (hw.Status,
	error) {
	var pieces [ibv.MaxSGE]ibv.SGE
	limit := e.i.maxIOV()
	if opcode == ibv.OpRead {
		limit = e.i.maxReadIOV()
	}
	used, n, err := e.pieces(pieces[:0], local, limit, opcode == ibv.OpRead)
	if err != nil {
		return hw.Done, err
	}
	if n > e.i.maxMessage() {
		return hw.Done, fmt.Errorf("verbs: %d bytes: %w", n, hw.ErrTooLong)
	}
	need := hw.RemoteWrite
	if opcode == ibv.OpRead {
		need = hw.RemoteRead
	}
	t, err := e.prepare(addr, n, key, need)
	if err != nil {
		return hw.Done, err
	}
	if n == 0 {
		return hw.Done, nil
	}
	op, en, pos, err := e.place(&t, opcode)
	if err != nil {
		return hw.Done, err
	}
	op.Pieces = uint32(used)
	op.SGE = pieces
	en.comp = c
	if c != nil && c.Idempotent {
		en.kind = entryRepeat
	}
	if c == nil || !c.More {
		t.q.signal(pos)
	} else if t.q.Corks(pos) {
		t.q.Ready(pos)
		return hw.InProgress, nil
	}
	t.q.publish(pos)
	return hw.InProgress, nil
}

// pieces appends local segments to the device's in to. It returns the number of those in to and
// the bytes of the new ones. Empty segments are left out: to a device a
// length of 0 may mean 2 GiB.
func (e *Endpoint) pieces(to []ibv.SGE, local []hw.Segment, limit int, write bool) (used int, n uint64, err error) {
	if len(local) > limit {
		return 0, 0, fmt.Errorf("verbs: %d local segments, at most %d: %w", len(local), limit, hw.ErrInvalid)
	}
	for _, s := range local {
		if s.Len == 0 {
			continue
		}
		m, ok := s.Memory.(*Memory)
		if !ok || !m.has(s) || write && m.region.Access&hw.LocalWrite == 0 || s.Len > 1<<31 {
			return 0, 0, fmt.Errorf("verbs: local segment of %d bytes is not registered for this: %w", s.Len,
				hw.ErrInvalid)
		}
		to = append(to, ibv.SGE{Addr: m.at(s), Len: uint32(s.Len), LKey: m.mr.LKey})
		n += uint64(s.Len)
	}
	return len(to), n, nil
}

// maxIOV is the number of local pieces of one operation that is no read.
func (i *Iface) maxIOV() int { return min(ibv.MaxSGE, i.d.attr.MaxSGE) }

// maxReadIOV is the number of local pieces of a read.
func (i *Iface) maxReadIOV() int { return min(ibv.MaxSGE, i.maxReadSGE()) }

// maxReadSGE is the number of local pieces that the device takes in the work request of a read.
func (i *Iface) maxReadSGE() int {
	if a := &i.d.attr; a.MaxReadSGE > 0 {
		return min(a.MaxSGE, a.MaxReadSGE)
	}
	return i.d.attr.MaxSGE
}

// maxMessage is the most bytes of one operation.
func (i *Iface) maxMessage() uint64 { return min(i.d.info.MaxMessage, 1<<30) }
