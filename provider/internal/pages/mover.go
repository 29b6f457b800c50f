package pages

import (
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/log"
)

const (
	// movePause is between two attempts at least, and moveShare is how many times as long as an attempt
	// took the next one waits. A thread that uses the memory waits for it, so that is what moving costs at most.
	// It takes 0.7 ms, and 5 in a virtual machine whose host has to find the memory.
	movePause = 200 * time.Microsecond
	moveShare = 20
	// moveTries is how often one huge page is attempted: while others copy, some of its
	// pages are pinned most of the time.
	moveTries = 400
	// moveVain is how many attempts in a row end in vain before no more are made.
	moveVain = 2000
	// moveQueue is how many wait at most.
	moveQueue = 256
)

// Mover puts memory of this process on huge pages in the background. Memory that
// is in use when it is to be moved is tried again.
type Mover struct {
	collapse func(at uint64) error

	mu      sync.Mutex // taken when memory has been used often, and by the goroutine that moves it
	waiting []collapsing
	running bool
	vain    int // attempts since the last success
}

// collapsing is memory that is to be moved.
type collapsing struct {
	at    uint64
	tries int
}

// Background is the mover of this process.
var Background = NewMover(collapse)

// NewMover makes a mover that moves the memory at an address, a multiple of Size, by a function.
func NewMover(collapse func(at uint64) error) *Mover { return &Mover{collapse: collapse} }

// Ask has all huge pages moved that n bytes at an address touch. Any thread.
func (c *Mover) Ask(addr, n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := addr &^ (Size - 1); at < addr+n; at += Size {
		if c.vain < moveVain && len(c.waiting) < moveQueue && !c.waits(at) {
			c.waiting = append(c.waiting, collapsing{at: at})
		}
	}
	if !c.running && len(c.waiting) != 0 {
		c.running = true
		go c.run()
	}
}

// waits reports whether memory is to be moved already. The caller has mu.
func (c *Mover) waits(at uint64) bool {
	return slices.ContainsFunc(c.waiting, func(w collapsing) bool { return w.at == at })
}

// run moves what waits, one after the other, until nothing does.
func (c *Mover) run() {
	for {
		c.mu.Lock()
		if len(c.waiting) == 0 || c.vain >= moveVain {
			c.waiting, c.running = nil, false
			c.mu.Unlock()
			return
		}
		at := c.waiting[0].at
		c.mu.Unlock()
		begin := time.Now()
		c.tried(c.collapse(at))
		time.Sleep(max(movePause, moveShare*time.Since(begin)))
	}
}

// tried takes in the outcome of an attempt at the first that waits. If that is to be tried again, it is
// the last then.
func (c *Mover) tried(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiting[0]
	c.waiting = c.waiting[1:]
	w.tries++
	if err == nil {
		c.vain = 0
		log.Infof(log.MR, "memory at %#x is used often and on a huge page now, after %d attempts", w.at, w.tries)
		return
	}
	if errors.Is(err, errSparse) {
		log.Debugf(log.MR, "memory at %#x is used often, but stays on small pages: %v", w.at, err)
		return
	}
	if c.vain++; c.vain == moveVain {
		log.Infof(log.MR, "memory is put on huge pages no more: %d attempts in vain, the last: %v", c.vain, err)
	}
	if w.tries < moveTries && (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EBUSY)) {
		c.waiting = append(c.waiting, w)
		return
	}
	log.Infof(log.MR, "memory at %#x is used often, but stays on small pages: %v", w.at, err)
}
