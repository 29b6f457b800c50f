package rma

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/slots"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Where a transport's device reads and writes the memory of peers, it does the reads
// and writes of the application, and the peer's process has no part in them. That
// needs the device's key of the peer's region (package rkey) and a registration of
// the own memory; an operation that finds one of them missing goes as messages,
// and so does one that the device refuses: then the peer's process says why.
// Atomics always go as messages, because a device's are not atomic with respect to
// the processors, which perform those of peers on the target's host.

// deviceOp is a read or write that a device does, in pieces. Its request has no
// claim to live: the operation ends it when all of its pieces have ended. It is used again then.
type deviceOp struct {
	in      *Initiator
	id      uint64
	slot    uint32                      // among the endpoint's; set once it has one, by the posting thread
	path    *Path                       // over which its pieces go
	keys    [wire.IOVLimit]hw.RemoteKey // of the request's remote elements
	local   [wire.IOVLimit]rkey.Local   // its memory on this side
	locals  int                         // how many of these there are
	room    [wire.IOVLimit]hw.Segment   // for the next piece; the owner of the request has it
	more    bool                        // the device may keep it for the next one; the posting thread's
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

var devicePieces, spareOps sync.Pool

// takeOp returns an operation over a path, without keys and local memory.
func takeOp(in *Initiator, p *Path, deliver bool) *deviceOp {
	op, _ := spareOps.Get().(*deviceOp)
	if op == nil {
		op = &deviceOp{}
	}
	op.in, op.path, op.deliver = in, p, deliver
	op.open.Store(1)
	return op
}

// use has the transport's device know local memory, of which it knows that of a list already, if there is some.
func (op *deviceOp) use(iov []fi.IOVec, access hw.Access, listed *rkey.Local) error {
	d := op.path.On.Device
	for _, v := range iov {
		if v.Len == 0 {
			continue
		}
		l := &op.local[op.locals]
		var err error
		if listed != nil && listed.Has(uint64(v.Base), v.Len) {
			*l = listed.Part(uint64(v.Base), v.Len)
		} else if *l, err = d.Use(uint64(v.Base), v.Len, access); err != nil {
			return err
		}
		op.locals++
	}
	return nil
}

// leave gives the local memory back.
func (op *deviceOp) leave() {
	d := op.path.On.Device
	for i := range op.local[:op.locals] {
		d.Leave(&op.local[i])
	}
	op.locals = 0
}

// drop gives the operation back, which nothing refers to any more.
func (op *deviceOp) drop() {
	op.leave()
	op.in, op.path, op.id = nil, nil, 0
	op.keys, op.room = [wire.IOVLimit]hw.RemoteKey{}, [wire.IOVLimit]hw.Segment{}
	op.failure.Store(nil)
	spareOps.Put(op)
}

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

// deviceOps are an endpoint's operations by the slots that their requests name. They enter with the post, and leave
// under the progress lease.
type deviceOps struct {
	under slots.Table[deviceOp]
	// count is how many there are. Added to by posts, taken off by the lease holder, read by any thread; sequentially
	// consistent.
	count atomic.Int64
}

// add enters an operation. False: there are slots.Max of them.
func (d *deviceOps) add(op *deviceOp) (slot uint32, ok bool) {
	if slot, ok = d.under.Take(op); ok {
		d.count.Add(1)
	}
	return slot, ok
}

// find returns the operation of a request, nil: it has left.
func (d *deviceOps) find(req *Request, id uint64) *deviceOp {
	if op := d.under.At(uint64(req.by)); op != nil && op.id == id {
		return op
	}
	return nil
}

func (d *deviceOps) remove(slot uint32) {
	d.under.Give(slot)
	d.count.Add(-1)
}

// any reports whether there is one.
func (d *deviceOps) any() bool { return d.count.Load() != 0 }

// leave gives the local memory of all operations back. Nothing is posted any more, and none ends.
func (d *deviceOps) leave() {
	d.under.Each(func(op *deviceOp) bool {
		op.leave()
		return true
	})
	d.under = slots.Table[deviceOp]{}
	d.count.Store(0)
}

// deviceLeads reports whether an operation may go to a path by an RDMA device, as soon as its key is known.
func (in *Initiator) deviceLeads(a *Operation, p *Path) bool {
	return in.mayTake(a.Listed, list.WayRDMA) && p.Keys != nil && !in.rules.On() &&
		(!hmem.AnyOnDevice(a.IOV) || in.host.PeerToPeer() && p.On.reachesDevices())
}

// newDeviceOp prepares an operation for the device. nil: it goes as messages, as the peer's region is not for the
// device, or is not known to be, or, with an error, as memory on this side cannot be registered.
func (in *Initiator) newDeviceOp(a *Operation, l *Link, p *Path, total uint64) (*deviceOp, error) {
	if !in.deviceLeads(a, p) || total == 0 || a.Injects() || a.WithData() {
		return nil, nil
	}
	op := takeOp(in, p, a.Flags&fi.DeliveryComplete != 0 && !a.Read && !a.Later)
	op.more = a.More
	known := true
	for i, r := range a.Remote {
		if r.Len != 0 && !in.host.FindKey(l, p, r.Key, &op.keys[i]) {
			known = false // and ask for the others' as well
		}
	}
	if !known {
		op.drop()
		return nil, nil
	}
	access := hw.Access(0)
	if a.Read {
		access = hw.LocalWrite
	}
	if err := op.use(a.IOV, access, a.Local); err != nil {
		op.drop()
		return nil, err
	}
	return op, nil
}

// notByDevice is what becomes of an operation that may go by the device alone and does not, for which err is of
// newDeviceOp: fi.EAGAIN until the peer has answered, fi.ENOMEM if there is no room for own memory, fi.EOPNOTSUPP if
// the device does not reach that, else why it does not reach the region.
func notByDevice(p *Path, a *Operation, err error) error {
	if err != nil {
		errno := fi.ENOMEM
		if errors.Is(err, hw.ErrNoDMABuf) || errors.Is(err, hw.ErrInvalid) {
			errno = fi.EOPNOTSUPP
		}
		return log.Reject(log.EPData, errno, "memory for address %d: %v", a.Dest, err)
	}
	for _, r := range a.Remote {
		if why := p.Keys.Refusal(r.Key); why != fi.Success {
			return log.Reject(log.EPData, why,
				"region %#x of address %d is not registered with its device", r.Key, a.Dest)
		}
	}
	return fi.EAGAIN
}

// postDevice puts a request into the table and has the device begin with it.
func (in *Initiator) postDevice(l *Link, r *Request, op *deviceOp) error {
	req, id, lease, ok := in.alloc()
	if !ok {
		op.drop()
		return fi.EAGAIN
	}
	defer in.stripes.Release(lease)
	op.id = id
	slot, ok := in.devices.add(op)
	if !ok {
		in.requests.Free(id)
		op.drop()
		return fi.EAGAIN
	}
	req.set(r)
	req.flags |= flagByDevice
	req.by, op.slot = slot, slot
	l.InFlight.Add(1)
	in.counts.OneSided(lease, r.countedAs(), r.operations(), r.total)
	in.counts.Shared(stats.SharedDevice, 1)
	if posted, last := op.post(req); !posted || last {
		in.leaveToProgress(id)
	}
	return nil
}

// post posts the pieces of an operation that are not, as far as there is room.
// posted: all are. last: and all have ended, so that the lease holder has to
// settle it. The caller owns the request, as for pump.
func (op *deviceOp) post(req *Request) (posted, last bool) {
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
		d := op.begin()
		status, err := op.path.Endpoint.(hw.Flusher).Flush(hw.FlushMemory, &d.done)
		if err = op.begun(d, status, err); errors.Is(err, hw.ErrNoResource) {
			return false, false
		} else if err != nil {
			op.fail(err)
		}
		op.deliver = false
	}
	return true, op.open.Add(-1) == 0
}

// errNoPiece is why an operation fails of which the device's limits leave nothing for one operation of the transport.
var errNoPiece = fmt.Errorf("rma: the device moves no bytes in an operation: %w", hw.ErrInvalid)

// postPiece posts the next piece of a part and returns its bytes.
func (op *deviceOp) postPiece(req *Request, part *fi.RMAIOVec) (uint64, error) {
	if req.sent == part.Len {
		return 0, nil
	}
	local, n := op.gather(req, req.done, part.Len-req.sent)
	if n == 0 {
		return 0, errNoPiece
	}
	d := op.begin()
	status, err := op.move(req, local, part.Addr+req.sent, op.keys[req.part], &d.done)
	return n, op.begun(d, status, err)
}

// gather returns the local memory of the next operation of the device, until it is called again: that
// from byte at of the request on, of which most bytes are left. n is its length, 0: the device has no room for a piece.
func (op *deviceOp) gather(req *Request, at, most uint64) (local []hw.Segment, n uint64) {
	a := op.path.On.Attr
	limit := a.MaxPutZcopy
	if req.flags&flagIsRead != 0 {
		limit = a.MaxGetZcopy
	}
	var pieces [wire.IOVLimit]fi.IOVec
	used := vector.Window(pieces[:0], req.iov[:req.count], at, min(most, limit, rendezvous.PieceBytes))
	local = op.room[:0]
	for _, v := range used[:min(len(used), a.MaxIOV)] {
		local = append(local, hw.Segment{Addr: mem.Pointer(uint64(v.Base)), Len: int(v.Len), Memory: op.memoryOf(v)})
		n += v.Len
	}
	return local, n
}

// move has the device read or write.
func (op *deviceOp) move(req *Request, local []hw.Segment, addr uint64, key hw.RemoteKey,
	c *hw.Completion) (hw.Status, error) {
	o := op.path.Endpoint.(hw.OneSided)
	if req.flags&flagIsRead != 0 {
		return o.GetZcopy(local, addr, key, c)
	}
	return o.PutZcopy(local, addr, key, c)
}

// memoryOf is the registration of local memory, nil: there is none.
func (op *deviceOp) memoryOf(v fi.IOVec) hw.Memory {
	for i := range op.local[:op.locals] {
		if l := &op.local[i]; l.Has(uint64(v.Base), v.Len) {
			return l.Memory()
		}
	}
	return nil
}

// begin counts an operation of the transport that is about to start.
func (op *deviceOp) begin() *devicePiece {
	d := takePiece(op)
	d.done.More = op.more
	op.open.Add(1) // before it can end
	return d
}

// begun takes in what the transport says to the start of an operation, and returns its error. One that is in progress
// may have ended, and be used again.
func (op *deviceOp) begun(d *devicePiece, status hw.Status, err error) error {
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
	if op.open.Add(-1) == 0 && !op.in.host.Closed() {
		op.settle(op.in.leased.Taken())
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
// begins anew as messages if the device refused it.
func (op *deviceOp) settle(pr *Protocol) {
	in, id, err := op.in, op.id, op.err()
	req, known := in.requests.Lookup(id)
	in.devices.remove(op.slot)
	refused := err != nil && !errors.Is(err, hw.ErrPeerDead) && !errors.Is(err, hw.ErrCanceled)
	if known && refused {
		op.forgetKeys(req)
	}
	op.drop() // the memory is the application's when the request completes
	switch {
	case !known:
	case err == nil:
		pr.end(req, id, fi.Success)
	case refused:
		req.byMessages()
		in.enqueue(id)
	default:
		pr.end(req, id, fi.ECONNRESET)
	}
}

// forgetKeys drops the keys of a request that the device refused.
func (op *deviceOp) forgetKeys(req *Request) {
	for i := range req.remote[:req.parts] {
		key := req.remote[i].Key
		op.in.host.KeyRefused(op.path, key)
		op.path.Keys.Forget(key)
	}
}

// FlushDevice puts what the path's device has written in its place in the peer's memory. True: it has. Else, without an
// error, ended is called when it has, unless the endpoint is closed. Errors: fi.EAGAIN, fi.ECONNRESET.
func (in *Initiator) FlushDevice(p *Path, ended func(error)) (done bool, err error) {
	lost := func(err error) error {
		if err == nil {
			return nil
		}
		return fi.ECONNRESET
	}
	c := &hw.Completion{Func: func(c *hw.Completion) {
		if !in.host.Closed() {
			ended(lost(c.Err()))
		}
	}}
	c.Expect(1)
	status, err := p.Endpoint.(hw.Flusher).Flush(hw.FlushMemory, c)
	if errors.Is(err, hw.ErrNoResource) {
		return false, fi.EAGAIN
	}
	return status == hw.Done, lost(err)
}

// pumpDevice goes on with a queued operation of the device, and reports whether
// progress is done with it. The caller holds the progress lease.
func (pr *Protocol) pumpDevice(req *Request, id uint64) bool {
	op := pr.in.devices.find(req, id)
	if op == nil || op.open.Load() == 0 { // all was posted, and had ended at once
		if op != nil {
			op.settle(pr)
		}
		return true
	}
	if err := op.path.Err(); err != nil {
		op.fail(err)
	}
	op.more = false // what was to follow has, or the thread has given up
	posted, last := op.post(req)
	if last {
		op.settle(pr)
	}
	return posted
}
