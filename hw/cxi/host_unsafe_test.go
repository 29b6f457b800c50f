package cxi

import (
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// The host's share of a message: queues in plain memory, and a NIC that is this test.

// hostNIC is what stands for the NIC of one queue.
type hostNIC struct {
	q      *txQueue
	ring   []uint64
	launch []uint64
	events []uint64
	state  []uint64
	halves uint32
	at     int // where the next event goes, in words
}

// hostIface makes an interface with queues that nobody reads, and a peer for each.
func hostIface(t testing.TB, queues int) (*Iface, []*Endpoint, []*hostNIC) {
	d := &MemoryDomain{dev: Device{DeviceInfo: libcxi.DeviceInfo{NID: 16, PIDBits: 9}}}
	i := &Iface{cfg: Config{Depth: 1024, Posted: 4096, Queues: queues}.withDefaults(), d: d}
	var err error
	if i.bell, err = newBell(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = i.bell.close() })
	i.peers.Store(new([]*Endpoint))
	i.ids.Store(newIDTable(0))
	i.rx.init(i)
	i.addr = address{nid: 16, pid: 1, pidBits: 9, vni: 1, longest: 8192, nonce: 7}
	var nics []*hostNIC
	var peers []*Endpoint
	for n := range queues {
		q := &txQueue{i: i, limit: int64(i.cfg.Posted)}
		q.lock.guard(&q.q, &i.driver.corked)
		h := &hostNIC{q: q, ring: make([]uint64, 8*16384), launch: make([]uint64, 8), events: make([]uint64, 8*16384),
			state: make([]uint64, 8), halves: 2 * 16384}
		h.reset()
		q.events.EventQueue.Init(unsafe.Pointer(&h.events[0]), unsafe.Pointer(&h.state[0]), uint32(8*len(h.events)))
		h.at = wire.EqStatusSize / 8
		i.tx, nics = append(i.tx, q), append(nics, h)
		e, err := i.newEndpoint(address{nid: 16, pid: uint32(10 + n), pidBits: 9, vni: 1, longest: 8192,
			nonce: uint64(n + 1)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		e.ready.Store(true)
		e.greeted = true
		peers = append(peers, e)
	}
	return i, peers, nics
}

// reset has the NIC have read all commands.
func (h *hostNIC) reset() {
	h.ring[0] = wire.LimitCmdqFirst
	h.q.q.Init(unsafe.Pointer(&h.ring[0]), unsafe.Pointer(&h.launch[0]), h.halves)
}

// acknowledge puts the event of a message into the queue.
func (h *hostNIC) acknowledge(e *Endpoint, pos uint64, code uint64) {
	w := h.events[h.at : h.at+2]
	w[0] = messageCookie(e.index, pos)
	w[1] = wire.EventSizeB16<<wire.EventInitiatorEventSizeShift | wire.EventAck<<wire.EventInitiatorEventTypeShift |
		code<<wire.EventInitiatorReturnCodeShift
	if h.at += 2; h.at == len(h.events) {
		h.at = wire.EqStatusSize / 8
	}
}

// forget has everything posted have arrived.
func (e *Endpoint) forget(h *hostNIC) {
	e.q.take()
	e.w.head, e.w.sent, e.w.inflight = e.w.tail, e.w.tail, 0
	e.q.posted = counted{}
	h.reset()
	e.q.give()
}

// TestDoorbells: one for a message alone, fewer for messages of several threads.
func TestDoorbells(t *testing.T) {
	i, peers, nics := hostIface(t, 1)
	payload := make([]byte, 8)
	for range 50 {
		if err := peers[0].AMShort(1, 0, nil, payload); err != nil {
			t.Fatal(err)
		}
	}
	if n := i.Doorbells(); n != 50 {
		t.Errorf("%d doorbells for 50 messages of one thread", n)
	}
	peers[0].q.lock.take() // others wait for the queue
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := peers[0].AMShort(1, 0, nil, payload); err != nil {
				t.Error(err)
			}
		})
	}
	for peers[0].q.lock.waiting.Load() != 4 {
	}
	peers[0].q.give()
	all.Wait()
	if n := i.Doorbells(); n < 51 || n > 53 {
		t.Errorf("%d doorbells for 4 messages of threads that have waited", n-50)
	}
	if nics[0].q.q.Waiting() {
		t.Error("a message was not rung for")
	}
}

// TestResend refuses one of several messages: after the last was answered for, all from it on go again, one by one at
// first.
func TestResend(t *testing.T) {
	i, peers, nics := hostIface(t, 1)
	e, h := peers[0], nics[0]
	for n := range uint64(5) {
		if err := e.AMShort(1, n, nil, []byte{byte(n)}); err != nil {
			t.Fatal(err)
		}
	}
	h.acknowledge(e, 0, wire.RcOk)
	h.acknowledge(e, 2, wire.RcOk) // passed by, since the one before it was refused
	h.acknowledge(e, 1, wire.RcEntryNotFound)
	h.acknowledge(e, 3, wire.RcEntryNotFound)
	poll := func() {
		e.q.take()
		e.q.poll()
		e.q.give()
	}
	poll()
	if w := &e.w; w.head != 1 || w.sent != 5 || w.mode != flowing || w.inflight != 1 {
		t.Fatalf("with one to be answered for: %+v", e.w.head)
	}
	if err := e.AMShort(1, 5, nil, nil); err != nil {
		t.Fatal(err)
	}
	if e.w.sent != 5 {
		t.Fatal("a message is posted behind one that was refused")
	}
	h.acknowledge(e, 4, wire.RcOk)
	poll()
	if w := &e.w; w.head != 1 || w.sent != 1 || w.mode != waiting || !i.anyTodo.Load() {
		t.Fatalf("all are answered for: head %d, sent %d, mode %d", w.head, w.sent, w.mode)
	}
	e.q.take()
	if again := e.resend(e.w.retryAt.Add(-1)); !again.Equal(e.w.retryAt) || e.w.sent != 1 {
		t.Error("it is sent again too soon")
	}
	e.resend(e.w.retryAt)
	e.q.give()
	if w := &e.w; w.sent != 2 || w.mode != trying {
		t.Fatalf("the first: sent %d, mode %d", w.sent, w.mode)
	}
	before := e.w.backoff
	h.acknowledge(e, 1, wire.RcEntryNotFound)
	poll()
	if w := &e.w; w.mode != waiting || w.backoff != 2*before {
		t.Fatalf("refused once more: mode %d, %v after %v", w.mode, w.backoff, before)
	}
	e.q.take()
	e.resend(e.w.retryAt)
	e.q.give()
	h.acknowledge(e, 1, wire.RcOk)
	poll()
	if w := &e.w; w.head != 2 || w.sent != 6 || w.mode != flowing || w.backoff != 0 {
		t.Fatalf("taken: head %d, sent %d, mode %d", w.head, w.sent, w.mode)
	}
	for pos := range uint64(4) {
		h.acknowledge(e, 2+pos, wire.RcOk)
	}
	poll()
	if e.w.head != 6 || e.q.posted.load() != 0 {
		t.Errorf("at the end: head %d, %d posted", e.w.head, e.q.posted.load())
	}
}

// BenchmarkHostPost is the posting of 8 bytes by one thread.
func BenchmarkHostPost(b *testing.B) {
	_, peers, nics := hostIface(b, 1)
	payload := make([]byte, 8)
	for b.Loop() {
		if err := peers[0].AMShort(1, 0, nil, payload); err != nil {
			b.StopTimer()
			peers[0].forget(nics[0])
			b.StartTimer()
		}
	}
}

// processorTime is what this process has used.
func processorTime(b *testing.B) int64 {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return r.Utime.Nano() + r.Stime.Nano()
}

// BenchmarkHostPosters is the posting of 8 bytes by two threads over a queue of each; the time is of one message of
// either, and cpu-ns/op the processor time of one, which says more on a machine that does other things.
func BenchmarkHostPosters(b *testing.B) {
	_, peers, nics := hostIface(b, 2)
	var all sync.WaitGroup
	b.ResetTimer()
	before := processorTime(b)
	defer func() { b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op") }()
	for n, e := range peers {
		all.Go(func() {
			payload := make([]byte, 8)
			for range b.N / 2 {
				if e.AMShort(1, 0, nil, payload) != nil {
					e.forget(nics[n])
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkHostPoll takes in the event of one message of many.
func BenchmarkHostPoll(b *testing.B) {
	i, peers, nics := hostIface(b, 1)
	e, h := peers[0], nics[0]
	for n := 0; n < b.N; n += 512 {
		b.StopTimer()
		for pos := e.w.head; pos < e.w.head+512; pos++ {
			if err := e.AMShort(1, 0, nil, nil); err != nil {
				b.Fatal(err)
			}
			h.acknowledge(e, pos, wire.RcOk)
		}
		h.reset()
		b.StartTimer()
		i.tx[0].take()
		i.tx[0].poll()
		i.tx[0].give()
	}
}

// BenchmarkHostPollEmpty polls for events while one is to come.
func BenchmarkHostPollEmpty(b *testing.B) {
	i, peers, _ := hostIface(b, 1)
	if err := peers[0].AMShort(1, 0, nil, nil); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		i.tx[0].tryPoll()
	}
}
