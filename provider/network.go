package provider

import (
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
)

// network is a port to other hosts with the state of its polling. A poll of such
// a port costs a system call, or at least an entry into the runtime, unless the
// data plane polls it (driven.go). So every poll includes it while there is
// traffic, and a goroutine, the watcher, sleeps on its doorbell otherwise:
//
//	watcher: arm → nothing pending → sleep → active = 1, attention → wait for calm
//	poll:    active? → Progress; nothing for a while → active = 0, calm
type network struct {
	port *port
	ep   *Endpoint
	wait hw.Waiter
	file *os.File      // the doorbell; the watcher sleeps on it
	calm chan struct{} // poll notifies the watcher that there is no traffic
	done chan struct{} // closed by close
	over sync.WaitGroup
	once sync.Once
	// queues are those of the endpoint, from start on, with counters that are bound
	// later. Stored under the endpoint's mu, read by the watcher; sequentially consistent.
	queues atomic.Pointer[[]queue]
	// driven is set where the data plane polls the port, nil: only Go does. Immutable
	// from Enable on. taken is how many messages it had taken at the last poll from Go.
	driven *hot.Port
	taken  uint64

	// woken is when active was last set, nanoseconds since began. Stored by the
	// thread that sets active, read by the lease holder.
	woken atomic.Int64
	began time.Time

	// The lease holder's: polls in a row that found nothing, and when the first of
	// them was, since began.
	polls uint32
	seen  time.Duration

	// patience is how long nothing arrives before the port is left to the
	// watcher, in nanoseconds. Stored by the watcher, read by polls.
	patience atomic.Int64
	// calmed is when that was last done, in nanoseconds since began. Stored by
	// polls, read by the watcher.
	calmed atomic.Int64

	// active is 1 while polls include the port. Stored by the watcher (1), by
	// posts (1) and by the lease holder (0), read by polls and posts; sequentially
	// consistent. Of a driven port it is a word of the endpoint's that C reads, too.
	active *uint32
}

// The watcher costs a sleeping thread's wake-up, and some hundred microseconds
// more where processors are short. So patience doubles each time that something
// arrives soon after polls have left the port out, and is halved when it comes later.
const (
	leastPatience = time.Millisecond
	mostPatience  = 64 * time.Millisecond
	soon          = 250 * time.Millisecond
	// clockEvery is how many empty polls there are between two reads of the clock.
	clockEvery = 32
)

func newNetwork(e *Endpoint, p *port) *network {
	w, _ := p.Iface.(hw.Waiter)
	n := &network{port: p, ep: e, wait: w, calm: make(chan struct{}, 1), done: make(chan struct{}),
		began: time.Now(), active: new(uint32)}
	n.patience.Store(int64(leastPatience))
	return n
}

// listen sets the queues on which those sleep that arrivals wake.
func (n *network) listen(queues []queue) {
	list := slices.Clone(queues)
	n.queues.Store(&list)
}

// start begins to watch. The endpoint is attached to its queues.
func (n *network) start() error {
	n.listen(n.ep.attached)
	if n.wait == nil {
		n.wake() // no doorbell: always poll
		return nil
	}
	if err := n.wait.EnableWait(); err != nil {
		return err
	}
	fd, err := unix.FcntlInt(uintptr(n.wait.DoorbellFD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return err
	}
	n.file = os.NewFile(uintptr(fd), "weft network doorbell")
	n.over.Go(n.watch)
	return nil
}

// watch is the watcher.
func (n *network) watch() {
	raw, err := n.file.SyscallConn()
	if err != nil {
		log.Warnf(log.EPCtrl, "network doorbell: %v", err)
		n.notify()
		return
	}
	for {
		n.wait.Arm()
		if !n.wait.Pending() {
			err = raw.Read(func(fd uintptr) bool {
				ready, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
				return ready > 0
			})
		}
		n.wait.Disarm()
		if err != nil {
			return // closed
		}
		n.learn()
		select {
		case <-n.calm: // of before
		default:
		}
		n.notify()
		select {
		case <-n.calm:
		case <-n.done:
			return
		}
	}
}

// learn takes in that something has arrived while nothing polled.
func (n *network) learn() {
	patience := time.Duration(n.patience.Load())
	if time.Since(n.began)-time.Duration(n.calmed.Load()) < soon {
		patience = min(2*patience, mostPatience)
	} else {
		patience = max(patience/2, leastPatience)
	}
	n.patience.Store(int64(patience))
}

// notify has polls include the port, and wakes the threads that sleep on the endpoint's queues.
func (n *network) notify() {
	n.woken.Store(int64(time.Since(n.began)))
	atomic.StoreUint32(n.active, 1)
	r := n.ep.rx
	atomic.OrUint32(&r.hot.Attention, n.attention())
	r.ring()
	for _, q := range *n.queues.Load() {
		q.Waiter().Wake()
	}
	n.ep.domain.drives.Wake()
}

// attention is the bit of the context's attention word by which polls include this port.
func (n *network) attention() uint32 {
	if n.driven != nil {
		return hot.AttentionPorts
	}
	return hot.AttentionGo
}

// wake has polls include the port. Posts to other hosts call it, because an answer is to come.
func (n *network) wake() {
	if atomic.LoadUint32(n.active) == 0 {
		n.woken.Store(int64(time.Since(n.began)))
		atomic.StoreUint32(n.active, 1)
		atomic.OrUint32(&n.ep.rx.hot.Attention, n.attention())
	}
}

// poll takes in what has arrived and returns how much.
func (n *network) poll(e *leasedEP, limit int) int {
	if atomic.LoadUint32(n.active) == 0 {
		if n.driven == nil || !n.port.Iface.(hw.Driven).Written() {
			return 0
		}
		n.wake() // a peer has written what rings no doorbell
	}
	got := n.port.Progress(limit)
	switch {
	case got != 0 || n.drove():
		n.polls = 0
		return got
	case n.wait == nil:
		return 0
	case n.polls == 0:
		n.seen = time.Since(n.began)
	}
	if n.polls++; n.polls%clockEvery != 0 && n.driven == nil {
		return 0 // C's polls lead here only now and then
	}
	now := time.Since(n.began)
	patience := time.Duration(n.patience.Load())
	if e.waitsForNetwork() {
		patience = mostPatience // an answer must come, if the peer lives
	}
	if now-n.lastNews() < patience {
		return 0
	}
	n.calmed.Store(int64(now))
	atomic.StoreUint32(n.active, 0)
	select {
	case n.calm <- struct{}{}:
	default:
	}
	return 0
}

// drove reports whether the data plane has taken messages since the last call. The caller holds the progress lease.
func (n *network) drove() bool {
	if n.driven == nil {
		return false
	}
	was := n.taken
	n.taken = atomic.LoadUint64(&n.driven.Taken)
	return n.taken != was
}

// lastNews is when there last was traffic, or active was set because some is expected; since began.
func (n *network) lastNews() time.Duration { return max(n.seen, time.Duration(n.woken.Load())) }

// waitsForNetwork reports whether transfers of large messages with other hosts, or operations of a device, are under
// way.
func (e *leasedEP) waitsForNetwork() bool {
	return len(e.rx.pulls)+len(e.transfers) != 0 || e.exposed.Any() || e.devices.any()
}

// busy reports whether polls include the port.
func (n *network) busy() bool { return atomic.LoadUint32(n.active) != 0 }

// close ends the watcher. The port is closed by the caller afterwards.
func (n *network) close() {
	n.once.Do(func() {
		close(n.done)
		if n.file != nil {
			_ = n.file.Close()
		}
		n.over.Wait()
	})
}
