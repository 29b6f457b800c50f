package provider

import (
	"errors"
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Elements of lists with memory of a device at the initiator and of this process here, which the initiator asks this
// process to copy (package list): the descriptor thread takes the request, and a goroutine copies, without progress of
// the owner of the region.

// Ask asks a process to copy.
func (l listEndpoint) Ask(pid int, q *wire.CopyRequest) error {
	_, err := hmem.Ask(pid, proxy.KindCopy, q.Append(nil))
	return err
}

// offer lets peers on this host ask to map the region, if it is a device's, and else for copies between it and memory
// of a device of theirs.
func (m *MR) offer() {
	d := m.domain
	if !d.hmem() || !m.region.Remote() || d.cfg.HMEMMapSize == 0 || d.cfg.Service == config.No {
		return
	}
	if err := d.importer.Enter(); err != nil {
		log.Infof(log.MR, "peers reach region %#x, or memory of devices from it, by messages: %v", m.key, err)
	}
}

// answerCopy copies for another process.
func answerCopy(r *proxy.Request) {
	var q wire.CopyRequest
	if !q.Parse(r.Body) {
		r.Reply(proxy.StatusBad, nil)
		return
	}
	go func() { r.Reply(performCopy(&q, r.PID), nil) }()
}

// performCopy copies what a process asks for.
func performCopy(q *wire.CopyRequest, pid int) proxy.Status {
	m, status := regionOfToken(q.Incarnation, q.Key, q.Rights)
	if m == nil {
		return status
	}
	d := m.Owner.domain
	m.Gate.Leave() // what follows may wait
	if !d.hmem() || d.cfg.HMEMMapSize == 0 {
		return proxy.StatusRefused
	}
	from := cuda.Foreign{PID: pid, Token: q.Token, Buffer: q.Buffer}
	use, err := d.importer.Acquire(from, d.ipcLimits(), 0, cuda.Load() == nil)
	if err != nil {
		log.Infof(log.MR, "map memory of process %d, which asks for copies: %v", pid, err)
		return proxy.StatusNone
	}
	defer use.Release()
	if m, status = regionOfToken(q.Incarnation, q.Key, q.Rights); m == nil {
		return status
	}
	defer m.Gate.Leave()
	if err := copyPieces(q, m, use); err != nil {
		log.Warnf(log.MR, "copy between region %#x and memory of process %d: %v", q.Key, pid, err)
		return proxy.StatusRefused
	}
	return proxy.StatusOK
}

// copyPieces copies the pieces of a request between a region and an allocation.
func copyPieces(q *wire.CopyRequest, m *peerRegion, use *cuda.Use) error {
	f := use.Mapping().(*hmem.Mapping)
	write := q.Rights&fi.RemoteWrite != 0
	if hmem.OnDevice(uint64(m.Memory.Parts[0].Base)) || !write && !f.Writable() {
		return fi.EACCES
	}
	from := mappedRegion{use: use}
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
