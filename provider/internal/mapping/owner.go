package mapping

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// The owner's side, by the process's descriptor thread: it says where regions are that others map, and copies between
// regions and memory of devices of the process that asks, without progress of the region's owner. That may wait, so a
// goroutine does it.

// owner answers other processes for this one.
type owner struct{ Process }

// Serve has p answer other processes. It is called before the first domain is opened.
func Serve(p Process) {
	o := owner{p}
	hmem.Answer(proxy.KindRegion, o.answerRegion)
	hmem.Answer(proxy.KindCopy, o.answerCopy)
}

// answerRegion says to another process how to map a region, or why it cannot.
func (o owner) answerRegion(r *proxy.Request) {
	var q wire.RegionRequest
	if !q.Parse(r.Body) {
		r.Reply(proxy.StatusBad, nil)
		return
	}
	answer, status := o.locate(&q, r.PID)
	if status != proxy.StatusOK {
		r.Reply(status, nil)
		return
	}
	r.Reply(status, answer.Append(nil))
}

// locate says where a region is that a process asks for.
func (o owner) locate(q *wire.RegionRequest, pid int) (answer wire.RegionAnswer, status proxy.Status) {
	m, status := o.Region(q.Incarnation, q.Key, q.Rights)
	if status != proxy.StatusOK {
		return answer, status
	}
	defer m.Leave()
	addr := m.At(q.Addr)
	if !hmem.OnDevice(m.First()) || !m.Covers(q.Addr, q.Length) {
		return answer, proxy.StatusRefused
	}
	buffer := hmem.BufferOf(addr, q.Length)
	if m.Buffer() != buffer {
		log.Warnf(log.MR, "process %d asks for region %#x, whose memory was freed", pid, q.Key)
		return answer, proxy.StatusStale
	}
	handle, offset, ok := m.Domain().Share(addr, q.Length)
	if !ok {
		m.Hide()
		return answer, proxy.StatusRefused
	}
	return wire.RegionAnswer{Token: handle, Buffer: buffer, Offset: offset}, proxy.StatusOK
}

// answerCopy copies for another process.
func (o owner) answerCopy(r *proxy.Request) {
	var q wire.CopyRequest
	if !q.Parse(r.Body) {
		r.Reply(proxy.StatusBad, nil)
		return
	}
	go func() { r.Reply(o.performCopy(&q, r.PID), nil) }()
}

// performCopy copies what a process asks for.
func (o owner) performCopy(q *wire.CopyRequest, pid int) proxy.Status {
	m, status := o.Region(q.Incarnation, q.Key, q.Rights)
	if status != proxy.StatusOK {
		return status
	}
	d := m.Domain()
	m.Leave() // what follows may wait
	if !d.device || d.cfg.HMEMMapSize == 0 {
		return proxy.StatusRefused
	}
	from := cuda.Foreign{PID: pid, Token: q.Token, Buffer: q.Buffer}
	use, err := d.importer.Acquire(from, d.limits(), 0, cuda.Load() == nil)
	if err != nil {
		log.Infof(log.MR, "map memory of process %d, which asks for copies: %v", pid, err)
		return proxy.StatusNone
	}
	defer use.Release()
	if m, status = o.Region(q.Incarnation, q.Key, q.Rights); status != proxy.StatusOK {
		return status
	}
	defer m.Leave()
	if err := copyPieces(q, m, use); err != nil {
		log.Warnf(log.MR, "copy between region %#x and memory of process %d: %v", q.Key, pid, err)
		return proxy.StatusRefused
	}
	return proxy.StatusOK
}

// copyPieces copies the pieces of a request between a region and an allocation.
func copyPieces(q *wire.CopyRequest, m Own, use *cuda.Use) error {
	f := use.Mapping().(*hmem.Mapping)
	write := q.Rights&fi.RemoteWrite != 0
	if hmem.OnDevice(m.First()) || !write && !f.Writable() {
		return fi.EACCES
	}
	from := region{use: use}
	var batch cuda.Batch
	var outside, driver error // of a piece, of a copy
	for _, p := range q.Pieces {
		if p.Offset > f.Size() || p.N > f.Size()-p.Offset || !m.Covers(p.Addr, p.N) {
			outside = fmt.Errorf("%d bytes at %#x and %d of %d: %w", p.N, p.Addr, p.Offset, f.Size(), fi.EACCES)
			break
		}
		el := dataplane.Element{Local: m.At(p.Addr), Remote: p.Offset, Len: p.N}
		if driver = from.copy(&batch, &el, write); driver != nil {
			break
		}
	}
	// those that are begun may fail, too
	if driver = errors.Join(driver, batch.Wait()); driver != nil {
		use.Fail()
	}
	return errors.Join(outside, driver)
}
