// Package watch polls a transport to other hosts while there is traffic, and watches its doorbell otherwise. A poll of
// such a transport costs a system call, or at least an entry into the runtime, unless the data plane polls it
// (hw.Driven). So every poll includes it while there is traffic, and a goroutine, the watcher, sleeps on its doorbell
// otherwise:
//
//	watcher: arm → nothing pending → sleep → active = 1, attention → wait for calm
//	poll:    active? → Progress; nothing for a while → active = 0, calm
//
// Any thread calls Notify and Busy; the holder of the progress lease calls Poll. The other methods are control
// operations.
package watch

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
)

// Owner is what a transport belongs to. Any thread calls its methods.
type Owner interface {
	// Attention has polls of the receive context include what bits of its attention word stand for.
	Attention(bits uint32)
	// Notify wakes the threads that sleep until something arrives.
	Notify()
}

// Transport is the state of polling of a transport.
type Transport struct {
	iface hw.Iface
	owner Owner
	wait  hw.Waiter
	file  *os.File      // the doorbell; the watcher sleeps on it
	calm  chan struct{} // poll notifies the watcher that there is no traffic
	done  chan struct{} // closed by Close
	over  sync.WaitGroup
	once  sync.Once
	now   func() time.Duration // since the transport was made

	// driven is set where the data plane polls the transport, nil: only the runtime does. Immutable
	// from Drive on. taken is how many messages it had taken at the last poll from the runtime.
	driven  *hot.Transport
	written hw.Driven // of driven
	taken   uint64

	// woken is when active was last set, in nanoseconds of now. Stored by the
	// thread that sets active, read by the lease holder.
	woken atomic.Int64

	// The lease holder's: polls in a row that found nothing, and when the first of
	// them was.
	polls uint32
	seen  time.Duration

	// patience is how long nothing arrives before the transport is left to the
	// watcher, in nanoseconds. Stored by the watcher, read by polls.
	patience atomic.Int64
	// calmed is when that was last done, in nanoseconds of now. Stored by
	// polls, read by the watcher.
	calmed atomic.Int64

	// active is 1 while polls include the transport. Stored by the watcher (1), by
	// posts (1) and by the lease holder (0), read by polls and posts; sequentially
	// consistent. Of a driven transport it is a word of the endpoint's that the data plane reads, too.
	active *uint32
}

// The watcher costs a sleeping thread's wake-up, and some hundred microseconds
// more where processors are short. So patience doubles each time that something
// arrives soon after polls have left the transport out, and is halved when it comes later.
const (
	leastPatience = time.Millisecond
	mostPatience  = 64 * time.Millisecond
	soon          = 250 * time.Millisecond
	// clockEvery is how many empty polls there are between two reads of the clock.
	clockEvery = 32
)

// New returns a transport that nothing watches yet. now is the clock, from any zero on; nil: time since the call.
func New(i hw.Iface, o Owner, now func() time.Duration) *Transport {
	if now == nil {
		began := time.Now()
		now = func() time.Duration { return time.Since(began) }
	}
	w, _ := i.(hw.Waiter)
	p := &Transport{iface: i, owner: o, wait: w, calm: make(chan struct{}, 1), done: make(chan struct{}), now: now,
		active: new(uint32)}
	p.patience.Store(int64(leastPatience))
	return p
}

// Drive has the data plane poll the transport and send over it, before Start. active is the word by which it knows
// whether it does; 0 afterwards.
func (p *Transport) Drive(d hw.Driven, active *uint32) {
	p.driven, p.written, p.active = d.HotTransport(), d, active
	atomic.StoreUint32(active, 0)
}

// Driven is the transport as the data plane has it, nil: only the runtime polls it.
func (p *Transport) Driven() *hot.Transport { return p.driven }

// Belled reports whether the transport has a doorbell.
func (p *Transport) Belled() bool { return p.wait != nil }

// Start begins to watch. One without a doorbell is always polled. Errors are the system's.
func (p *Transport) Start() error {
	if p.wait == nil {
		p.Notify()
		return nil
	}
	if err := p.wait.EnableWait(); err != nil {
		return err
	}
	fd, err := unix.FcntlInt(uintptr(p.wait.DoorbellFD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return err
	}
	p.file = os.NewFile(uintptr(fd), "weft network doorbell")
	p.over.Go(p.watch)
	return nil
}

// watch is the watcher.
func (p *Transport) watch() {
	raw, err := p.file.SyscallConn()
	if err != nil {
		log.Warnf(log.EPCtrl, "network doorbell: %v", err)
		p.rung()
		return
	}
	for {
		p.wait.Arm()
		if !p.wait.Pending() {
			err = raw.Read(func(fd uintptr) bool {
				ready, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
				return ready > 0
			})
		}
		p.wait.Disarm()
		if err != nil {
			return // closed
		}
		p.learn()
		select {
		case <-p.calm: // of before
		default:
		}
		p.rung()
		select {
		case <-p.calm:
		case <-p.done:
			return
		}
	}
}

// learn takes in that something has arrived while nothing polled.
func (p *Transport) learn() {
	patience := time.Duration(p.patience.Load())
	if p.now()-time.Duration(p.calmed.Load()) < soon {
		patience = min(2*patience, mostPatience)
	} else {
		patience = max(patience/2, leastPatience)
	}
	p.patience.Store(int64(patience))
}

// rung has polls include the transport, and wakes the threads that sleep.
func (p *Transport) rung() {
	p.activate()
	p.owner.Notify()
}

// activate has polls include the transport.
func (p *Transport) activate() {
	p.woken.Store(int64(p.now()))
	atomic.StoreUint32(p.active, 1)
	p.owner.Attention(p.attention())
}

// attention is the bit of the context's attention word by which polls include this transport.
func (p *Transport) attention() uint32 {
	if p.driven != nil {
		return hot.AttentionTransports
	}
	return hot.AttentionGo
}

// Notify has polls include the transport. Posts to other hosts call it, because an answer is to come.
func (p *Transport) Notify() {
	if atomic.LoadUint32(p.active) == 0 {
		p.activate()
	}
}

// Poll takes in up to limit messages that have arrived, and returns how many. awaited reports whether an answer must
// come, if the peer lives.
func (p *Transport) Poll(limit int, awaited func() bool) int {
	if atomic.LoadUint32(p.active) == 0 {
		if p.driven == nil || !p.written.Written() {
			return 0
		}
		p.Notify() // a peer has written what rings no doorbell
	}
	got := p.iface.Progress(limit)
	switch {
	case got != 0 || p.drove():
		p.polls = 0
		return got
	case p.wait == nil:
		return 0
	case p.polls == 0:
		p.seen = p.now()
	}
	if p.polls++; p.polls%clockEvery != 0 && p.driven == nil {
		return 0 // polls of the data plane lead here only now and then
	}
	now := p.now()
	patience := time.Duration(p.patience.Load())
	if awaited() {
		patience = mostPatience
	}
	if now-p.lastNews() < patience {
		return 0
	}
	p.calmed.Store(int64(now))
	atomic.StoreUint32(p.active, 0)
	select {
	case p.calm <- struct{}{}:
	default:
	}
	return 0
}

// drove reports whether the data plane has taken messages since the last call. The caller holds the progress lease.
func (p *Transport) drove() bool {
	if p.driven == nil {
		return false
	}
	was := p.taken
	p.taken = atomic.LoadUint64(&p.driven.Taken)
	return p.taken != was
}

// lastNews is when there last was traffic, or active was set because some is expected.
func (p *Transport) lastNews() time.Duration { return max(p.seen, time.Duration(p.woken.Load())) }

// Busy reports whether polls include the transport.
func (p *Transport) Busy() bool { return atomic.LoadUint32(p.active) != 0 }

// Close ends the watcher. The caller closes the interface afterwards.
func (p *Transport) Close() {
	p.once.Do(func() {
		close(p.done)
		if p.file != nil {
			_ = p.file.Close()
		}
		p.over.Wait()
	})
}
