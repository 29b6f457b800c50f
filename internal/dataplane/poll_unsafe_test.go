package dataplane

import (
	"encoding/binary"
	"slices"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
)

const (
	again  = -int64(fi.EAGAIN)
	failed = -int64(fi.EAVAIL)
)

// receive posts a tagged receive and returns its buffer.
func (p *poller) receive(tag, context uint64) []byte {
	buf := p.bytes(64)
	p.post(hot.RecvEntry{Flags: hot.RecvTagged, Buf: uint64(at(buf)), Len: 64, Src: uint64(fi.AddrUnspec), Tag: tag,
		Context: context})
	return buf
}

// arrive has a tagged message arrive in shared memory.
func (p *poller) arrive(tag uint64, text string) {
	if !p.send(eager(hot.AMTag, tag, 0, []byte(text))) {
		p.t.Fatal("the ring is full")
	}
}

// complete writes a completion to the queue.
func (p *poller) complete(e hot.CQE) {
	if !completeTo(p.cq, &e) {
		p.t.Fatal("the queue is full")
	}
}

// TestReadDelivers has a read with an empty queue take in an arrival, whose completion goes to the caller past the
// queue.
func TestReadDelivers(t *testing.T) {
	p := newPoller(t)
	if call := p.run(readAll, p.poll(4), nil); call.Result != again || call.Found != 0 || p.ep.Polled != 1 {
		t.Fatalf("an empty queue gives %d, found %d, polled %d", call.Result, call.Found, p.ep.Polled)
	}
	buf := p.receive(5, 1)
	p.arrive(5, "payload.")
	call := p.run(readAll, p.poll(4), nil)
	if call.Result != 1 || call.Found != 1 || call.Reader.Left != 3 || string(buf[:8]) != "payload." {
		t.Fatalf("result %d, found %d, %q", call.Result, call.Found, buf[:8])
	}
	if p.word(0, taggedBytes, 0) != 1 || p.word(0, taggedBytes, 5) != 5 || p.sources[0] != senderAddr {
		t.Fatalf("context %d, tag %d, source %d", p.word(0, taggedBytes, 0), p.word(0, taggedBytes, 5), p.sources[0])
	}
	if _, ok := p.pop(); ok {
		t.Error("it is on the queue, too")
	}
}

// TestReadTakesQueueFirst has completions on the queue come before what has arrived, which stays where it is.
func TestReadTakesQueueFirst(t *testing.T) {
	p := newPoller(t)
	p.receive(5, 1)
	p.arrive(5, "x")
	p.complete(hot.CQE{Context: 7})
	if call := p.run(readAll, p.poll(4), nil); call.Result != 1 || p.word(0, taggedBytes, 0) != 7 ||
		p.ep.Inbound[0].Head != 0 {
		t.Fatalf("result %d, context %d, head %d", call.Result, p.word(0, taggedBytes, 0), p.ep.Inbound[0].Head)
	}
	if call := p.run(readAll, p.poll(4), nil); call.Result != 1 || p.word(0, taggedBytes, 0) != 1 {
		t.Fatalf("result %d, context %d", call.Result, p.word(0, taggedBytes, 0))
	}
}

// TestReadFormats reads three entries of each format, two at a time.
func TestReadFormats(t *testing.T) {
	for format, bytes := range map[fi.CQFormat]int{
		fi.CQFormatContext: contextBytes, fi.CQFormatMsg: msgBytes, fi.CQFormatData: dataBytes,
		fi.CQFormatTagged: taggedBytes,
	} {
		p := newPoller(t)
		p.cq.Format = uint32(format)
		for n := range uint64(3) {
			p.complete(hot.CQE{Context: n + 10, Flags: n + 20, Len: n + 30, Buf: n + 40, Data: n + 50, Tag: n + 60,
				Src: n + 70})
		}
		check := func(i int, n uint64) {
			t.Helper()
			for k := range bytes / 8 {
				if got, want := p.word(i, bytes, k), n+10*uint64(k+1); got != want {
					t.Errorf("format %d, entry %d, word %d: %d, want %d", format, n, k, got, want)
				}
			}
			if p.sources[i] != n+70 {
				t.Errorf("format %d, entry %d: source %d", format, n, p.sources[i])
			}
		}
		if call := p.run(readAll, p.poll(2), nil); call.Result != 2 {
			t.Fatalf("result %d", call.Result)
		}
		check(0, 0)
		check(1, 1)
		if call := p.run(readAll, p.poll(2), nil); call.Result != 1 {
			t.Fatalf("result %d", call.Result)
		}
		check(0, 2)
	}
}

// TestReadErrors shows that an error ends a read and stays, also for a read of no entries, which makes progress all the
// same.
func TestReadErrors(t *testing.T) {
	p := newPoller(t)
	p.complete(hot.CQE{Context: 1})
	var s spot
	if !s.take(p.cq, nil) {
		t.Fatal("the queue is full")
	}
	p.publishError(&s)
	if call := p.run(readAll, p.poll(4), nil); call.Result != 1 {
		t.Fatalf("before the error: %d", call.Result)
	}
	p.receive(5, 1)
	p.arrive(5, "x")
	for range 2 {
		if call := p.run(readAll, p.poll(4), nil); call.Result != failed {
			t.Fatalf("at the error: %d", call.Result)
		}
	}
	if call := p.run(readAll, p.poll(0), nil); call.Result != failed || call.Found != 1 || p.ep.Inbound[0].Head != 1 {
		t.Fatalf("no entries: %d, found %d, head %d", call.Result, call.Found, p.ep.Inbound[0].Head)
	}
}

// TestReadOverflow has the runtime move completions to the ring when that is empty.
func TestReadOverflow(t *testing.T) {
	p := newPoller(t)
	p.cq.Overflow = 1
	flush := func(code uintptr) {
		if code != hot.PollFlush {
			t.Fatalf("code %d", code)
		}
		p.cq.Overflow = 0
		p.complete(hot.CQE{Context: 3})
	}
	if call := p.run(readAll, p.poll(4), flush); call.Result != 1 || p.word(0, taggedBytes, 0) != 3 {
		t.Fatalf("result %d", call.Result)
	}
	p.cq.Overflow = 1
	if call := p.run(readAll, p.poll(0), flush); call.Result != again || len(p.codes) != 1 {
		t.Fatalf("no entries: %d, codes %v", call.Result, p.codes)
	}
}

// TestReadLeaseBusy leaves work to the thread that has the lease, and counts that.
func TestReadLeaseBusy(t *testing.T) {
	p := newPoller(t)
	p.arrive(5, "x")
	p.rx.Lease = 1
	call := p.poll(4)
	if code := readAll(call); code != hot.DeliveryDone || call.Result != again || call.Found != 0 || p.busy() != 1 ||
		p.rx.Lease != 1 {
		t.Fatalf("code %d, result %d, found %d, %d times busy, lease %d", code, call.Result, call.Found, p.busy(),
			p.rx.Lease)
	}
	call = p.poll(0)
	call.Reader.CQ, call.Flags, call.Idle, call.Most = 0, hot.PollThread, 1, 1
	if code := drive(call); code != hot.DeliveryDone || call.Worked != 0 || p.busy() != 2 {
		t.Fatalf("a progress thread gets code %d, worked %d, %d times busy", code, call.Worked, p.busy())
	}
}

// TestReadEmpty: a read that finds nothing stores nothing but its result, and counts the poll at the endpoint.
func TestReadEmpty(t *testing.T) {
	p := newPoller(t)
	call := p.poll(4)
	was := *call
	if code := readAll(call); code != hot.DeliveryDone || call.Result != again {
		t.Fatalf("code %d, result %d", code, call.Result)
	}
	if call.Result = was.Result; *call != was {
		t.Errorf("%+v after %+v", *call, was)
	}
	if p.ep.Polled != 1 {
		t.Errorf("%d polls are counted", p.ep.Polled)
	}
}

// TestNoEndpoints: a poll that is due ends where there are no endpoints, as at a counter or queue to which
// none is bound.
func TestNoEndpoints(t *testing.T) {
	p := newPoller(t)
	p.cq.EPs = 0
	for name, f := range map[string]func(*hot.Poll) uintptr{
		"read":     readAll,
		"progress": func(p *hot.Poll) uintptr { return Progress(uintptr(unsafe.Pointer(p)), 0, 0, 0) },
	} {
		for _, flags := range []uint32{0, hot.PollDue} {
			call := p.poll(4)
			call.EPs, call.Flags, call.Now = 0, flags, 5000
			if code := f(call); code != hot.DeliveryDone || call.Found != 0 {
				t.Errorf("%s, flags %d: code %d, found %d", name, flags, code, call.Found)
			}
		}
	}
}

// TestReadAsksRuntime has the runtime make progress where there is work that no ring shows, and post what waited for a
// counter when the lease is given back.
func TestReadAsksRuntime(t *testing.T) {
	p := newPoller(t)
	p.rx.Attention = hot.AttentionGo
	call := p.poll(4)
	p.run(readAll, call, func(code uintptr) {
		switch code {
		case hot.PollProgress:
			if p.rx.Lease != 1 || call.Handle != 9 {
				t.Errorf("lease %d, handle %d", p.rx.Lease, call.Handle)
			}
			p.rx.Attention = 0
			call.Answer = 1
			p.complete(hot.CQE{Context: 4})
		case hot.PollTriggered:
			if p.rx.Lease != 0 || call.Handle != 9 {
				t.Errorf("triggered: lease %d, handle %d", p.rx.Lease, call.Handle)
			}
		default:
			t.Fatalf("code %d", code)
		}
	})
	if !slices.Equal(p.codes, []uintptr{hot.PollProgress, hot.PollTriggered}) || call.Result != 1 ||
		p.word(0, taggedBytes, 0) != 4 {
		t.Fatalf("codes %v, result %d", p.codes, call.Result)
	}
}

// TestReadWakes has the reader of another queue woken that sleeps.
func TestReadWakes(t *testing.T) {
	p := newPoller(t)
	other := p.cq
	p.openQueue() // the endpoint's from now on
	p.cq.Flags, p.cq.Armed = hot.CQWaitable, 1
	p.receive(5, 1)
	p.arrive(5, "x")
	p.cq = other
	call := p.poll(4)
	p.run(readAll, call, func(code uintptr) {
		if code != hot.PollWake || call.Delivery.Todo&hot.TodoWakeCQ == 0 {
			t.Fatalf("code %d, to do %d", code, call.Delivery.Todo)
		}
	})
	if len(p.codes) != 1 || call.Result != again || call.Found != 0 {
		t.Fatalf("codes %v, result %d, found %d", p.codes, call.Result, call.Found)
	}
}

// TestTimers runs them when they are due, and at once in a context with work that no ring shows.
func TestTimers(t *testing.T) {
	p := newPoller(t)
	p.rx.Rest = 1000
	at := func(now uint32) []uintptr {
		call := p.poll(4)
		call.Flags, call.Now = hot.PollDue, now
		p.run(readAll, call, func(code uintptr) {
			if call.Answer = 0; code == hot.PollTimers && p.rx.Lease != 1 {
				t.Error("the timers run without the lease")
			}
		})
		return p.codes
	}
	for _, c := range []struct {
		now  uint32
		runs bool
	}{{5000, true}, {5010, false}, {5500, false}, {6000, true}} {
		var want []uintptr
		if c.runs {
			want = []uintptr{hot.PollTimers}
		}
		if got := at(c.now); !slices.Equal(got, want) {
			t.Errorf("at %d ms: codes %v, want %v", c.now, got, want)
		}
	}
	p.rx.Attention = hot.AttentionGo
	if got := at(6020); !slices.Equal(got, []uintptr{hot.PollProgress, hot.PollTimers}) {
		t.Errorf("with work: codes %v", got)
	}
}

// TestTimersBehindCompletions runs them also for a thread that always finds completions, but not with each clock that
// is due.
func TestTimersBehindCompletions(t *testing.T) {
	p := newPoller(t)
	for _, flags := range []uint32{hot.PollDue, hot.PollDue | hot.PollFoundToo} {
		p.complete(hot.CQE{Context: 1})
		call := p.poll(4)
		call.Flags, call.Now = flags, 7000
		p.run(readAll, call, func(uintptr) { call.Answer = 0 })
		if want := flags&hot.PollFoundToo != 0; (len(p.codes) == 1) != want || call.Result != 1 {
			t.Errorf("flags %d: codes %v, result %d", flags, p.codes, call.Result)
		}
	}
}

// TestTransportMessages takes messages of a transport until it has none, says something that only the runtime can deal
// with, or the reader is full.
func TestTransportMessages(t *testing.T) {
	for name, c := range map[string]struct {
		room, result int64
		next         []int32 // what the transport says, in turn
		more         int32   // what it says when a message is taken
		codes        []uintptr
	}{
		"empty": {4, again, []int32{hot.TransportEmpty}, 0, []uintptr{hot.PollNext}},
		"one":   {4, 1, []int32{hot.TransportArrival}, 0, []uintptr{hot.PollNext, hot.PollTake}},
		"two": {4, 2, []int32{hot.TransportArrival, hot.TransportArrival, hot.TransportEmpty}, 1,
			[]uintptr{hot.PollNext, hot.PollTake, hot.PollNext, hot.PollTake, hot.PollNext}},
		"full": {1, 1, []int32{hot.TransportArrival}, 1, []uintptr{hot.PollNext, hot.PollTake}},
		"runtime": {4, 1, []int32{hot.TransportArrival, hot.TransportGo}, 1,
			[]uintptr{hot.PollNext, hot.PollTake, hot.PollNext, hot.PollProgress}},
	} {
		p := newPoller(t)
		p.transport()
		buf := p.receive(5, 1)
		p.receive(5, 2)
		call, head := p.poll(uint64(c.room)), p.bytes(8)
		binary.LittleEndian.PutUint64(head, 77)
		message := arrived(hot.AMTagData, 5, head, []byte("12345678"))
		p.run(readAll, call, func(code uintptr) {
			call.Answer = 0
			switch code {
			case hot.PollNext:
				call.Answer, c.next = c.next[0], c.next[1:]
				call.Message = message
			case hot.PollTake:
				call.Answer = c.more
			}
		})
		if call.Result != c.result || !slices.Equal(p.codes, c.codes) || len(c.next) != 0 {
			t.Errorf("%s: result %d, codes %v, %d answers left", name, call.Result, p.codes, len(c.next))
		}
		if c.result > 0 && (string(buf[:8]) != "12345678" || p.word(0, taggedBytes, 4) != 77) {
			t.Errorf("%s: %q, data %d", name, buf[:8], p.word(0, taggedBytes, 4))
		}
	}
}

// TestTransportMalformed leaves messages of a transport with ids or heads that are none of the data plane's to the
// runtime.
func TestTransportMalformed(t *testing.T) {
	for _, m := range []hot.TransportMessage{
		arrived(hot.AMMsg-1, 5, nil, nil), arrived(hot.AMTagData+1, 5, nil, nil),
		arrived(hot.AMTag, 5, make([]byte, 8), nil),
		arrived(hot.AMTagData, 5, make([]byte, 4), nil), {ID: hot.AMTag, Source: 1},
	} {
		p := newPoller(t)
		p.transport()
		call := p.poll(4)
		p.run(readAll, call, func(code uintptr) {
			if call.Answer = 0; code == hot.PollNext {
				call.Answer, call.Message = hot.TransportArrival, m
			}
		})
		if !slices.Equal(p.codes, []uintptr{hot.PollNext, hot.PollProgress}) || call.Result != again {
			t.Errorf("%+v: codes %v, result %d", m, p.codes, call.Result)
		}
	}
}

// TestReadFlushesTransports has messages sent that transports hold back when completions are read.
func TestReadFlushesTransports(t *testing.T) {
	p := newPoller(t)
	p.transport()
	p.rx.Attention = 0
	p.cq.Corked = 1
	p.complete(hot.CQE{Context: 1})
	call := p.poll(4)
	p.run(readAll, call, func(uintptr) {
		if p.line.Posting&1 == 0 {
			t.Error("the thread does not say that it uses lines of peers")
		}
	})
	if !slices.Equal(p.codes, []uintptr{hot.PollFlushTransport}) || call.Result != 1 || p.cq.Corked != 0 {
		t.Fatalf("codes %v, result %d, corked %d", p.codes, call.Result, p.cq.Corked)
	}
}

// TestSRead sleeps until there are as many entries as are wanted, or the time is over.
func TestSRead(t *testing.T) {
	p := newPoller(t)
	call := p.poll(4)
	call.Want = 2
	sleeps := uint64(0)
	p.run(sread, call, func(code uintptr) {
		if code != hot.PollSleep {
			t.Fatalf("code %d", code)
		}
		call.Answer = 0
		sleeps++
		p.complete(hot.CQE{Context: sleeps})
	})
	if call.Result != 2 || sleeps != 2 || p.word(0, taggedBytes, 0) != 1 || p.word(1, taggedBytes, 0) != 2 {
		t.Fatalf("result %d after %d sleeps", call.Result, sleeps)
	}
	for _, c := range []struct {
		have   int
		want   uint64
		result int64
	}{{0, 1, again}, {1, 2, 1}, {1, 1, 1}, {5, 9, 4}} {
		for range c.have {
			p.complete(hot.CQE{})
		}
		call = p.poll(4)
		call.Want = c.want
		p.run(sread, call, func(uintptr) { call.Answer = int32(again) })
		if call.Result != c.result {
			t.Errorf("%d entries of %d: result %d, want %d", c.have, c.want, call.Result, c.result)
		}
		for _, ok := p.pop(); ok; _, ok = p.pop() {
		}
	}
}

// TestDrive takes in what arrives until nothing has come for a time.
func TestDrive(t *testing.T) {
	p := newPoller(t)
	buf := p.receive(5, 1)
	call := p.poll(0)
	call.Reader.CQ, call.Flags, call.Idle, call.Most = 0, hot.PollThread, 100, 10000
	clock, late := uint64(1000), false
	p.run(drive, call, func(code uintptr) {
		if code != hot.PollClock {
			return
		}
		if clock += 60; clock == 1120 {
			p.arrive(5, "x")
		}
		late = late || clock > 1400
		call.Clock = clock
	})
	if e, ok := p.pop(); !ok || e.Context != 1 || buf[0] != 'x' || call.Worked != 1 || p.ep.Polled != 0 || late {
		t.Fatalf("completed %v, worked %d, polled %d, at %d ns", ok, call.Worked, p.ep.Polled, clock)
	}
	call = p.poll(0)
	call.Reader.CQ, call.Flags = 0, hot.PollThread
	if p.run(drive, call, nil); call.Worked != 0 {
		t.Fatal("one pass over an idle endpoint has worked")
	}
	p.rx.Attention = hot.AttentionGo
	call.Phase, call.Idle, call.Most = 0, 100, 1000
	if p.run(drive, call, nil); call.Worked != 0 {
		t.Fatal("work of the runtime counts as done")
	}
}

// TestIdle yields a thread that does nothing but poll, and learns from how long others ran.
func TestIdle(t *testing.T) {
	self := hot.Thread{Turn: yieldFirst, Limit: yieldFirst}
	clock := uint64(1e9)
	turn := func(polled, away uint64) bool {
		call := &hot.Poll{Thread: threadAt(&self)}
		yielded := false
		for code := idle(call); code != hot.DeliveryDone; code = idle(call) {
			if call.Processor = 3; code == hot.PollYield {
				yielded = true
				clock += away
			} else {
				clock += polled
			}
			call.Clock = clock
		}
		return yielded
	}
	if turn(1e6, 300) {
		t.Fatal("a thread yields that has just begun")
	}
	if turn(uint64(yieldFirst)*denseNanos, 300) || self.Limit != yieldFirst {
		t.Fatal("a thread yields that does other things, too")
	}
	if !turn(10000, 300) || self.Limit != 2*yieldFirst || self.Turn != 2*yieldFirst {
		t.Fatalf("after a yield to nothing the limit is %d", self.Limit)
	}
	for range 8 {
		turn(10000, 50000)
	}
	if self.Limit != hot.YieldMin {
		t.Fatalf("with threads that poll the limit is %d", self.Limit)
	}
	self.Yields = patience + 1
	if turn(10000, 50000); self.Turn != hot.YieldMin {
		t.Fatalf("a thread is patient in vain: %d", self.Turn)
	}
	if turn(10000, 5*awayLongNanos); self.Limit != 2*hot.YieldMin {
		t.Fatalf("after a yield to a thread that computes the limit is %d", self.Limit)
	}
}

// TestPollsAllocateNothing is what a C thread may call.
func TestPollsAllocateNothing(t *testing.T) {
	p := newPoller(t)
	call := p.poll(4)
	begin, buf, text := *call, uint64(at(p.bytes(8))), eager(hot.AMTag, 5, 0, []byte("x"))
	if n := testing.AllocsPerRun(100, func() {
		p.post(hot.RecvEntry{Flags: hot.RecvTagged, Buf: buf, Len: 8, Src: uint64(fi.AddrUnspec), Tag: 5})
		p.send(text)
		*call = begin
		if readAll(call) != hot.DeliveryDone || call.Result != 1 {
			t.Fatal("not received")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestDue counts the polls of a thread as the shim does, which calls for those that are due, and for those that find
// something: about one in 32 is due, each turn of polls in vain ends with a yield, and a message begins a new one.
func TestDue(t *testing.T) {
	p := newPoller(t)
	clock, yields := uint64(1e9), 0
	all := func(at *hot.Poll) uintptr { return Read(uintptr(unsafe.Pointer(at)), 0, 0, 0) }
	poll := func(busy bool) (due bool) {
		call := p.poll(4)
		if due = p.self.Left == 0; due {
			call.Flags = hot.PollDue
		}
		p.self.Left--
		if due || busy {
			p.run(all, call, func(code uintptr) {
				if code == hot.PollYield {
					yields++
				}
				clock += 500
				call.Clock = clock
			})
		}
		return due
	}
	dues := 0
	const polls = 100000
	for range polls {
		if poll(false) {
			dues++
		}
	}
	if dues < polls/40 || dues > polls/20 || yields == 0 || p.self.Limit < 8*yieldFirst {
		t.Fatalf("%d of %d polls are due, %d yields, limit %d", dues, polls, yields, p.self.Limit)
	}
	found := func() {
		p.receive(5, 1)
		p.arrive(5, "payload.")
		poll(true)
	}
	found()
	p.self.Turn, p.self.Limit, yields = hot.YieldMin, 1<<20, 0
	for range 20 * polls / 1000 {
		for range hot.YieldMin / 2 {
			poll(false)
		}
		found()
	}
	if yields != 0 {
		t.Fatalf("%d yields of a thread that finds messages", yields)
	}
	for range 2*hot.YieldMin + 2 {
		poll(false)
	}
	if yields == 0 {
		t.Fatal("none when it finds nothing more")
	}
}
