package pages

import (
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// busy reports whether memory is being moved.
func (c *Mover) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

// TestMover: memory that is in use is tried again, what cannot be moved is not, and after many
// attempts in vain none is made any more.
func TestMover(t *testing.T) {
	var tries [4]atomic.Int32
	var vain atomic.Bool
	c := NewMover(func(at uint64) error {
		n := tries[at/Size].Add(1)
		switch {
		case vain.Load() || at == 0 && n < 10:
			return unix.EAGAIN
		case at == Size:
			return unix.EINVAL
		}
		return nil
	})
	idle := func() {
		t.Helper()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if !c.busy() {
				return
			}
		}
		t.Fatal("it goes on and on")
	}
	c.Ask(0, 3*Size)
	c.Ask(Size/2, Size) // waits already
	idle()
	if a, b, d := tries[0].Load(), tries[1].Load(), tries[2].Load(); a != 10 || b == 0 || b > 2 || d != 1 {
		t.Errorf("%d, %d and %d attempts", a, b, d)
	}
	sparse := NewMover(func(uint64) error { return errSparse })
	for range 4 {
		sparse.Ask(0, moveQueue*Size)
		for sparse.busy() {
			time.Sleep(time.Millisecond)
		}
	}
	if sparse.vain != 0 {
		t.Errorf("%d attempts at sparse memory count as in vain", sparse.vain)
	}
	vain.Store(true)
	for range 2 * moveVain / moveTries {
		c.Ask(3*Size, 1)
		idle()
	}
	if n := tries[3].Load(); n != moveVain {
		t.Errorf("%d attempts in vain", n)
	}
}
