package proxy

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleep is what an idle thread does: arm everything, poll once more, sleep.
func (p *Progress) sleep() {
	app, watch, attention := false, false, false
	now := time.Now()
	p.tick(now)
	for i := range p.list {
		d := &p.list[i]
		if d.app {
			app, watch = true, watch || !d.reserved
			d.disarm()
		} else {
			attention = attention || d.Attention()
			d.arm()
		}
	}
	state := uint32(bellAsleep)
	if app {
		state = bellWatch
	}
	p.bell.Arm(state)
	if p.pool.Ready() || p.next.Load() != p.seen.Load() || p.aborted.Load() || p.stale.Load() || p.wanted() {
		p.bell.Disarm()
		return
	}
	if app {
		add(&p.count.watches)
	} else {
		add(&p.count.sleeps)
		p.o.Note(Slept)
	}
	p.bell.Sleep(p.timeout(now, watch, attention))
	for i := range p.list {
		p.list[i].disarm()
	}
	p.housekeep()
}

// timeout returns how long to sleep.
func (p *Progress) timeout(now time.Time, watch, attention bool) time.Duration {
	if len(p.list) == 0 && !p.stopping.Load() {
		return -1
	}
	left := max(0, p.checkEvery()-now.Sub(p.lastCheck))
	if watch {
		left = min(left, p.watchEvery())
	}
	if attention || p.stopping.Load() {
		left = min(left, attentionSleep)
	}
	return left
}

// checkEvery is the time between two runs of the timers: Check after something
// happened, then twice as long each time up to checkMost.
func (p *Progress) checkEvery() time.Duration {
	every := p.o.Policy.Check
	if every < checkMost {
		every = min(every<<min(p.quiet, 16), checkMost)
	}
	return max(every, min(checkShare*p.checkCost, checkLongest))
}

// housekeep runs the timers when they are due. An application that makes the
// progress runs them, too.
func (p *Progress) housekeep() {
	now := time.Now()
	if now.Sub(p.lastCheck) < p.checkEvery() {
		return
	}
	p.lastCheck = now
	before := threadTime()
	for i := range p.list {
		if d := &p.list[i]; !d.app {
			d.Housekeeping()
		}
	}
	p.checkCost = threadTime() - before
	p.quiet++
	add(&p.count.checks)
}

// threadTime is the processor time that the calling thread has used. Time that it waits for a processor says
// nothing about what a run of the timers costs.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // the arguments are valid
	return time.Duration(t.Nano())
}

// watchEvery is the time between two readings of whether an application polls: Watch
// at first, and four times as long when it has kept on.
func (p *Progress) watchEvery() time.Duration {
	return p.o.Policy.Watch << min(p.kept/8, 2)
}

// tick finds out, every Watch, which engines the application drives by itself, and as soon as that was said, which it
// has reserved.
func (p *Progress) tick(now time.Time) {
	due := now.Sub(p.lastTick) >= p.o.Policy.Watch
	if stale := p.stale.Load() && p.stale.Swap(false); !due && !stale {
		return
	}
	if due {
		p.lastTick = now
		p.kept++
	}
	changed := false
	for i := range p.list {
		d := &p.list[i]
		was := d.app
		d.recheck(due)
		changed = changed || d.app != was
	}
	if changed {
		p.kept = 0
		p.choose()
	}
	p.housekeep()
}

// recheck finds out whether the application drives the engine: whether it has reserved it or, if due, has polled. Work
// that is found in the latter case has waited for a whole watch: the thread does one batch of it.
func (d *driven) recheck(due bool) {
	was := d.reserved
	d.reserved = d.Reserved()
	switch {
	case d.reserved:
		d.app = true
	case due:
		if d.app = d.Polled(); d.app && d.HasWork() {
			d.Progress()
		}
	case was:
		d.app = false
	}
}

func (d *driven) arm() {
	if !d.armed {
		d.armed = true
		d.Arm()
	}
}

func (d *driven) disarm() {
	if d.armed {
		d.armed = false
		d.Disarm()
	}
}
