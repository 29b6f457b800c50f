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
	"github.com/weft-fabric/weft/provider/hmem"
	"github.com/weft-fabric/weft/provider/wire"
)

// Elements with memory of a device here and of another process there. That process copies them, from or to a mapping of
// this one's allocation: its descriptor thread is asked to, and a goroutine there does it, without progress of the
// owner. What the owner does not do goes as messages.

// delegatedBytes bounds the bytes of one request: for as long the owner's region stays open, and other requests wait.
const delegatedBytes = 16 << 20

// delegation are elements that owners are asked to copy, of one post.
type delegation struct {
	op      *listOp
	pid     int
	request wire.CopyRequest
	from    hmem.Exported // the allocation that the pieces are in
	bytes   uint64        // of the pieces
	numbers []uint32      // the elements that end with the request
	whole   uint64        // bytes of them
	left    []uint32      // elements that go as messages
	copied  uint64        // elements that are copied
	done    uint64        // bytes of them
}

// add has an element of a region copied, now or with the next request.
func (l *delegation) add(n uint32, el *dataplane.Element, m *mappedRegion) {
	if l.pid != m.pid || l.request.Key != m.ask.Key || !l.from.Has(el.Local, el.Len) {
		l.flush()
		from, ok := l.op.list.ep.domain.exportedAt(el.Local, el.Len)
		if !ok {
			l.left = append(l.left, n)
			return
		}
		l.pid, l.from = m.pid, from
		l.request = wire.CopyRequest{
			Incarnation: m.ask.Incarnation, Key: m.ask.Key, Rights: m.ask.Rights,
			Token: from.Token, Buffer: from.Buffer,
		}
	}
	whole := true
	for at := uint64(0); at < el.Len; {
		if len(l.request.Pieces) == batchElements || l.bytes == delegatedBytes {
			whole = l.flush() && whole
		}
		k := min(el.Len-at, delegatedBytes-l.bytes)
		piece := wire.CopyPiece{Offset: el.Local - l.from.Base + at, Addr: el.Remote + at, N: k}
		l.request.Pieces = append(l.request.Pieces, piece)
		l.bytes += k
		at += k
	}
	if !whole {
		l.left = append(l.left, n)
		return
	}
	l.numbers = append(l.numbers, n)
	l.whole += el.Len
}

// flush asks for what is entered, and reports whether it is copied. An element of which a piece is still to be entered
// is not among numbers.
func (l *delegation) flush() bool {
	var err error
	if len(l.request.Pieces) != 0 {
		_, err = hmem.Ask(l.pid, proxy.KindCopy, l.request.Append(nil))
	}
	if err != nil {
		log.Infof(log.EPData, "memory of a device goes as messages: %v", err)
		l.left = append(l.left, l.numbers...)
	} else {
		l.copied += uint64(len(l.numbers))
		l.done += l.whole
	}
	l.request.Pieces, l.bytes = l.request.Pieces[:0], 0
	l.numbers, l.whole = l.numbers[:0], 0
	return err == nil
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
