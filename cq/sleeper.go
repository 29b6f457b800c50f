package cq

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
)

// slice is how long a sleeper sleeps while a source has work that no peer rings
// for.
const slice = time.Millisecond

// tickEvery is how long the timers of sources rest while threads sleep. A run costs a process that
// does nothing else some ten microseconds.
const tickEvery = time.Second

// started is what ticks count from.
var started = time.Now()

// sleeper is what threads sleep on: the descriptors of one wait object and the
// members (one queue or counter, or those of a wait set) that wake it.
//
// Threads sleep in poll on epoll. The event file is raised by the waking thread and
// lowered by the next one that goes to sleep and finds nothing. What that one polls for
// may differ from what another waits for (counters have thresholds), so it first
// lets every thread out of poll that may not have seen that the event was raised.
// Applications that poll themselves (native) cannot be seen: for them the event
// stays raised until there is nothing to read.
//
// mu is taken by threads that are about to sleep or have slept, and when
// members or sources change; never by threads that complete or wake.
type sleeper struct {
	kind fi.WaitObj // never WaitUnspec
	// Descriptors, immutable until close, -1 if the kind has none. epoll holds
	// the others and the sources' doorbells; it is what applications poll.
	event event
	timer int // timerfd; makes epoll readable after a slice, or when the timers are due
	epoll int

	// ticked is when the timers were last run, in nanoseconds since started. Changed, by
	// compare-and-swap, by the thread that runs them; read by all that sleep.
	ticked atomic.Int64

	mu       sync.Mutex
	members  atomic.Pointer[[]*Waiter] // replaced under mu
	doorbell map[int]int               // sources' descriptors in epoll and their uses; under mu
	sleeping int                       // threads in sleep; under mu
	polling  int                       // those of them in poll; under mu
	out      sync.Cond                 // signaled when polling becomes 0; its lock is mu
	native   bool                      // an application sleeps on its own: stay armed; under mu, never cleared
	watch    bool                      // a watcher runs; under mu
	closing  bool                      // under mu
	watchers sync.WaitGroup
	wake     func() // wakes the threads that wait on the condition variable; set before use
}

// newSleeper opens the descriptors that kind needs.
func newSleeper(kind fi.WaitObj) (*sleeper, error) {
	s := &sleeper{kind: kind, event: event{fd: -1}, timer: -1, epoll: -1, doorbell: map[int]int{}}
	s.out.L = &s.mu
	switch kind {
	case fi.WaitUnspec:
		s.kind = fi.WaitFD
	case fi.WaitFD, fi.WaitMutexCond, fi.WaitPollFD:
	case fi.WaitYield:
		return s, nil
	default:
		return nil, fmt.Errorf("wait object %d: %w", kind, fi.EINVAL)
	}
	if err := s.openFDs(); err != nil {
		s.closeFDs()
		return nil, err
	}
	return s, nil
}

func (s *sleeper) openFDs() (err error) {
	if err = s.event.open(); err != nil {
		return err
	}
	if s.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK); err != nil {
		s.timer = -1
		return fmt.Errorf("open timerfd: %w", err)
	}
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		s.epoll = -1
		return fmt.Errorf("open epoll: %w", err)
	}
	if err = s.watchFD(s.event.fd); err != nil {
		return err
	}
	return s.watchFD(s.timer)
}

func (s *sleeper) watchFD(fd int) error {
	err := unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
	if err != nil {
		return fmt.Errorf("add descriptor %d to epoll: %w", fd, err)
	}
	return nil
}

func (s *sleeper) closeFDs() {
	for _, fd := range []int{s.epoll, s.timer, s.event.fd} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// close ends the watcher and closes the descriptors. No thread may sleep.
func (s *sleeper) close() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.event.raise()
	s.watchers.Wait()
	s.closeFDs()
}

// add and remove change the members.
func (s *sleeper) add(w *Waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := append(slices.Clone(s.all()), w)
	s.members.Store(&list)
}

func (s *sleeper) remove(w *Waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(s.all()), func(o *Waiter) bool { return o == w })
	s.members.Store(&list)
}

func (s *sleeper) all() []*Waiter {
	if p := s.members.Load(); p != nil {
		return *p
	}
	return nil
}

// addDoorbell and removeDoorbell count the uses of a source's descriptor.
func (s *sleeper) addDoorbell(fd int) error {
	if fd < 0 || s.epoll < 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doorbell[fd] == 0 {
		if err := s.watchFD(fd); err != nil {
			return err
		}
	}
	s.doorbell[fd]++
	return nil
}

func (s *sleeper) removeDoorbell(fd int) {
	if fd < 0 || s.epoll < 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doorbell[fd]--; s.doorbell[fd] == 0 {
		delete(s.doorbell, fd)
		_ = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_DEL, fd, nil) // a closed one has left by itself
	}
}

// arm prepares for sleep: everything that found would see from now on raises
// the event. False: found says that there is something already. The caller holds
// mu, which is released meanwhile.
func (s *sleeper) arm(found func() bool) bool {
	if found() {
		return false
	}
	for s.event.raised() && s.polling > 0 {
		s.out.Wait() // they come at once: the event is raised
		if found() {
			return false
		}
	}
	if !s.unseen() {
		// else what has raised it since the loop is for one of those, which may not have seen it
		if s.polling == 0 {
			s.event.lower()
		}
		drain(s.timer)
	}
	for _, m := range s.all() {
		m.arm()
	}
	if s.unseen() {
		s.event.raise() // it came between, and was lowered
	}
	return !found()
}

// unseen reports whether there is something to read for an application that polls
// on its own, and so the event must be raised.
func (s *sleeper) unseen() bool {
	if !s.native {
		return false
	}
	for _, m := range s.all() {
		if m.pending() {
			return true
		}
	}
	return false
}

// disarm spares others the signal when no thread sleeps. The caller holds mu.
func (s *sleeper) disarm() {
	if s.sleeping > 0 || s.native {
		return
	}
	for _, m := range s.all() {
		m.disarm()
	}
}

func (s *sleeper) attention() bool {
	for _, m := range s.all() {
		if m.sources.attention() {
			return true
		}
	}
	return false
}

// tick runs the timers if they are due. A peer whose death nothing rings for is found by them.
func (s *sleeper) tick() {
	was, now := s.ticked.Load(), int64(time.Since(started))
	if now-was < int64(tickEvery) || !s.timed() || !s.ticked.CompareAndSwap(was, now) {
		return
	}
	for _, m := range s.all() {
		m.sources.timers()
	}
}

// timed reports whether there are timers to run.
func (s *sleeper) timed() bool {
	return slices.ContainsFunc(s.all(), func(m *Waiter) bool { return m.sources.timed() })
}

// nap is how long to sleep at most without a wake-up, 0: for ever.
func (s *sleeper) nap() time.Duration {
	switch {
	case s.attention():
		return slice
	case s.timed():
		return tickEvery
	}
	return 0
}

// sleep returns when found might have become true, or at the time until (zero:
// never). It may return early, and reports whether a signal to the calling thread was the reason.
func (s *sleeper) sleep(found func() bool, until time.Time) (signaled bool) {
	s.tick()
	if s.epoll < 0 {
		yield()
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sleeping++
	if s.arm(found) {
		signaled = s.poll(until)
	}
	s.sleeping--
	s.disarm()
	return signaled
}

// poll sleeps until epoll is readable, and reports whether a signal ended that. The caller holds mu, which is released
// meanwhile.
func (s *sleeper) poll(until time.Time) (signaled bool) {
	ms := s.timeout(until)
	if s.event.raised() && s.unseen() { // raised for another reader, which has not read yet
		s.mu.Unlock()
		time.Sleep(slice)
		s.mu.Lock()
		return false
	}
	s.polling++
	s.mu.Unlock()
	signaled = pollFD(s.epoll, ms)
	s.mu.Lock()
	if s.polling--; s.polling == 0 {
		s.out.Broadcast()
	}
	return signaled
}

// timeout returns for poll how many milliseconds to sleep, rounded up.
func (s *sleeper) timeout(until time.Time) int {
	left := time.Duration(-1)
	if !until.IsZero() {
		left = max(0, time.Until(until))
	}
	if nap := s.nap(); nap != 0 && (left < 0 || left > nap) {
		left = nap
	}
	if left < 0 {
		return -1
	}
	return int(min((left+time.Millisecond-1)/time.Millisecond, 1<<30))
}

// tryArm is arm for a thread that will sleep on the descriptors, or the
// condition variable, on its own.
func (s *sleeper) tryArm(found func() bool) bool {
	s.tick()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoll < 0 {
		return !found()
	}
	s.native = true
	if !s.arm(found) {
		return false
	}
	if nap := s.nap(); nap != 0 {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(nap))}
		_ = unix.TimerfdSettime(s.timer, 0, &spec, nil) // the arguments are valid
	}
	if s.kind == fi.WaitMutexCond && s.wake != nil && !s.watch && !s.closing {
		s.watch = true
		s.watchers.Go(s.watcher)
	}
	return true
}

// watcher stands in for a thread that waits on a condition variable: it sleeps
// on the descriptors and passes the first wake-up on.
func (s *sleeper) watcher() {
	pollFD(s.epoll, -1)
	s.mu.Lock()
	s.watch = false
	closing := s.closing
	s.mu.Unlock()
	if !closing {
		s.wake()
	}
}
