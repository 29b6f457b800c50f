// Package service has the service thread of a process, which answers other processes of the same user: which endpoints
// there are, and what weft's threads are at (for weft top). There is one for all users of a [Thread]; it starts with
// the first and ends with the last.
package service

import (
	"sync"
	"time"

	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proxy"
)

// stopTime bounds how long the end of the last user waits for the thread to end.
const stopTime = time.Second

// Thread is the service thread, if there are users of it. Any thread may call its methods.
type Thread struct {
	// Handlers answer requests besides those that package proxy does. Immutable.
	Handlers map[proxy.Kind]func(*proxy.Request)

	mu      sync.Mutex // control operations only, as is all that it guards
	users   int
	running *proxy.Service // nil: none
}

// Acquire counts a user. A process whose address is taken (by one that forked from it and is still there) goes without
// a thread: nothing that applications are promised depends on it.
func (t *Thread) Acquire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users++; t.users > 1 {
		return
	}
	s, err := proxy.StartService(proxy.ServiceOptions{
		Name:     "weft-service",
		Address:  proxy.OwnAddress("service"),
		Place:    proxy.Placement{Node: -1},
		Handlers: t.Handlers,
		Logf:     func(format string, args ...any) { log.Infof(log.Domain, format, args...) },
	})
	if err != nil {
		log.Warnf(log.Domain, "no service thread: %v", err)
	}
	t.running = s
}

// Release takes back an Acquire.
func (t *Thread) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users == 0 && t.running != nil {
		t.running.Stop(stopTime)
		t.running = nil
	}
}

// Abort ends the thread at the end of the process, at once.
func (t *Thread) Abort() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running != nil {
		t.running.Abort()
	}
}

// Every calls f again and again, after what it returns, on the thread. The caller is a user as long as that goes on. It
// reports false, and calls nothing, if there is no thread.
func (t *Thread) Every(f func() time.Duration) (stop func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == nil {
		return nil, false
	}
	return t.running.Tick(f), true
}

// Every is [Thread.Every] in a goroutine.
func Every(f func() time.Duration) (stop func()) {
	done := make(chan struct{})
	var over sync.WaitGroup
	over.Go(func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-done:
				return
			case <-timer.C:
				timer.Reset(max(f(), time.Millisecond))
			}
		}
	})
	return func() { close(done); over.Wait() }
}
