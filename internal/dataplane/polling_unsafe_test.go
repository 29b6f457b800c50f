package dataplane

import (
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
)

// poller is a thread that polls an endpoint, whose messages and completions are on one queue.
type poller struct {
	*loop
	self    hot.Thread
	line    *hot.EpochReader
	list    *[3]uintptr
	entries []byte
	sources []uint64
	codes   []uintptr // that the last call returned
}

func newPoller(t testing.TB) *poller {
	p := &poller{loop: newLoop(t)}
	p.grow()
	p.line = (*hot.EpochReader)(p.memory(int(unsafe.Sizeof(hot.EpochReader{}))))
	p.self = hot.Thread{Line: uintptr(unsafe.Pointer(p.line)), Number: 1}
	p.list = (*[3]uintptr)(p.memory(int(unsafe.Sizeof(*p.list))))
	p.list[0] = uintptr(unsafe.Pointer(p.ep))
	p.cq.EPs = uintptr(unsafe.Pointer(p.list))
	p.entries = p.bytes(64 * taggedBytes)
	p.sources = unsafe.Slice((*uint64)(p.memory(8*64)), 64)
	p.rx.Handle = 9
	return p
}

// poll is a call with room for so many entries.
func (p *poller) poll(room uint64) *hot.Poll {
	return &hot.Poll{
		Reader: hot.Reader{
			CQ: uintptr(unsafe.Pointer(p.cq)), Buf: at(p.entries),
			Src: uintptr(unsafe.Pointer(unsafe.SliceData(p.sources))), Left: room,
		},
		EPs: p.cq.EPs, Thread: uintptr(unsafe.Pointer(&p.self)),
	}
}

// readAll is a call of fi_cq_read as the shim makes it: Try, and Read where that is not all.
func readAll(p *hot.Poll) uintptr {
	if p.Phase == readBegin && p.Flags == 0 {
		said := Try(uintptr(unsafe.Pointer(&p.Reader)), p.Thread, 0, 0)
		switch {
		case int64(said) < 0:
			p.Result = int64(said)
			return hot.DeliveryDone
		case said&hot.TryEntries != 0:
			p.Result = int64(said >> hot.TryShift)
			return hot.DeliveryDone
		case said != hot.TryRead:
			p.At, p.Flags = said, hot.PollWork
		}
	}
	return Read(uintptr(unsafe.Pointer(p)), 0, 0, 0)
}

// run makes a call as the shim does; answer does what it asks for.
func (p *poller) run(f func(*hot.Poll) uintptr, call *hot.Poll, answer func(code uintptr)) *hot.Poll {
	p.t.Helper()
	p.codes = nil
	for range 1000 {
		code := f(call)
		if p.line.Posting&1 != 0 && code != hot.PollFlushTransport {
			p.t.Fatalf("the thread says that it uses lines of peers, with code %d", code)
		}
		if code == hot.DeliveryDone {
			if p.rx.Lease != 0 {
				p.t.Fatal("the lease is not given back")
			}
			return call
		}
		p.codes = append(p.codes, code)
		if answer == nil {
			p.t.Fatalf("code %d", code)
		}
		answer(code)
	}
	p.t.Fatal("a call does not end")
	return nil
}

// word is word n of entry i, in entries of so many bytes.
func (p *poller) word(i, bytes, n int) uint64 {
	return *(*uint64)(unsafe.Pointer(&p.entries[i*bytes+8*n]))
}

// transport gives the endpoint a transport to other hosts with one sender, whose identity is that of the one in shared
// memory.
func (p *poller) transport() {
	p.ep.Transport = uintptr(p.memory(int(unsafe.Sizeof(hot.Transport{}))))
	source := (*hot.TransportSource)(p.memory(int(unsafe.Sizeof(hot.TransportSource{}))))
	*source = hot.TransportSource{Addr: hot.SenderAddr(senderAddr), ID: senderID}
	p.ep.TransportSources, p.ep.TransportActive = uintptr(unsafe.Pointer(source)), 1
	p.rx.Attention = hot.AttentionTransports
}

// arrived is a message that the transport has found.
func arrived(id uint8, tag uint64, head, payload []byte) hot.TransportMessage {
	return hot.TransportMessage{
		Header: tag, ID: id, Head: at(head), HeadBytes: uint16(len(head)), Payload: at(payload),
		Length: uint32(len(payload)),
	}
}

// busy is how often the thread has found work of another one.
func (p *poller) busy() uint64 { return p.thread(stats.ThreadLeaseBusy) }

// threadAt is the address of a thread's memory, which the caller keeps alive.
func threadAt(t *hot.Thread) uintptr { return uintptr(unsafe.Pointer(t)) }

// publishError makes a spot of the queue that is taken an error.
func (p *poller) publishError(s *spot) {
	view := hot.Ring{Log2Slots: p.cq.Log2Slots}
	mpsc.View(&view).Publish(unsafe.Pointer((*hot.CQE)(pointer(s.slot))), hot.CQMarkError, s.pos)
}
