package proxy

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/cpuset"
)

// Placement says where a thread runs.
type Placement struct {
	// CPUs are the processors that it may use; none: those of the thread that
	// starts it.
	CPUs cpuset.Set
	// Node is the NUMA node of the device that the thread serves, -1 if it has
	// none or CPUs are given. The thread then runs on those of its processors
	// that belong to the node, if any do.
	Node int
	// Root is where the node folders are; empty: /sys/devices/system/node.
	Root string
}

const nodeRoot = "/sys/devices/system/node"

// maxName is the longest name that the kernel keeps for a thread.
const maxName = 15

// thread is an operating system thread of weft's own. It runs Go code and
// nothing else, so what it does costs no call from C into Go.
type thread struct {
	name string
	// tid is the thread's number in the kernel, 0 before it runs. Written by
	// the thread, read by any.
	tid  atomic.Int32
	done chan struct{} // closed when it has ended
	cpus string        // that it may use, for the dump; set before start returns
	// alone: it has one processor, which is the only one of the thread that started it, too, so
	// it must not spin there. Set before start returns.
	alone bool
}

// OnThread is called by each thread that begins, with the number of those that run. Set before the
// first one begins.
var OnThread = func(running int) {}

// running is the number of threads. Changed by each, sequentially consistent.
var running atomic.Int32

// firstThread is the one on which the Go runtime starts. It never ends: a
// goroutine that ends locked to it leaves it asleep for ever, with the name and
// place that were given to it. So no body runs there.
var firstThread = unix.Gettid() // packages are initialised on it

// start runs body on a new thread with a name and a place. It returns when the
// thread is set up, or with the reason why it cannot be.
func (t *thread) start(name string, at Placement, body func()) error {
	t.name = name[:min(len(name), maxName)]
	t.done = make(chan struct{})
	ready := make(chan error, 1)
	starter, err := cpuset.OfThread()
	if err != nil {
		return fmt.Errorf("thread %s: %w", t.name, err)
	}
	go t.begin(at, starter, body, ready)
	if err := <-ready; err != nil {
		<-t.done
		return fmt.Errorf("thread %s: %w", t.name, err)
	}
	return nil
}

// timerSlack is how late a thread may wake from a sleep, in ns: the kernel's default.
const timerSlack = 50_000

// begin is the goroutine of a thread.
func (t *thread) begin(at Placement, starter cpuset.Set, body func(), ready chan error) {
	runtime.LockOSThread() // for ever: the thread ends with the goroutine, and its name and place with it
	if unix.Gettid() == firstThread {
		other := make(chan error, 1)
		go t.begin(at, starter, body, other) // cannot run here as long as this goroutine is locked
		ready <- <-other
		runtime.UnlockOSThread()
		return
	}
	defer close(t.done)
	err := t.setUp(at, starter)
	ready <- err
	if err == nil {
		OnThread(int(running.Add(1)))
		defer running.Add(-1)
		body()
	}
}

func (t *thread) setUp(at Placement, starter cpuset.Set) error {
	var name [maxName + 1]byte
	copy(name[:], t.name)
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name)), 0, 0, 0); err != nil {
		return fmt.Errorf("set its name: %w", err)
	}
	if err := blockSignals(); err != nil {
		return err
	}
	// The runtime's threads have more, which this one inherited (cabi/signals.c).
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0); err != nil {
		return fmt.Errorf("set its timers' slack: %w", err)
	}
	if err := at.bind(); err != nil {
		return err
	}
	cpus, err := cpuset.OfThread()
	if err != nil {
		return err
	}
	t.cpus, t.alone = cpus.String(), cpus.Count() == 1 && cpus == starter
	t.tid.Store(int32(unix.Gettid()))
	return nil
}

// blockSignals leaves the application's signals to its own threads: a handler
// that expects to run on one of them, or interrupts its system call, must, and
// its stack is not a goroutine's. A fault of the thread ends the process.
func blockSignals() error {
	var set unix.Sigset_t
	for i := range set.Val {
		set.Val[i] = ^set.Val[i]
	}
	for _, s := range []uint{sigCancel, sigSetXID} {
		bits := uint(unsafe.Sizeof(set.Val[0])) * 8
		set.Val[(s-1)/bits] &^= 1 << ((s - 1) % bits)
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &set, nil); err != nil {
		return fmt.Errorf("block signals: %w", err)
	}
	return nil
}

// The signals that the C library sends to threads of its process, which it waits for.
const (
	sigCancel = 32
	sigSetXID = 33 // so that all threads change their user
)

// bind moves the calling thread to its place.
func (p *Placement) bind() error {
	if p.CPUs.Count() != 0 {
		return p.CPUs.Bind()
	}
	if p.Node < 0 {
		return nil
	}
	root := p.Root
	if root == "" {
		root = nodeRoot
	}
	near, err := cpuset.OfNode(root, p.Node)
	if err != nil {
		return err
	}
	own, err := cpuset.OfThread()
	if err != nil {
		return err
	}
	if both := near.And(&own); both.Count() != 0 {
		return both.Bind()
	}
	return nil // the launcher bound the process elsewhere, and knows why
}
