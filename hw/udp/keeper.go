package udp

import (
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// keeper is the timer loop of an interface, for the time in which no thread polls it: it acknowledges, sends again and
// answers Inits, but delivers nothing. One goroutine runs it, which sleeps nearly always.
type keeper struct {
	i      *Iface
	kick   chan struct{}
	stop   chan struct{}
	done   chan struct{}
	looked []uint64      // stripe.looks in the last round
	idle   time.Duration // how long it slept last with nothing under way
	kicked atomic.Uint32 // 1: a kick is under way. Set by posters, cleared by the keeper.

	// until is when it runs by itself, as of Iface.now. Stored by the loop before it reads a last time whether a
	// timer is set, loaded by threads that set one, with the stripe's lease; sequentially consistent.
	until atomic.Int64
}

// How long the timer loop sleeps.
const (
	keeperIdle   = 100 * time.Millisecond // nothing is under way; doubles up to keeperLong
	keeperLong   = 800 * time.Millisecond // so that an idle process costs nothing that can be seen
	keeperActive = 10 * time.Millisecond  // something is, but other threads poll
	keeperBusy   = time.Millisecond       // something came, and no other thread polled
	keeperBatch  = 50 * time.Microsecond  // until corked posts are sent
)

func (k *keeper) begin(i *Iface) {
	k.i = i
	k.kick, k.stop, k.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	k.looked = make([]uint64, len(i.stripes))
	k.idle = keeperIdle
	go k.run()
}

// nudge has the timer loop run soon: something waits to be sent. It costs a load if it is under way already.
func (k *keeper) nudge() {
	if k.kicked.Load() == 0 && k.kicked.CompareAndSwap(0, 1) {
		select {
		case k.kick <- struct{}{}:
		default:
		}
	}
}

// expect has the timer loop run in time for a timer. While timers are set it runs every keeperActive, so it is woken
// out of a longer sleep only, and by a thread that posts for ever not more often than that.
func (k *keeper) expect(due congestion.Time) {
	if int64(due)+int64(keeperActive) < k.until.Load() {
		k.nudge()
	}
}

func (k *keeper) run() {
	defer close(k.done)
	t := time.NewTimer(keeperIdle)
	defer t.Stop()
	for {
		kicked := false
		select {
		case <-k.stop:
			return
		case <-k.kick:
			time.Sleep(keeperBatch)
			k.kicked.Store(0)
			kicked = true
		case <-t.C:
		}
		t.Reset(k.rest(k.round(kicked)))
	}
}

// rest tells posters how long the keeper sleeps, and returns that: less, if a timer was set meanwhile.
func (k *keeper) rest(sleep time.Duration) time.Duration {
	k.until.Store(int64(k.i.now().Add(sleep)))
	if sleep <= keeperActive {
		return sleep
	}
	for _, s := range k.i.stripes {
		if !s.lease.try() {
			return keeperActive
		}
		set := s.next != 0
		s.lease.unlock()
		if set {
			return keeperActive
		}
	}
	return sleep
}

// round looks after all stripes that nobody has looked at, or that have
// something to send, and returns how long to sleep.
func (k *keeper) round(kicked bool) time.Duration {
	quiet, sleep := true, keeperLong
	if kicked {
		quiet, sleep = false, keeperActive
	}
	if k.i.xdp != nil {
		k.i.xdp.Tick(time.Duration(k.i.now()))
	}
	for n, s := range k.i.stripes {
		looks := s.looks.Load()
		others := looks != k.looked[n]
		if !s.lease.try() {
			if kicked {
				k.nudge() // what waits is not sent yet
			}
			sleep = min(sleep, keeperActive)
			continue
		}
		switch {
		case others && kicked:
			s.sendDirty(k.i.now())
		case others:
			quiet = false
		default:
			if _, some := s.work(); some {
				quiet = false
			}
			s.acks(k.i.now())
		}
		switch {
		case others && s.next != 0:
			sleep = min(sleep, keeperActive)
		case s.next != 0:
			sleep = min(sleep, max(keeperBusy, min(s.next.Sub(k.i.now()), keeperActive)))
		}
		s.leave()
		k.looked[n] = s.looks.Load()
	}
	if sleep < keeperLong || !quiet {
		k.idle = keeperIdle
	} else {
		k.idle = min(2*k.idle, keeperLong)
	}
	return min(sleep, k.idle)
}

// end stops the keeper and waits for it.
func (k *keeper) end() {
	close(k.stop)
	<-k.done
}
