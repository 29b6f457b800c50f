package cxi

import (
	"errors"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/seam"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/hw/internal/drive"
	"github.com/weft-fabric/weft/internal/hot"
)

// drivenPair are two interfaces that C may drive, and a connection on which messages have gone by Go before.
func drivenPair(t testing.TB) (a, b *Iface, e *Endpoint) {
	t.Helper()
	if !seam.Possible() {
		t.Skip("C calls no Go code without the runtime here")
	}
	a, b = open(t, Config{}), open(t, Config{})
	t.Cleanup(func() { _ = errors.Join(a.Close(), b.Close()) })
	got := 0
	b.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
	ep, err := a.Connect(b.Address())
	if err != nil {
		t.Fatal(err)
	}
	for sent := 0; got < 3; a.Progress(1) {
		if sent < 3 && ep.AMShort(1, 0, nil, nil) == nil {
			sent++
		}
		b.Progress(8)
		a.CheckPeers()
	}
	for a.Progress(8)+b.Progress(8) > 0 || a.anyTodo.Load() || b.anyTodo.Load() {
	}
	return a, b, ep.(*Endpoint)
}

// rung rings as C does.
func rung(b *seam.Bell) {
	if b.Word == 0 {
		return
	}
	nic.Bell(*(*unsafe.Pointer)(unsafe.Pointer(&b.Word)), b.Value)
	if b.Lock != 0 {
		(*atomic.Uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&b.Lock))).Store(0)
	}
	*b = seam.Bell{}
}

// steady sends messages and takes them in as C does, without Progress of either side, and counts what Go would have
// been entered for.
type steady struct {
	a, b     *Iface
	e        *Endpoint
	m, in    hot.TransportMessage
	bell     seam.Bell
	payload  [8]byte
	hold     uint8
	gos      int
	got      uint64
	atBell   uintptr
	atIn     uintptr
	messages int
}

func (s *steady) send() {
	s.m = hot.TransportMessage{Header: uint64(s.messages), Payload: uintptr(unsafe.Pointer(&s.payload)), Length: 8,
		ID: 1, Hold: s.hold}
	if s.hold != hot.HoldNever && s.messages%64 == 63 {
		s.m.Hold = hot.HoldNever
	}
	s.messages++
	switch SendPath(uintptr(unsafe.Pointer(s.e.path)), uintptr(unsafe.Pointer(&s.m)), s.atBell, 0) {
	case hot.PathSent, hot.PathCorked:
	default:
		s.gos++
	}
	rung(&s.bell)
}

// poll polls a transport until it has nothing more.
func (s *steady) poll(i *Iface) {
	transport := uintptr(unsafe.Pointer(i.driver.transport.At(0)))
	for {
		found := NextArrival(transport, s.atIn, s.atBell, 0)
		rung(&s.bell)
		switch found {
		case seam.Again:
		case hot.TransportArrival:
			if s.in.Header != s.got || s.in.Length != 8 || s.in.ID != 1 {
				s.gos += 1000
			}
			s.got++
			TakeArrival(transport, s.atBell, 0, 0)
			rung(&s.bell)
		case hot.TransportGo:
			s.gos++
			return
		default:
			return
		}
	}
}

func newSteady(t testing.TB, hold uint8) *steady {
	s := &steady{hold: hold}
	s.a, s.b, s.e = drivenPair(t)
	s.atBell, s.atIn = uintptr(unsafe.Pointer(&s.bell)), uintptr(unsafe.Pointer(&s.in))
	return s
}

// TestDrivenSteady: a stream of messages needs neither the runtime nor memory, while buffers and events go round
// several times.
func TestDrivenSteady(t *testing.T) {
	s := newSteady(t, hot.HoldNever)
	const count = 40000 // 320 kB: more than one buffer, and ten times all events
	bells := s.a.Doorbells()
	if n := testing.AllocsPerRun(count-1, func() {
		s.send()
		s.poll(s.b)
		s.poll(s.a)
	}); n != 0 {
		t.Errorf("%v allocations for each message", n)
	}
	if s.gos != 0 || s.got != count {
		t.Errorf("Go is entered %d times for %d messages, %d came", s.gos, count, s.got)
	}
	if n := s.a.Doorbells() - bells; n != count {
		t.Errorf("%d doorbells for %d messages one by one", n, count)
	}
}

// TestDrivenCorked: with another message at hand several have one doorbell.
func TestDrivenCorked(t *testing.T) {
	s := newSteady(t, hot.HoldMore)
	const windows = 100
	bells := s.a.Doorbells()
	for range windows {
		for range 64 {
			s.send()
		}
		s.poll(s.b)
		s.poll(s.a)
	}
	if s.gos != 0 || s.got != 64*windows {
		t.Errorf("Go is entered %d times for %d messages, %d came", s.gos, 64*windows, s.got)
	}
	if n := s.a.Doorbells() - bells; n > 8*windows {
		t.Errorf("%d doorbells for %d windows of 64 messages", n, windows)
	}
}

// hostSteady is a steady whose NIC is this test: queues in plain memory (host_unsafe_test.go).
func hostSteady(b testing.TB) (*steady, *hostNIC) {
	if !seam.Possible() {
		b.Skip("C calls no Go code without the runtime here")
	}
	i, peers, nics := hostIface(b, 1)
	if err := i.driver.open(i); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(i.driver.close)
	events, word := make([]uint64, 8*1024), make([]uint64, 1)
	i.rx.events.EventQueue.Init(unsafe.Pointer(&events[0]), unsafe.Pointer(&word[0]), uint32(8*len(events)))
	i.driver.paths.attach(peers[0])
	if err := i.openWatch(); err != nil {
		b.Fatal(err)
	}
	s := &steady{a: i, e: peers[0]}
	s.atBell, s.atIn = uintptr(unsafe.Pointer(&s.bell)), uintptr(unsafe.Pointer(&s.in))
	return s, nics[0]
}

// BenchmarkHostSendPath is the posting of 8 bytes by C's route, but for the trampoline.
func BenchmarkHostSendPath(b *testing.B) {
	s, h := hostSteady(b)
	for b.Loop() {
		if s.send(); s.gos != 0 {
			b.StopTimer()
			s.e.forget(h)
			s.gos = 0
			b.StartTimer()
		}
	}
}

// BenchmarkHostLookEmpty is a look of C, while an event is to come: 512 in one call from Go.
func BenchmarkHostLookEmpty(b *testing.B) {
	s, _ := hostSteady(b)
	s.send()
	for n := 0; n < b.N; n += 512 {
		if drive.Polls(s.a.HotTransport(), 512) != 512 {
			b.Fatal("a look finds something")
		}
	}
}

// BenchmarkHostLookEmptyGo is the same look by Go, but for the trampoline.
func BenchmarkHostLookEmptyGo(b *testing.B) {
	s, _ := hostSteady(b)
	s.send()
	for b.Loop() {
		s.poll(s.a)
	}
}

// TestPollQuiet: a poll finds nothing by itself only while there is neither an event nor anything for Go to do.
func TestPollQuiet(t *testing.T) {
	s, h := hostSteady(t)
	i := s.a
	transport := i.driver.transport.At(0)
	s.send()
	quiet := func(what string, want bool) {
		t.Helper()
		if transport.Watch.Calm() != want {
			t.Errorf("%s: quiet is %v", what, !want)
		}
	}
	quiet("with a message on its way", true)
	polls := transport.Watch.Polls
	if n := drive.Polls(i.HotTransport(), 3); n != 3 || transport.Watch.Polls != polls+3 {
		t.Errorf("%d of 3 polls find nothing, %d are counted", n, transport.Watch.Polls-polls)
	}
	i.driver.corked.set()
	quiet("corked", false)
	i.driver.corked.take()
	quiet("corked is over", true)
	i.flushes.Count().Store(1)
	quiet("flush", false)
	i.flushes.Count().Store(0)
	quiet("flush is over", true)
	for what, word := range map[string]*atomic.Bool{
		"closed": &i.closed, "todo": &i.anyTodo, "completed": &i.tx[0].anyCompleted,
	} {
		word.Store(true)
		quiet(what, false)
		word.Store(false)
		quiet(what+" is over", true)
	}
	i.rx.unlisted = 1
	quiet("a buffer to list", false)
	i.rx.unlisted = 0
	h.acknowledge(s.e, s.e.w.head, wire.RcOk)
	quiet("an acknowledgement", false)
	s.poll(i)
	quiet("it is taken in", true)
	if s.gos != 0 {
		t.Errorf("Go is entered %d times", s.gos)
	}
}

// BenchmarkHostLook is a look that takes one acknowledgement in.
func BenchmarkHostLook(b *testing.B) {
	s, h := hostSteady(b)
	for n := 0; n < b.N; {
		b.StopTimer()
		from := s.e.w.tail
		for range 512 {
			s.send()
		}
		for pos := from; pos < s.e.w.tail; pos++ {
			h.acknowledge(s.e, pos, wire.RcOk)
		}
		h.reset()
		b.StartTimer()
		s.poll(s.a)
		n += 512
	}
	if s.gos != 0 {
		b.Errorf("Go is entered %d times", s.gos)
	}
}

// BenchmarkHostLookOne finds one acknowledgement in each poll, the NIC's writing of it included.
func BenchmarkHostLookOne(b *testing.B) {
	s, h := hostSteady(b)
	for n := 0; n < b.N; {
		b.StopTimer()
		from := s.e.w.tail
		for range 512 {
			s.send()
		}
		b.StartTimer()
		for pos := from; pos < s.e.w.tail; pos++ {
			h.acknowledge(s.e, pos, wire.RcOk)
			s.poll(s.a)
		}
		b.StopTimer()
		h.reset()
		b.StartTimer()
		n += 512
	}
	if s.gos != 0 {
		b.Errorf("Go is entered %d times", s.gos)
	}
}

// BenchmarkHostWrite is the writing of an acknowledgement alone.
func BenchmarkHostWrite(b *testing.B) {
	s, h := hostSteady(b)
	for pos := uint64(0); b.Loop(); pos++ {
		h.acknowledge(s.e, pos, wire.RcOk)
	}
}
