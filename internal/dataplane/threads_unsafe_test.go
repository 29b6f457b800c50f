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
	posters   = 2
	readers   = 3 // two of the receives' queue, one of the other
	perPoster = 400
	mostOut   = 8 // receives of a poster that are not completed, so that pools need not grow
	longest   = 700
)

// crowd is several threads at one endpoint: posters, each of which posts receives and sends their messages, and
// readers of both queues.
type crowd struct {
	*loop
	received [posters]atomic.Uint64
	sent     [posters]atomic.Uint64
	buffers  [posters][perPoster][]byte
	line     [posters + readers]*hot.EpochReader
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
	for i := range posters {
		for n := range perPoster {
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

// content is what message n of a poster carries: some fit a slot, others go through bounce buffers.
func content(poster, n int) []byte {
	return bytes.Repeat([]byte{byte(poster*131 + n)}, 1+n*37%(longest-1))
}

// post posts all receives and messages of a poster.
func (c *crowd) post(poster int, self, rx uintptr, p *hot.Post, payload []byte) {
	for n := range perPoster {
		for uint64(n) >= c.received[poster].Load()+mostOut && !c.t.Failed() {
			runtime.Gosched()
		}
		context := uint64(poster*perPoster + n)
		recv := hot.Post{
			Buf: at(c.buffers[poster][n]), Len: longest, Dest: uint64(fi.AddrUnspec), Header: context,
			Kind: hot.PostTagged, Context: context,
		}
		for *p = recv; Recv(uintptr(unsafe.Pointer(p)), rx, 0, 0) != hot.PostDone && !c.t.Failed(); *p = recv {
			runtime.Gosched()
		}
		message := c.message(payload[:copy(payload, content(poster, n))], hot.PostTagged, context, context)
		message.Self = self
		code := c.try(p, message)
		for ; code == hot.PostAgain && !c.t.Failed(); code = c.try(p, message) {
			runtime.Gosched()
		}
		if code != hot.PostDone {
			c.t.Errorf("message %d of poster %d: code %d", n, poster, code)
		}
		if p.Todo&hot.TodoComplete != 0 { // another thread took the room: the runtime writes the completion
			c.sent[poster].Add(1)
		}
	}
}

// try posts a message once.
func (c *crowd) try(p *hot.Post, message hot.Post) uintptr {
	*p = message
	code := Send(uintptr(unsafe.Pointer(p)), 0, 0, 0)
	for code == hot.PostTime { // the same time always: nobody waits for too long
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

// all reports whether each poster's messages are all counted.
func (c *crowd) all(counts *[posters]atomic.Uint64) bool {
	for i := range counts {
		if counts[i].Load() < perPoster {
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
	var seen [2][posters * perPoster]atomic.Bool
	var wg sync.WaitGroup
	rx := uintptr(unsafe.Pointer(c.rx))
	for i := range posters {
		self, p, payload := c.self(i), (*hot.Post)(c.memory(int(unsafe.Sizeof(hot.Post{})))), c.bytes(longest)
		wg.Go(func() { c.post(i, self, rx, p, payload) })
	}
	for i := range readers - 1 {
		self, r := c.self(posters+i), c.reader()
		wg.Go(func() {
			c.read(c.cq, r, self, done, func(context uint64) {
				poster, n := int(context)/perPoster, int(context)%perPoster
				want := content(poster, n)
				if seen[0][context].Swap(true) || !bytes.Equal(c.buffers[poster][n][:len(want)], want) {
					t.Errorf("message %d of poster %d is received twice, or with other bytes", n, poster)
				}
				c.received[poster].Add(1)
			})
		})
	}
	self, r := c.self(posters+readers-1), c.reader()
	wg.Go(func() {
		c.read(c.tx, r, self, done, func(context uint64) {
			if seen[1][context].Swap(true) {
				t.Errorf("message %d is completed twice", context)
			}
			c.sent[int(context)/perPoster].Add(1)
		})
	})
	wg.Wait()
	for i := range posters {
		line := c.lines[i*stats.LineWords:]
		if got := line[stats.ThreadInline] + line[stats.ThreadBounce]; got != perPoster {
			t.Errorf("poster %d has counted %d messages", i, got)
		}
	}
}
