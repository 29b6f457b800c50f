package provider

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
)

// TestRecvAsleep posts a receive for a message that is unexpected, while another thread sleeps on the queue: it is
// woken, long before its next tick, and has the completion.
func TestRecvAsleep(t *testing.T) {
	for _, control := range []fi.Progress{fi.ProgressManual, fi.ProgressAuto} {
		for _, data := range []fi.Progress{fi.ProgressManual, fi.ProgressAuto} {
			t.Run(fmt.Sprintf("progress %v, %v", control, data), func(t *testing.T) {
				recvAsleep(t, progressHints(control, data))
			})
		}
	}
}

func recvAsleep(t *testing.T, hints *fi.Info) {
	b := newBench(t, nil, hints)
	s, from := b.sideWith(t, fi.WaitFD), b.side(t)
	s.know(from)
	from.know(s)
	for n := range uint64(20) {
		from.send(SendArgs{IOV: iovOf([]byte{1}), Dest: from.addr[s], Tagged: true, Tag: 1, Flags: fi.Inject}, s)
		from.completion(s)
		ended := make(chan error, 1)
		go func() {
			var e [1]cq.Entry
			_, err := s.cq.SRead(e[:], 1, -1)
			ended <- err
		}()
		r := s.ep.base.rx
		for atomic.LoadUint32(&s.cq.Hot().Armed) == 0 || atomic.LoadUint32(&r.hot.WantPosts) == 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Millisecond) // it sleeps by now
		r.ring()                         // a progress thread is awake for a moment, as it is while it copies
		began := time.Now()
		buf := make([]byte, 1)
		recv := RecvArgs{IOV: iovOf(buf), Src: fi.AddrUnspec, Tagged: true, Tag: 1, Context: n}
		if err := s.ep.PostRecv(&recv); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil || time.Since(began) > 400*time.Millisecond {
			t.Fatalf("receive %d: %v after %v", n, err, time.Since(began))
		}
		r.acquire() // the race detector sees leases, and not completions
		if leasedOf(s.ep).rx.give(); buf[0] != 1 {
			t.Fatalf("receive %d: %d", n, buf[0])
		}
	}
}
