package provider

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/race"
	"github.com/weft-fabric/weft/mpsc"
)

// poller is a thread that polls: it walks the endpoints of a queue by the tables of
// plain words, and progresses those that have work. contexts is the table of
// handles.
type poller struct {
	contexts sync.Map // uint64 to *rxContext
	progress atomic.Uint64
	refused  atomic.Uint64 // leases of contexts that the endpoint had left
}

func (p *poller) poll(q *cq.Queue) {
	list := atomic.LoadUintptr(&q.Hot().EPs)
	if list == 0 {
		return
	}
	for ; ; list += unsafe.Sizeof(list) {
		at := atomic.LoadUintptr((*uintptr)(pointerAt(uint64(list))))
		if at == 0 {
			return
		}
		p.pollEndpoint((*hot.EP)(pointerAt(uint64(at))))
	}
}

// anyArrived reports whether a message stands in an inbound ring.
func anyArrived(ep *hot.EP) bool {
	rings := atomic.LoadUint32((*uint32)(pointerAt(uint64(ep.RxRings))))
	for n := range min(rings, hot.RxRings) {
		in := &ep.Inbound[n]
		if mpsc.Arrived(in) {
			return true
		}
	}
	return false
}

func (p *poller) pollEndpoint(ep *hot.EP) {
	at := atomic.LoadUintptr(&ep.Rx)
	rx := (*hot.Rx)(pointerAt(uint64(at)))
	if runtime.Gosched(); !anyArrived(ep) &&
		atomic.LoadUint32(&rx.Attention) == 0 &&
		(atomic.LoadUint32(&rx.WantPosts) == 0 || !mpsc.View(&rx.Posts).Ready(atomic.LoadUint64(&rx.PostsHead))) {
		return
	}
	runtime.Gosched() // later still
	if !atomic.CompareAndSwapUint32(&rx.Lease, 0, 1) {
		return
	}
	if atomic.LoadUintptr(&ep.Rx) == at {
		if v, ok := p.contexts.Load(rx.Handle); ok {
			r := v.(*rxContext)
			race.Acquire(&rx.Lease)
			r.Leased().Progress()
			race.Release(&rx.Lease)
			p.progress.Add(1)
		}
	} else {
		p.refused.Add(1)
	}
	atomic.StoreUint32(&rx.Lease, 0)
}

// small is a configuration with which endpoints open fast.
func small(c *config.Config) { c.RingSlots, c.BounceCount, c.MaxPeers, c.AVSizeMax = 16, 4, 16, 64 }

// usage is what a process may leak.
type usage struct{ files, maps, threads, rss int }

func measure(t *testing.T) usage {
	t.Helper()
	lines := func(path string) int {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "\n")
	}
	count := func(dir string) int {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	runtime.GC()
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return usage{count("/proc/self/fd"), lines("/proc/self/maps"), count("/proc/self/task"), pages * os.Getpagesize()}
}

// threadTime is the processor time that the calling thread has had.
func threadTime(t *testing.T) time.Duration {
	t.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// warm is the number of cycles before the first measurement.
const warm = 100

// TestLateReaders has threads poll a queue, and sleep on it, while endpoints that
// are bound to it come, receive and go: nothing faults, nothing is lost of what
// the endpoint that stays receives, and nothing grows.
func TestLateReaders(t *testing.T) {
	cycles, end := 10000, time.Now().Add(20*time.Second) // however slow the machine
	if testing.Short() {
		cycles = 300
	}
	b := newBench(t, small, nil)
	stay := b.side(t)
	var from *side
	shared, err := b.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged, Size: 256, WaitObj: fi.WaitUnspec}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var p poller
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			var entries [16]cq.Entry
			for !stop.Load() {
				p.poll(shared)
				_, _ = shared.Read(entries[:])
			}
		})
	}
	wg.Go(func() {
		var entries [16]cq.Entry
		for !stop.Load() {
			_, _ = shared.SRead(entries[:], 1, 1)
		}
	})
	buffers, err := mem.Map(24, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mem.Unmap(buffers) }()
	handle := uint64(100)
	var before usage
	done := 0
	for i := range cycles {
		if i > warm && time.Now().After(end) {
			break
		}
		if i%100 == 0 { // a sender keeps something of every peer that it had
			if from != nil {
				from.close()
				stay.check()
				_ = stay.av.Remove([]fi.Addr{stay.addr[from]}, 0)
			}
			from = b.side(t)
			from.know(stay)
			stay.know(from)
		}
		if i == warm {
			before = measure(t)
		}
		done++
		handle++
		late(t, &p, b, shared, from, handle, buffers[:8])
		got, out := buffers[8:16], buffers[16:24]
		out[3] = byte(i)
		stay.recv(RecvArgs{IOV: iovOf(got), Src: fi.AddrUnspec, Context: 7})
		from.send(SendArgs{IOV: iovOf(out), Dest: from.addr[stay], Inject: true}, stay)
		if e, err := stay.next(from); err != nil {
			info, _ := stay.cq.ReadErr()
			t.Fatalf("cycle %d: %v %+v", i, err, info)
		} else if e.Context != 7 || got[3] != byte(i) {
			t.Fatalf("%+v", e)
		}
	}
	after := measure(t)
	stop.Store(true)
	wg.Wait()
	if err := shared.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d cycles, %d times progress, %d late leases, before %+v, after %+v",
		done, p.progress.Load(), p.refused.Load(), before, after)
	if after.files > before.files+2 || after.maps > before.maps+64 || after.threads > before.threads+4 ||
		after.rss > before.rss+(8<<20) {
		t.Errorf("%d cycles: before %+v, after %+v", done-warm, before, after)
	}
}

// late opens an endpoint on a queue that others poll, sends to it, and closes it
// whatever has arrived by then.
func late(t *testing.T, p *poller, b *bench, shared *cq.Queue, from *side, handle uint64, buffer []byte) {
	t.Helper()
	av, err := b.domain.OpenAV(&fi.AVAttr{Type: fi.AVTable})
	if err != nil {
		t.Fatal(err)
	}
	ep, err := b.domain.OpenEndpoint(b.info)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{ep.BindCQ(shared, fi.Transmit|fi.Recv), ep.BindAV(av, 0), ep.Enable()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ep.base.rx.setHandle(handle)
	p.contexts.Store(handle, ep.base.rx)
	to := from.insert(ep.base.name)
	for range 3 {
		from.send(SendArgs{IOV: iovOf(buffer), Dest: to, Inject: true})
	}
	_ = ep.PostRecv(&RecvArgs{IOV: iovOf(buffer), Src: fi.AddrUnspec})
	for range handle % 8 {
		runtime.Gosched()
	}
	if err := ep.Close(); err != nil {
		t.Fatal(err)
	}
	p.contexts.Delete(handle)
	if err := errors.Join(av.Close(), from.av.Remove([]fi.Addr{to}, 0)); err != nil {
		t.Fatal(err)
	}
	from.check()
}

// check searches for peers that are gone.
func (s *side) check() {
	s.ep.base.rx.acquire()
	s.ep.base.transports.iface.CheckPeers()
	leasedOf(s.ep).rx.give()
}

// TestLateLease has a reader that looked an endpoint up before it was closed
// take the lease of its context afterwards, and hold it while the next endpoint
// uses the same memory.
func TestLateLease(t *testing.T) {
	b := newBench(t, small, nil)
	old := b.side(t)
	ep, rx := old.ep.base.hot, old.ep.base.rx.hot
	was := atomic.LoadUintptr(&ep.Rx)
	source := old.ep.base.source
	old.close()
	if atomic.LoadUintptr(&ep.Rx) == was {
		t.Fatal("a closed endpoint has its context")
	}
	if source.HasWork() || source.Attention() {
		t.Error("a closed endpoint has work")
	}
	if !atomic.CompareAndSwapUint32(&rx.Lease, 0, 1) {
		t.Fatal("the lease of a closed context is taken")
	}
	opened := make(chan *side)
	go func() { opened <- b.side(t) }()
	for atomic.LoadUintptr(&ep.Rx) != was {
		runtime.Gosched() // the next endpoint has the old one's memory, both blocks
	}
	select {
	case <-opened:
		t.Error("the endpoint was enabled without the lease")
	default:
	}
	atomic.StoreUint32(&rx.Lease, 0)
	next := <-opened
	if next.ep.base.hot != ep || next.ep.base.rx.hot != rx {
		t.Fatal("other memory")
	}
	source.Progress()
	source.Disarm()
	other := b.side(t)
	next.know(other)
	other.know(next)
	swap(t, next, other, 0, true)
	swap(t, other, next, fi.DeliveryComplete, false)
}

// TestNoRx shows that endpoints that are not enabled never have work, and that
// nothing gets a lease of theirs.
func TestNoRx(t *testing.T) {
	b := newBench(t, nil, nil)
	ep, err := b.domain.OpenEndpoint(b.info)
	if err != nil {
		t.Fatal(err)
	}
	defer ep.Close()
	rx := (*hot.Rx)(pointerAt(uint64(atomic.LoadUintptr(&ep.base.hot.Rx))))
	if rx == nil || rx.Lease != 1 || rx.Attention|rx.WantPosts|rx.Flags != 0 {
		t.Errorf("%+v", rx)
	}
}

// TestBlocksAreBounded: endpoints of several kinds that are opened and closed use the memory of those before.
func TestBlocksAreBounded(t *testing.T) {
	endpoints, contexts := map[*hot.EP]bool{}, map[*hot.Rx]bool{}
	for i := range 10 {
		for _, threading := range []fi.Threading{fi.ThreadSafe, fi.ThreadDomain} {
			b := newBench(t, small, &fi.Info{Domain: &fi.DomainAttr{Threading: threading}})
			s, o := b.side(t), b.side(t)
			for _, x := range []*side{s, o} {
				if i != 0 && (!endpoints[x.ep.base.hot] || !contexts[x.ep.base.rx.hot]) {
					t.Errorf("round %d: new memory", i)
				}
				endpoints[x.ep.base.hot], contexts[x.ep.base.rx.hot] = true, true
			}
			s.close()
			o.close()
		}
	}
}
