package provider

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/hmem"
	"github.com/weft-fabric/weft/provider/rkey"
	"github.com/weft-fabric/weft/provider/wire"
)

// Where a port's device reads and writes the memory of peers, it does the reads
// and writes of the application, and the peer's process has no part in them. That
// needs the device's key of the peer's region (package rkey) and a registration of
// the own memory; an operation that finds one of them missing goes as messages,
// and so does one that the device refuses: then the peer's process says why.
// Atomics always go as messages, because a device's are not atomic with respect to
// the processors, which perform those of peers on the target's host.

// deviceCaps are the abilities that it takes.
const deviceCaps = hw.CapPutZcopy | hw.CapGetZcopy | hw.CapOneSidedFree | hw.CapFlush

// oneSided reports whether the port's device reads and writes registered memory.
func (p *port) oneSided() bool {
	return p.cache != nil && p.attr.Caps&deviceCaps == deviceCaps && p.Memory().Attr().MaxKey <= rkey.MaxKey
}

// deviceOp is a read or write that a device does, in pieces. Its request has no
// claim to live: the operation ends it when all of its pieces have ended.
type deviceOp struct {
	e       *initiator
	id      uint64
	path    *path                       // over which its pieces go
	keys    [wire.IOVLimit]hw.RemoteKey // of the request's remote elements
	regions []hw.Memory                 // of its local ones
	deliver bool                        // it ends when the peer's memory has it; the posting thread's

	// open counts the pieces that are posted and have not ended, and one for
	// the posting thread. Added to by it, taken from by it and the lease holder;
	// sequentially consistent, as failure, which is the first error.
	open    atomic.Int64
	failure atomic.Pointer[error]
}

// devicePiece is one operation of the transport. It is used again when it has ended.
type devicePiece struct {
	done hw.Completion
	op   *deviceOp
}

var devicePieces sync.Pool

func takePiece(op *deviceOp) *devicePiece {
	d, _ := devicePieces.Get().(*devicePiece)
	if d == nil {
		d = &devicePiece{}
		d.done.Func = func(c *hw.Completion) { d.ended(c.Err()) }
	}
	d.op = op
	d.done.Expect(1)
	return d
}

// deviceOps are an endpoint's operations by request. The lock is taken by
// operations that cost several system calls each.
type deviceOps struct {
	mu   sync.Mutex
	list map[uint64]*deviceOp
}

func (d *deviceOps) add(op *deviceOp) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.list == nil {
		d.list = map[uint64]*deviceOp{}
	}
	d.list[op.id] = op
}

func (d *deviceOps) find(id uint64) *deviceOp {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.list[id]
}

func (d *deviceOps) remove(id uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.list, id)
}

// any reports whether there is one.
func (d *deviceOps) any() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.list) != 0
}

// regions takes out what all operations have registered.
func (d *deviceOps) regions() (list []hw.Memory) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, op := range d.list {
		list = append(list, op.regions...)
	}
	d.list = nil
	return list
}

// newDeviceOp prepares an operation for the device. nil: it goes as messages. known: the device's keys are.
func (e *initiator) newDeviceOp(a *RMAArgs, l *link, p *path, total uint64) (op *deviceOp, known bool) {
	if !e.mayTake(a, WayRDMA) || p.keys == nil || e.orderedRMA() || total == 0 || a.Inject || a.HasData ||
		a.Flags&(fi.Inject|fi.RemoteCQData) != 0 || hmem.AnyOnDevice(a.IOV) {
		return nil, false
	}
	op = &deviceOp{e: e, path: p, deliver: a.Flags&fi.DeliveryComplete != 0 && !a.Read}
	known = true
	for i, r := range a.Remote {
		if r.Len != 0 && !e.findKey(l, p, r.Key, &op.keys[i]) {
			known = false // and ask for the others' as well
		}
	}
	if !known {
		return nil, false
	}
	access := hw.Access(0)
	if a.Read {
		access = hw.LocalWrite
	}
	for _, v := range a.IOV {
		if v.Len == 0 {
			continue
		}
		m, err := p.port.device().Register(uint64(v.Base), int(v.Len), access)
		if err != nil {
			rkey.Close(op.regions)
			return nil, true
		}
		op.regions = append(op.regions, m)
	}
	op.open.Store(1)
	return op, true
}

// notByDevice is what becomes of an operation that may go by the device alone and does not: fi.EAGAIN until the peer
// has answered, fi.ENOMEM if own memory cannot be registered, else why the device does not reach the region.
func (p *path) notByDevice(e *Endpoint, a *RMAArgs, known bool) error {
	if known {
		return e.refuse(fi.ENOMEM, "memory for address %d cannot be registered with %s", a.Dest, p.port.attr.DeviceName)
	}
	for _, r := range a.Remote {
		if why := p.keys.Refusal(r.Key); why != fi.Success {
			return e.refuse(why, "region %#x of address %d is not registered with its device", r.Key, a.Dest)
		}
	}
	return fi.EAGAIN
}

// postDevice puts a request into the table and has the device begin with it.
func (e *initiator) postDevice(l *link, r *rmaRequest, op *deviceOp) error {
	lease, ok := e.stripes.Acquire(0)
	if !ok {
		e.stats.Shared(stats.SharedNoStripe, 1)
		rkey.Close(op.regions)
		return fi.EAGAIN
	}
	defer e.stripes.Release(lease)
	req, id, ok := e.rmas.Alloc(lease)
	if !ok {
		e.counts.Add(lease, stats.StripeNoRequest, 1)
		rkey.Close(op.regions)
		return fi.EAGAIN
	}
	req.set(r)
	req.flags |= rmaByDevice
	op.id = id
	e.devices.add(op)
	l.inFlight.Add(1)
	e.counts.OneSided(lease, r.countedAs(), r.operations(), r.total)
	e.stats.Shared(stats.SharedDevice, 1)
	if posted, last := op.post(req); !posted || last {
		e.queueRMA(id)
	}
	return nil
}

// post posts the pieces of an operation that are not, as far as there is room.
// posted: all are. last: and all have ended, so that the lease holder has to
// settle it. The caller owns the request, as for pumpRMA.
func (op *deviceOp) post(req *rmaRequest) (posted, last bool) {
	for op.err() == nil && req.part < req.parts {
		n, err := op.postPiece(req, &req.remote[req.part])
		if errors.Is(err, hw.ErrNoResource) {
			return false, false
		}
		if err != nil {
			op.fail(err)
			break
		}
		req.sent += n
		req.done += n
		if req.sent == req.remote[req.part].Len {
			req.part++
			req.sent = 0
		}
	}
	if op.deliver && op.err() == nil {
		err := op.start(func(c *hw.Completion) (hw.Status, error) {
			return op.path.Endpoint.(hw.Flusher).Flush(hw.FlushRemote, c)
		})
		if errors.Is(err, hw.ErrNoResource) {
			return false, false
		}
		if err != nil {
			op.fail(err)
		}
		op.deliver = false
	}
	return true, op.open.Add(-1) == 0
}

// postPiece posts the next piece of a part and returns its bytes.
func (op *deviceOp) postPiece(req *rmaRequest, part *fi.RMAIOVec) (uint64, error) {
	if req.sent == part.Len {
		return 0, nil
	}
	var room [wire.IOVLimit]hw.Segment
	local, n := op.gather(room[:0], req, req.done, part.Len-req.sent)
	addr, key := part.Addr+req.sent, op.keys[req.part]
	return n, op.start(func(c *hw.Completion) (hw.Status, error) { return op.move(req, local, addr, key, c) })
}

// gather appends the local memory of the next operation of the device to local: that
// from byte at of the request on, of which most bytes are left. n is its length.
func (op *deviceOp) gather(local []hw.Segment, req *rmaRequest, at, most uint64) (_ []hw.Segment, n uint64) {
	a := &op.path.port.attr
	limit := a.MaxPutZcopy
	if req.flags&rmaIsRead != 0 {
		limit = a.MaxGetZcopy
	}
	var pieces [wire.IOVLimit]fi.IOVec
	used := window(pieces[:0], req.iov[:req.count], at, min(most, limit, devicePieceBytes))
	for _, v := range used[:min(len(used), a.MaxIOV)] {
		local = append(local,
			hw.Segment{Addr: pointerAt(uint64(v.Base)), Len: int(v.Len), Memory: regionOf(op.regions, v)})
		n += v.Len
	}
	return local, n
}

// move has the device read or write.
func (op *deviceOp) move(req *rmaRequest, local []hw.Segment, addr uint64, key hw.RemoteKey,
	c *hw.Completion) (hw.Status, error) {
	o := op.path.Endpoint.(hw.OneSided)
	if req.flags&rmaIsRead != 0 {
		return o.GetZcopy(local, addr, key, c)
	}
	return o.PutZcopy(local, addr, key, c)
}

// regionOf is the registration of local memory.
func regionOf(regions []hw.Memory, v fi.IOVec) hw.Memory {
	return rkey.Covering(regions, v.Base, v.Len)
}

// start starts one operation of the transport.
func (op *deviceOp) start(f func(*hw.Completion) (hw.Status, error)) error {
	d := takePiece(op)
	op.open.Add(1) // before it can end
	status, err := f(&d.done)
	if err != nil || status == hw.Done {
		op.open.Add(-1) // it is not the last: the posting thread counts too
		d.op = nil
		devicePieces.Put(d)
	}
	return err
}

// ended takes in that a piece has ended. The transport calls it under the
// progress lease, or while the endpoint closes.
func (d *devicePiece) ended(err error) {
	op := d.op
	d.op = nil
	devicePieces.Put(d)
	if err != nil {
		op.fail(err)
	}
	if op.open.Add(-1) == 0 && op.e.state.Load() != stateClosed {
		op.settle()
	}
}

func (op *deviceOp) fail(err error) { op.failure.CompareAndSwap(nil, &err) }

func (op *deviceOp) err() error {
	if p := op.failure.Load(); p != nil {
		return *p
	}
	return nil
}

// settle ends an operation whose pieces have ended: its request completes, or
// begins anew as messages if the device refused it. The caller holds the progress
// lease.
func (op *deviceOp) settle() {
	e := op.e
	e.devices.remove(op.id)
	rkey.Close(op.regions)
	req, known := e.rmas.Lookup(op.id)
	if !known {
		return
	}
	switch err := op.err(); {
	case err == nil:
		e.finishRMA(req, op.id, fi.Success)
	case errors.Is(err, hw.ErrPeerDead), errors.Is(err, hw.ErrCanceled):
		e.finishRMA(req, op.id, fi.ECONNRESET)
	default:
		op.forgetKeys(req)
		req.byMessages()
		e.enqueueRMA(op.id)
	}
}

// forgetKeys drops the keys of a request that the device refused.
func (op *deviceOp) forgetKeys(req *rmaRequest) {
	for i := range req.remote[:req.parts] {
		key := req.remote[i].Key
		op.e.opened.refused(op.path, key)
		op.path.keys.Forget(key)
	}
}

// byMessages makes a request that the device did not do one that goes as messages.
func (req *rmaRequest) byMessages() {
	req.flags &^= rmaByDevice
	req.part, req.sent, req.done = 0, 0, 0
	req.dropEmpty()
}

// pumpDevice goes on with a queued operation of the device, and reports whether
// progress is done with it. The caller holds the progress lease.
func (e *txRequests) pumpDevice(req *rmaRequest, id uint64) bool {
	op := e.devices.find(id)
	if op == nil || op.open.Load() == 0 { // all was posted, and had ended at once
		if op != nil {
			op.settle()
		}
		return true
	}
	if err := op.path.Err(); err != nil {
		op.fail(err)
	}
	posted, last := op.post(req)
	if last {
		op.settle()
	}
	return posted
}
