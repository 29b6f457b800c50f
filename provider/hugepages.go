package provider

import (
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/log"
)

// Huge pages are asked for by MADV_COLLAPSE (Linux 6.1), which copies 2 MiB to a
// huge page and changes nothing else: who accesses them meanwhile waits. What the
// kernel cannot move stays where it is. Regions from FI_WEFT_HUGE_REGION_SIZE on are
// moved when they are registered, memory that is used often (heat.go) in the background.

// hugePage is the size of a huge page in bytes, where there is but one.
const hugePage = 2 << 20

// ontoHugePages asks the kernel to put memory of this process on huge pages, and
// returns for how many bytes it did so. Only whole huge pages within the memory are
// asked for, and only those that are there for the most part.
func ontoHugePages(addr, n uint64) (done uint64) {
	for at := (addr + hugePage - 1) &^ (hugePage - 1); at+hugePage <= addr+n; at += hugePage {
		if collapse(at) == nil {
			done += hugePage
		}
	}
	return done
}

// collapse puts the memory at an address, a multiple of hugePage, on a huge page. Errors:
// EAGAIN and EBUSY while somebody uses one of its pages, ENOMEM, EINVAL for
// memory that cannot be on one, and errSparse. The address is no pointer: it may be of unused memory of Go's.
func collapse(at uint64) error {
	missing, err := absent(at)
	if err != nil {
		return err
	}
	if missing <= hugePage-leastDense {
		return advise(at)
	}
	if !growth.take(at, missing) {
		return errSparse
	}
	err = advise(at)
	if err != nil {
		growth.giveBack(at)
	}
	return err
}

func advise(at uint64) error {
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(at), hugePage, unix.MADV_COLLAPSE); errno != 0 {
		return errno
	}
	return nil
}

// errSparse: most of the memory that a huge page would have is not there.
var errSparse = errors.New("too little of it is in use")

// leastDense is how much of a huge page's memory is there already, in bytes, where the rest, which the kernel fills with
// zeros, does not count as growth: the process grows by a third at most.
const leastDense = hugePage / 4 * 3

// absent is how many bytes of the memory for a huge page at an address are not there. Error: ENOMEM if a part is not
// mapped at all.
func absent(at uint64) (int, error) {
	var pages [hugePage / 4096]byte
	vec := pages[:hugePage/os.Getpagesize()]
	if err := resident(at, vec); err != nil {
		return 0, err
	}
	there := 0
	for _, v := range vec {
		there += int(v & 1)
	}
	return hugePage - there*os.Getpagesize(), nil
}

const (
	// collapsePause is between two attempts at least, and collapseShare is how many times as long as an attempt
	// took the next one waits. Whoever uses the memory waits for it, so that is what moving costs at most.
	// It takes 0.7 ms, and 5 in a virtual machine whose host has to find the memory.
	collapsePause = 200 * time.Microsecond
	collapseShare = 20
	// collapseTries is how often one huge page is attempted: while others copy, some of its
	// pages are pinned most of the time.
	collapseTries = 400
	// collapseVain is how many attempts in a row end in vain before no more are made.
	collapseVain = 2000
	// collapseQueue is how many wait at most.
	collapseQueue = 256
)

// collapser puts memory of this process on huge pages in the background. Memory that
// is in use when it is to be moved is tried again.
type collapser struct {
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

// hugePages is the collapser of this process.
var hugePages = &collapser{collapse: collapse}

// hugePagesAllowed tells whether the administrator lets memory be on huge pages of this size.
var hugePagesAllowed = sync.OnceValue(func() bool {
	const dir = "/sys/kernel/mm/transparent_hugepage/"
	enabled, err := os.ReadFile(dir + "enabled")
	size, err2 := os.ReadFile(dir + "hpage_pmd_size")
	return err == nil && err2 == nil && !strings.Contains(string(enabled), "[never]") && strings.TrimSpace(string(size)) == "2097152"
})

// ask has all huge pages moved that n bytes at an address touch.
func (c *collapser) ask(addr, n uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := addr &^ (hugePage - 1); at < addr+n; at += hugePage {
		if c.vain < collapseVain && len(c.waiting) < collapseQueue && !c.waits(at) {
			c.waiting = append(c.waiting, collapsing{at: at})
		}
	}
	if !c.running && len(c.waiting) != 0 {
		c.running = true
		go c.run()
	}
}

// waits tells whether memory is to be moved already. mu is held.
func (c *collapser) waits(at uint64) bool {
	return slices.ContainsFunc(c.waiting, func(w collapsing) bool { return w.at == at })
}

// run moves what waits, one after the other, until nothing does.
func (c *collapser) run() {
	for {
		c.mu.Lock()
		if len(c.waiting) == 0 || c.vain >= collapseVain {
			c.waiting, c.running = nil, false
			c.mu.Unlock()
			return
		}
		at := c.waiting[0].at
		c.mu.Unlock()
		begin := time.Now()
		c.tried(c.collapse(at))
		time.Sleep(max(collapsePause, collapseShare*time.Since(begin)))
	}
}

// tried takes in the outcome of an attempt at the first that waits. If that is to be tried again, it is
// the last then.
func (c *collapser) tried(err error) {
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
	if c.vain++; c.vain == collapseVain {
		log.Infof(log.MR, "memory is put on huge pages no more: %d attempts in vain, the last: %v", c.vain, err)
	}
	if w.tries < collapseTries && (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EBUSY)) {
		c.waiting = append(c.waiting, w)
		return
	}
	log.Infof(log.MR, "memory at %#x is used often, but stays on small pages: %v", w.at, err)
}
