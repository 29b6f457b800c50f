package udp

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
)

// delivery is what the progress lease protects.
type delivery struct {
	handlers [hw.MaxAM]hw.Handler
	list     []*Endpoint // with records to deliver
	visited  []*Endpoint // that delivered: their peers get new credit
	sources  []*Endpoint // by hw.Source; nil: free
	events   []hw.PeerEvent
	ended    []ended // operations whose completions are to be updated
	idle     uint32  // polls in a row that found nothing
	// postponed says that the handler at work leaves its message in the stream.
	postponed bool
}

// delivered is how far a connection's stream is delivered. It belongs to the
// progress lease, but for consumed.
type delivered struct {
	// consumed is the end of what was delivered, an offset in the stream. Written by the holder of the progress lease
	// (release), read with the stripe's lease.
	consumed atomic.Uint64
	source   hw.Source
	known    bool     // source is valid
	broken   bool     // a record is malformed: no more are delivered
	visited  bool     // in delivery.visited
	spent    bool     // nothing more to deliver: off delivery.list
	replies  []uint32 // flushes of the peer to be answered; moved to sender.replies by answered
	results  []uint32 // flushes of ours that are answered, likewise
	owed     int32    // length of sender.replies as last seen
	// CheckPeers reported the endpoint, or there was nothing to report; written with Iface.mu, read by any thread
	reported atomic.Bool
}

// recordOf is the largest record in bytes of messages with n bytes of payload at most.
func recordOf(n int) int {
	return (recordHeader+max(maxShort, maxHead+n)+recordAlign-1)&^(recordAlign-1) + recordAlign
}

// mostPayload is what a message that comes may have, in bytes.
func (i *Iface) mostPayload() int { return max(maxShort, i.cfg.Window/4) }

// maxRecord is the largest record that is taken, in bytes. What is sent is no larger.
func (i *Iface) maxRecord() int { return recordOf(i.cfg.Window / 4) }

// record is a parsed record header.
type record struct {
	kind uint8
	id   hw.AMID
	head int
	n    int
	size int // in the stream
	word uint64
}

// putRecord writes a record header into b.
func putRecord(b []byte, id hw.AMID, head, n int, word uint64) {
	binary.LittleEndian.PutUint32(b, uint32(n))
	binary.LittleEndian.PutUint16(b[4:], uint16(head))
	b[6], b[7] = byte(id), 0
	binary.LittleEndian.PutUint64(b[8:], word)
}

// recordSize is the size of a record in the stream.
func recordSize(head, n int) int {
	return (recordHeader + head + n + recordAlign - 1) &^ (recordAlign - 1)
}

// record parses the header of the next record. It returns false if the record
// has not arrived completely. A malformed one is returned with size 0. The
// caller holds the progress lease, or the stripe's while nothing delivers.
func (c *Endpoint) record() (record, bool) {
	at := c.deliver.consumed.Load()
	have := c.rx.contig.Load() - at
	if have < recordHeader {
		return record{}, false
	}
	c.rx.ring.unfold(at, recordHeader)
	b := c.rx.ring.at(at, recordHeader)
	n, head := binary.LittleEndian.Uint32(b), int(binary.LittleEndian.Uint16(b[4:]))
	r := record{kind: b[7], id: hw.AMID(b[6]), head: head, n: int(n), word: binary.LittleEndian.Uint64(b[8:])}
	if n > uint32(c.i.mostPayload()) || head > maxShort || r.id >= hw.MaxAM || r.kind >= recordKinds ||
		r.kind != recordMessage && head != 0 {
		return record{}, true
	}
	r.size = recordSize(head, int(n))
	if r.size > c.i.maxRecord() {
		return record{}, true
	}
	return r, have >= uint64(r.size)
}

// Progress delivers up to limit arrived messages and returns how many, ended operations included. While nothing has
// come for long it does not poll the sockets each time. The caller holds the progress lease.
func (i *Iface) Progress(limit int) int {
	d := &i.deliver
	if i.closed.Load() {
		return 0
	}
	d.idle++
	if d.idle > coldAfter && d.idle%coldStep != 0 && !i.anyReady() {
		return 0
	}
	for _, s := range i.stripes {
		if !s.lease.try() {
			continue // another thread posts or polls
		}
		if d.idle > 1 && d.idle <= coldAfter && !s.found {
			s.in.Single() // what comes now is a lone message, likely, and the next poll is soon
		}
		now, _ := s.work()
		for _, c := range s.readyList {
			c.deliver.spent = false
			d.list = append(d.list, c)
		}
		s.readyList = s.readyList[:0]
		d.collect(s)
		if len(d.list) == 0 {
			s.acks(now)
		}
		s.leave()
	}
	n := 0
	if len(d.list) > 0 {
		n = i.run(limit)
		d.idle = 0
		i.delivered.Add(uint64(n))
	}
	if len(d.visited) > 0 {
		i.credit(i.now())
	}
	if i.flushes.Len() > 0 {
		i.flushes.Dispatch()
	}
	return n + i.complete()
}

// collect takes over the operations of a stripe that have ended. The caller has the stripe's lease.
func (d *delivery) collect(s *stripe) {
	if len(s.ended) == 0 {
		return
	}
	d.ended = append(d.ended, s.ended...)
	s.ready.Add(-int32(len(s.ended)))
	clear(s.ended)
	s.ended = s.ended[:0]
}

// complete updates the completions of operations that have ended, and returns how many.
func (i *Iface) complete() int {
	d := &i.deliver
	n := len(d.ended)
	for k := 0; k < n; k++ {
		f := d.ended[k]
		d.ended[k] = ended{}
		f.c.Update(1, f.err)
	}
	d.ended = d.ended[:0]
	if n > 0 {
		d.idle = 0
	}
	return n
}

// While nothing has come for coldAfter calls of Progress, one call of coldStep polls the sockets, which is a system
// call.
const (
	coldAfter = 4096
	coldStep  = 16
)

// anyReady reports whether Progress has something to do without polling a socket.
func (i *Iface) anyReady() bool {
	if i.flushes.Len() != 0 {
		return true
	}
	for _, s := range i.stripes {
		if s.ready.Load() > 0 {
			return true
		}
	}
	return false
}

// run delivers up to limit messages of the connections in the list.
func (i *Iface) run(limit int) int {
	d := &i.deliver
	n := 0
	for k := 0; k < len(d.list) && n < limit; k++ {
		c := d.list[k]
		n += i.drain(c, limit-n)
		if !c.deliver.visited {
			c.deliver.visited = true
			d.visited = append(d.visited, c)
		}
	}
	return n
}

// drain delivers up to limit messages of one connection.
func (i *Iface) drain(c *Endpoint, limit int) int {
	n := 0
	for n < limit && !c.deliver.broken {
		r, ok := c.record()
		if !ok {
			break
		}
		if r.size == 0 {
			c.deliver.broken = true
			break
		}
		at := c.deliver.consumed.Load()
		c.rx.ring.unfold(at, r.size)
		b := c.rx.ring.at(at, r.size)
		if r.kind != recordMessage {
			if !c.ops.control(&r, b[recordHeader:recordHeader+r.n]) {
				break
			}
			c.deliver.consumed.Store(at + uint64(r.size))
			continue
		}
		if !c.deliver.known {
			i.introduce(c)
		}
		head := b[recordHeader : recordHeader+r.head : recordHeader+r.head]
		payload := b[recordHeader+r.head : recordHeader+r.head+r.n : recordHeader+r.head+r.n]
		if h := i.deliver.handlers[r.id]; h != nil {
			i.deliver.postponed = false
			h(c.deliver.source, r.word, head, payload)
			if i.deliver.postponed {
				break
			}
		} else {
			i.malformed.Add(1)
		}
		c.deliver.consumed.Store(at + uint64(r.size))
		n++
	}
	return n
}

// Postpone leaves the message of the handler that calls it in its stream, of which the window closes behind it.
func (i *Iface) Postpone() { i.deliver.postponed = true }

// introduce gives a connection its source number.
func (i *Iface) introduce(c *Endpoint) {
	d := &i.deliver
	c.deliver.known = true
	for n, other := range d.sources {
		if other == nil {
			d.sources[n], c.deliver.source = c, hw.Source(n)
			return
		}
	}
	c.deliver.source = hw.Source(len(d.sources))
	d.sources = append(d.sources, c)
}

// credit gives credit to the peers of the connections that delivered, and takes those that have nothing more off the
// list.
func (i *Iface) credit(now congestion.Time) {
	d := &i.deliver
	kept := d.visited[:0]
	for k, c := range d.visited {
		if !c.s.lease.spin() {
			kept = append(kept, d.visited[k])
			continue
		}
		c.deliver.visited = false
		c.deliver.spent = c.delivered(now)
		c.s.acks(now)
		c.s.leave()
	}
	clear(d.visited[len(kept):])
	d.visited = kept
	list := d.list[:0]
	for _, c := range d.list {
		if c.deliver.visited || !c.deliver.spent {
			list = append(list, c)
		}
	}
	clear(d.list[len(list):])
	d.list = list
	if n := len(list); n > 1 { // the first goes last, so that no connection starves
		first := list[0]
		copy(list, list[1:])
		list[n-1] = first
	}
}

// delivered does on a connection what follows a delivery: answers, what waits to be sent, credit. spent: no whole
// record is left. The caller holds the stripe's lease.
func (c *Endpoint) delivered(now congestion.Time) (spent bool) {
	r := &c.rx
	if c.deliver.broken {
		c.die("malformed record")
	}
	c.ops.answered()
	if c.waiting() || c.tx.closing {
		c.transmit(now)
	}
	if _, more := c.record(); !more || c.deliver.broken {
		r.queued, spent = false, true
		c.s.ready.Add(-1)
		c.end()
		if c.at() == dead {
			c.ops.abandon(hw.ErrPeerDead)
		}
	}
	window := uint64(c.i.cfg.Window)
	free := c.deliver.consumed.Load() + window - r.limit
	switch {
	case free == 0 || !c.alive():
	case r.wants:
		r.creditDue = true
		c.rx.owe(now, true)
	case free >= window/4 || r.limit-r.top < window/8:
		c.rx.owe(now, true)
	}
	return spent
}

// SourceAddress is the address of a remote interface that sent to us, nil if
// src is not such. The caller holds the progress lease.
func (i *Iface) SourceAddress(src hw.Source) []byte {
	if c := i.sourceOf(src); c != nil {
		return c.Address()
	}
	return nil
}

// Answer is the connection that a source's messages come over.
func (i *Iface) Answer(src hw.Source) hw.Endpoint {
	if c := i.sourceOf(src); c != nil && c.at() == up {
		return c
	}
	return nil
}

// SourceReaches reports whether a Connect to address would reach the remote
// interface that sent to us. The caller holds the progress lease.
func (i *Iface) SourceReaches(src hw.Source, address []byte) bool {
	c := i.sourceOf(src)
	a, err := parse(address)
	return c != nil && err == nil && a == c.known
}

func (i *Iface) sourceOf(src hw.Source) *Endpoint {
	if uint64(src) < uint64(len(i.deliver.sources)) {
		return i.deliver.sources[src]
	}
	return nil
}
