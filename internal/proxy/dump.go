package proxy

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// stater is what shows up in the dump.
type stater interface{ State() string }

// live lists the threads of the process, in the order in which they started.
var live struct {
	sync.Mutex // taken when threads start and end, and by the dump
	threads    []stater
}

func register(t stater) {
	live.Lock()
	live.threads = append(live.threads, t)
	live.Unlock()
}

// unregister reports whether t was there.
func unregister(t stater) bool {
	live.Lock()
	defer live.Unlock()
	n := len(live.threads)
	live.threads = slices.DeleteFunc(live.threads, func(o stater) bool { return o == t })
	return len(live.threads) != n
}

// State describes every thread of weft's in the process: what it did, and what
// it is at.
func State() string {
	live.Lock()
	threads := slices.Clone(live.threads)
	live.Unlock()
	var b strings.Builder
	for _, t := range threads {
		b.WriteString(t.State())
	}
	return b.String()
}

// dumps counts the signals that a dump is written for.
var dumps struct {
	sync.Mutex // control operations only
	on         map[int]bool
}

// OnSignal calls report, in a goroutine, whenever the process has got a signal, as often as there
// is time for. A library sets another one, before the first use.
var OnSignal = func(sig int, report func()) error {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.Signal(sig))
	go func() {
		for range c {
			report()
		}
	}()
	return nil
}

// DumpOn makes the process write [State] to standard error when it gets a
// signal. It stays so. A handler that the application has for the signal
// before is replaced, one that it installs later wins. The error says why it
// cannot be.
func DumpOn(sig int) error {
	dumps.Lock()
	defer dumps.Unlock()
	if dumps.on[sig] {
		return nil
	}
	if err := OnSignal(sig, func() { writeAll(2, State()) }); err != nil {
		return fmt.Errorf("dump on signal %d: %w", sig, err)
	}
	if dumps.on == nil {
		dumps.on = map[int]bool{}
	}
	dumps.on[sig] = true
	return nil
}

// writeAll writes text to a descriptor in as few writes as it takes.
func writeAll(fd int, text string) {
	for b := []byte(text); len(b) > 0; {
		n, err := unix.Write(fd, b)
		if err != nil && err != unix.EINTR {
			return
		}
		b = b[max(0, n):]
	}
}
