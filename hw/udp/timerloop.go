package udp

import (
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// timerLoop is the timer loop of an interface, for the time in which no thread polls it: it acknowledges, sends again
// and answers Inits, but delivers nothing. One goroutine runs it, which sleeps nearly always.
type timerLoop struct {
	i      *Iface
	wake   chan struct{}
	stop   chan struct{}
	done   chan struct{}
	polled []uint64      // stripe.polls in the last round
	idle   time.Duration // how long it slept last with nothing under way
	woken  atomic.Uint32 // 1: a wake is under way. Set by threads that post, cleared by the loop; seq_cst.

	// until is when it runs by itself, as of Iface.now. Stored by the loop before it reads a last time whether a
	// timer is set, loaded by threads that set one, with the stripe's lease; sequentially consistent.
	until atomic.Int64
}

// How long the timer loop sleeps.
const (
	loopIdle   = 100 * time.Millisecond // nothing is under way; doubles up to loopLong
	loopLong   = 800 * time.Millisecond // so that an idle process costs nothing that can be seen
	loopActive = 10 * time.Millisecond  // something is, but other threads poll
	loopBusy   = time.Millisecond       // something came, and no other thread polled
	loopBatch  = 50 * time.Microsecond  // until corked posts are sent
)

func (l *timerLoop) begin(i *Iface) {
	l.i = i
	l.wake, l.stop, l.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	l.polled = make([]uint64, len(i.stripes))
	l.idle = loopIdle
	go l.run()
}

// notify has the timer loop run soon: something waits to be sent. It costs a load if it is under way already.
func (l *timerLoop) notify() {
	if l.woken.Load() == 0 && l.woken.CompareAndSwap(0, 1) {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// expect has the timer loop run in time for a timer. While timers are set it runs every loopActive, so it is woken
// out of a longer sleep only, and by a thread that posts for ever not more often than that.
func (l *timerLoop) expect(due congestion.Time) {
	if int64(due)+int64(loopActive) < l.until.Load() {
		l.notify()
	}
}

func (l *timerLoop) run() {
	defer close(l.done)
	t := time.NewTimer(loopIdle)
	defer t.Stop()
	for {
		woken := false
		select {
		case <-l.stop:
			return
		case <-l.wake:
			time.Sleep(loopBatch)
			l.woken.Store(0)
			woken = true
		case <-t.C:
		}
		t.Reset(l.rest(l.round(woken)))
	}
}

// rest publishes how long the loop sleeps, for threads that set timers, and returns that: less, if a timer was set
// meanwhile.
func (l *timerLoop) rest(sleep time.Duration) time.Duration {
	l.until.Store(int64(l.i.now().Add(sleep)))
	if sleep <= loopActive {
		return sleep
	}
	for _, s := range l.i.stripes {
		if !s.lease.try() {
			return loopActive
		}
		set := s.next != 0
		s.lease.unlock()
		if set {
			return loopActive
		}
	}
	return sleep
}

// round serves all stripes that no other thread has polled, or that have something to send, and returns how long to
// sleep.
func (l *timerLoop) round(woken bool) time.Duration {
	quiet, sleep := true, loopLong
	if woken {
		quiet, sleep = false, loopActive
	}
	if l.i.xdp != nil {
		l.i.xdp.Tick(time.Duration(l.i.now()))
	}
	for n, s := range l.i.stripes {
		polls := s.polls.Load()
		others := polls != l.polled[n]
		if !s.lease.try() {
			if woken {
				l.notify() // what waits is not sent yet
			}
			sleep = min(sleep, loopActive)
			continue
		}
		switch {
		case others && woken:
			s.sendDirty(l.i.now())
		case others:
			quiet = false
		default:
			if _, some := s.work(); some {
				quiet = false
			}
			s.acks(l.i.now())
		}
		switch {
		case others && s.next != 0:
			sleep = min(sleep, loopActive)
		case s.next != 0:
			sleep = min(sleep, max(loopBusy, min(s.next.Sub(l.i.now()), loopActive)))
		}
		s.leave()
		l.polled[n] = s.polls.Load()
	}
	if sleep < loopLong || !quiet {
		l.idle = loopIdle
	} else {
		l.idle = min(2*l.idle, loopLong)
	}
	return min(sleep, l.idle)
}

// end stops the loop and waits for it.
func (l *timerLoop) end() {
	close(l.stop)
	<-l.done
}
