package provider

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/hmem"
)

// Elements with memory of a device here and of another process there. That process copies them, from or to a mapping of
// this one's allocation: its descriptor thread is asked to, and a goroutine there does it, without progress of the
// owner. What the owner does not do goes as messages.

const (
	// delegatedBytes bounds the bytes of one request: for as long the owner's region stays open, and other requests
	// wait.
	delegatedBytes = 16 << 20

	delegatedHead = 40
	delegatedEach = 24
)

// delegatedPiece is n bytes of a request.
type delegatedPiece struct {
	offset, addr, n uint64 // in the allocation; by which the owner's region is named
}

// delegatedRequest asks the owner of a region to copy between it and an allocation of the process that asks:
//
//	incarnation:8 | key:8 | rights:8 | token:8 | buffer:8 | pieces of 24 bytes: offset:8 | address:8 | length:8
//
// in little endian. With fi.RemoteWrite the region is written. The answer says by its status alone whether all is
// copied.
type delegatedRequest struct {
	incarnation, key, rights uint64
	token, buffer            uint64 // of the allocation
	pieces                   []delegatedPiece
}

func (q *delegatedRequest) append(b []byte) []byte {
	for _, v := range [...]uint64{q.incarnation, q.key, q.rights, q.token, q.buffer} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for i := range q.pieces {
		for _, v := range [...]uint64{q.pieces[i].offset, q.pieces[i].addr, q.pieces[i].n} {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	return b
}

// parse takes a request. False: it is none.
func (q *delegatedRequest) parse(b []byte) bool {
	n := len(b) - delegatedHead
	if n <= 0 || n%delegatedEach != 0 {
		return false
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	*q = delegatedRequest{incarnation: word(0), key: word(1), rights: word(2), token: word(3), buffer: word(4)}
	for i := delegatedHead / 8; i < len(b)/8; i += 3 {
		q.pieces = append(q.pieces, delegatedPiece{word(i), word(i + 1), word(i + 2)})
	}
	return true
}

// delegation are elements that owners are asked to copy, of one post.
type delegation struct {
	op      *listOp
	pid     int
	request delegatedRequest
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
	if l.pid != m.pid || l.request.key != m.key || !l.from.Has(el.Local, el.Len) {
		l.flush()
		from, ok := l.op.list.ep.domain.exportedAt(el.Local, el.Len)
		if !ok {
			l.left = append(l.left, n)
			return
		}
		l.pid, l.from = m.pid, from
		l.request = delegatedRequest{
			incarnation: m.incarnation, key: m.key, rights: m.rights, token: from.Token, buffer: from.Buffer,
		}
	}
	whole := true
	for at := uint64(0); at < el.Len; {
		if len(l.request.pieces) == batchElements || l.bytes == delegatedBytes {
			whole = l.flush() && whole
		}
		k := min(el.Len-at, delegatedBytes-l.bytes)
		l.request.pieces = append(l.request.pieces, delegatedPiece{el.Local - l.from.Base + at, el.Remote + at, k})
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
	if len(l.request.pieces) != 0 {
		_, err = hmem.Ask(l.pid, proxy.KindCopy, l.request.append(nil))
	}
	if err != nil {
		log.Infof(log.EPData, "memory of a device goes as messages: %v", err)
		l.left = append(l.left, l.numbers...)
	} else {
		l.copied += uint64(len(l.numbers))
		l.done += l.whole
	}
	l.request.pieces, l.bytes = l.request.pieces[:0], 0
	l.numbers, l.whole = l.numbers[:0], 0
	return err == nil
}

// offer lets peers on this host ask to map the region, if it is a device's, and else for copies between it and memory
// of a device of theirs.
func (m *MR) offer() {
	d := m.domain
	if !d.hmem() || !m.remote() || d.cfg.HMEMMapSize == 0 || d.cfg.Service == config.No {
		return
	}
	if err := d.importer.Enter(); err != nil {
		log.Infof(log.MR, "peers reach region %#x, or memory of devices from it, by messages: %v", m.key, err)
	}
}

// answerCopy copies for another process.
func answerCopy(r *proxy.Request) {
	var q delegatedRequest
	if !q.parse(r.Body) {
		r.Reply(proxy.StatusBad, nil)
		return
	}
	go func() { r.Reply(q.perform(r.PID), nil) }()
}

// perform copies what a process asks for.
func (q *delegatedRequest) perform(pid int) proxy.Status {
	m, status := regionOfToken(q.incarnation, q.key, q.rights)
	if m == nil {
		return status
	}
	d := m.domain
	m.gate.Leave() // what follows may wait
	if !d.hmem() || d.cfg.HMEMMapSize == 0 {
		return proxy.StatusRefused
	}
	use, err := d.importer.Acquire(cuda.Foreign{PID: pid, Token: q.token, Buffer: q.buffer}, d.ipcLimits(), 0, cuda.Load() == nil)
	if err != nil {
		log.Infof(log.MR, "map memory of process %d, which asks for copies: %v", pid, err)
		return proxy.StatusNone
	}
	defer use.Release()
	if m, status = regionOfToken(q.incarnation, q.key, q.rights); m == nil {
		return status
	}
	defer m.gate.Leave()
	if err := q.copy(m, use); err != nil {
		log.Warnf(log.MR, "copy between region %#x and memory of process %d: %v", q.key, pid, err)
		return proxy.StatusRefused
	}
	return proxy.StatusOK
}

// copy copies the pieces between a region and an allocation.
func (q *delegatedRequest) copy(m *MR, use *cuda.Use) error {
	f := use.Mapping().(*hmem.Mapping)
	write := q.rights&fi.RemoteWrite != 0
	if hmem.OnDevice(uint64(m.parts[0].Base)) || !write && !f.Writable() {
		return fi.EACCES
	}
	from := mappedRegion{use: use}
	var batch cuda.Batch
	var err error
	for _, p := range q.pieces {
		if p.offset > f.Size() || p.n > f.Size()-p.offset || !m.covers(p.addr, p.n) {
			err = fmt.Errorf("%d bytes at %#x and %d of %d: %w", p.n, p.addr, p.offset, f.Size(), fi.EACCES)
			break
		}
		el := dataplane.Element{Local: uint64(m.parts[0].Base) + (p.addr - m.base), Remote: p.offset, Len: p.n}
		if err = from.copy(&batch, &el, write); err != nil {
			break
		}
	}
	if e := batch.Wait(); err == nil {
		err = e
	}
	return err
}
