package dataplane

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
)

const (
	writers   = 2
	readers   = 3 // two of the receives' queue, one of the other
	perWriter = 400
	mostOut   = 8 // receives of a writer that are not completed, so that pools need not grow
	longest   = 700
)

// crowd is several threads at one endpoint: writers, each of which posts receives and sends their messages, and
// readers of both queues.
type crowd struct {
	*loop
	received [writers]atomic.Uint64
	sent     [writers]atomic.Uint64
	buffers  [writers][perWriter][]byte
	line     [writers + readers]*hot.EpochReader
}

func newCrowd(t *testing.T) *crowd {
	c := &crowd{loop: newLoop(t)}
	c.grow()
	c.peer.Exclusive = 0
	list := (*[2]uintptr)(c.memory(16))
	list[0] = uintptr(unsafe.Pointer(c.ep))
	c.cq.EPs, c.tx.EPs = uintptr(unsafe.Pointer(list)), uintptr(unsafe.Pointer(list))
	for i := range c.line {
		c.line[i] = (*hot.EpochReader)(c.memory(int(unsafe.Sizeof(hot.EpochReader{}))))
	}
	for i := range writers {
		for n := range perWriter {
			c.buffers[i][n] = c.bytes(longest)
		}
	}
	return c
}

// self is the memory of a thread.
func (c *crowd) self(n int) uintptr {
	s := (*hot.Thread)(c.memory(int(unsafe.Sizeof(hot.Thread{}))))
	*s = hot.Thread{Line: uintptr(unsafe.Pointer(c.line[n])), Number: uint32(n + 1)}
	return uintptr(unsafe.Pointer(s))
}

func (c *crowd) reader() *queueReader {
	return (*queueReader)(c.memory(int(unsafe.Sizeof(queueReader{}))))
}

// content is what message n of a writer carries: some fit a slot, others go through bounce buffers.
func content(writer, n int) []byte {
	return bytes.Repeat([]byte{byte(writer*131 + n)}, 1+n*37%(longest-1))
}

// post posts all receives and messages of a writer.
func (c *crowd) post(writer int, self, rx uintptr, p *hot.Post, payload []byte) {
	for n := range perWriter {
		for uint64(n) >= c.received[writer].Load()+mostOut && !c.t.Failed() {
			runtime.Gosched()
		}
		context := uint64(writer*perWriter + n)
		recv := hot.Post{
			Buf: at(c.buffers[writer][n]), Len: longest, Dest: uint64(fi.AddrUnspec), Header: context,
			Kind: hot.PostTagged, Context: context,
		}
		for *p = recv; Recv(uintptr(unsafe.Pointer(p)), rx, 0, 0) != hot.PostDone && !c.t.Failed(); *p = recv {
			runtime.Gosched()
		}
		message := c.message(payload[:copy(payload, content(writer, n))], hot.PostTagged, context, context)
		message.Self = self
		code := c.try(p, message)
		for ; code == hot.PostAgain && !c.t.Failed(); code = c.try(p, message) {
			runtime.Gosched()
		}
		if code != hot.PostDone {
			c.t.Errorf("message %d of writer %d: code %d", n, writer, code)
		}
		if p.Todo&hot.TodoComplete != 0 { // another thread took the room: the runtime writes the completion
			c.sent[writer].Add(1)
		}
	}
}

// try posts a message once.
func (c *crowd) try(p *hot.Post, message hot.Post) uintptr {
	*p = message
	code := Send(uintptr(unsafe.Pointer(p)), 0, 0, 0)
	for code == hot.PostTime { // the same time always: no wait is too long
		p.Now = 1
		code = Send(uintptr(unsafe.Pointer(p)), 0, 0, 0)
	}
	return code
}

// queueReader is what a reader's calls have addresses of: not on a stack, which may move.
type queueReader struct {
	call    hot.Poll
	entries [room * taggedBytes]byte
}

const room = 4

// read reads a queue until all is received and sent.
func (c *crowd) read(q *hot.CQ, r *queueReader, self uintptr, done func() bool, found func(context uint64)) {
	call, entries := &r.call, r.entries[:]
	for !done() {
		*call = hot.Poll{
			Reader: hot.Reader{CQ: uintptr(unsafe.Pointer(q)), Buf: at(entries), Left: room}, EPs: q.EPs, Thread: self,
		}
		code := Read(uintptr(unsafe.Pointer(call)), 0, 0, 0)
		for code == hot.PollProgress || code == hot.DeliveryPause { // a slot that is taken and not written yet
			call.Answer = 0
			runtime.Gosched()
			code = Read(uintptr(unsafe.Pointer(call)), 0, 0, 0)
		}
		if code != hot.DeliveryDone {
			c.t.Errorf("a read needs the runtime: code %d", code)
			return
		}
		for i := range max(call.Result, 0) {
			found(*(*uint64)(unsafe.Pointer(&entries[i*taggedBytes])))
		}
		if call.Result <= 0 {
			runtime.Gosched()
		}
	}
}

// all reports whether each writer's messages are all counted.
func (c *crowd) all(counts *[writers]atomic.Uint64) bool {
	for i := range counts {
		if counts[i].Load() < perWriter {
			return false
		}
	}
	return true
}

// TestThreads has several threads post to an endpoint and read its queues at the same time: every message and every
// completion comes once. Under the race detector all memory that they share is on the Go heap, which it sees.
func TestThreads(t *testing.T) {
	c := newCrowd(t)
	done := func() bool { return c.t.Failed() || c.all(&c.received) && c.all(&c.sent) }
	var seen [2][writers * perWriter]atomic.Bool
	var wg sync.WaitGroup
	rx := uintptr(unsafe.Pointer(c.rx))
	for i := range writers {
		self, p, payload := c.self(i), (*hot.Post)(c.memory(int(unsafe.Sizeof(hot.Post{})))), c.bytes(longest)
		wg.Go(func() { c.post(i, self, rx, p, payload) })
	}
	for i := range readers - 1 {
		self, r := c.self(writers+i), c.reader()
		wg.Go(func() {
			c.read(c.cq, r, self, done, func(context uint64) {
				writer, n := int(context)/perWriter, int(context)%perWriter
				want := content(writer, n)
				if seen[0][context].Swap(true) || !bytes.Equal(c.buffers[writer][n][:len(want)], want) {
					t.Errorf("message %d of writer %d is received twice, or with other bytes", n, writer)
				}
				c.received[writer].Add(1)
			})
		})
	}
	self, r := c.self(writers+readers-1), c.reader()
	wg.Go(func() {
		c.read(c.tx, r, self, done, func(context uint64) {
			if seen[1][context].Swap(true) {
				t.Errorf("message %d is completed twice", context)
			}
			c.sent[int(context)/perWriter].Add(1)
		})
	})
	wg.Wait()
	for i := range writers {
		line := c.lines[i*stats.LineWords:]
		if got := line[stats.ThreadInline] + line[stats.ThreadBounce]; got != perWriter {
			t.Errorf("writer %d has counted %d messages", i, got)
		}
	}
}
