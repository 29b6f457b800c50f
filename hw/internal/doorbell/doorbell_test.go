package doorbell_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw/internal/doorbell"
)

// rings reports whether a bell's descriptor is readable now.
func rings(t *testing.T, b *doorbell.Bell) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(b.FD()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

func newBell(t *testing.T) *doorbell.Bell {
	t.Helper()
	b, err := doorbell.New()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRing: any number of rings is one until they are drained; before Enable it does nothing.
func TestRing(t *testing.T) {
	b := newBell(t)
	b.Ring()
	if b.FD() != -1 {
		t.Fatalf("descriptor %d before Enable", b.FD())
	}
	for range 2 {
		if err := b.Enable(); err != nil {
			t.Fatal(err)
		}
	}
	if rings(t, b) {
		t.Error("rings for what came before Enable")
	}
	for range 2 {
		b.Ring()
		b.Ring()
		if !rings(t, b) {
			t.Error("does not ring")
		}
		b.Drain()
		if rings(t, b) {
			t.Error("rings after Drain")
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if b.FD() != -1 {
		t.Errorf("descriptor %d after Close", b.FD())
	}
}

// TestSource: a source makes the descriptor readable as long as it is ready, and stays open.
func TestSource(t *testing.T) {
	b := newBell(t)
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Enable(doorbell.Source{FD: fd, Events: unix.EPOLLIN}); err != nil {
		t.Fatal(err)
	}
	if rings(t, b) {
		t.Error("rings for an empty source")
	}
	if _, err := unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	b.Drain()
	if !rings(t, b) {
		t.Error("does not ring for a source")
	}
	doorbell.Drain(fd)
	if rings(t, b) {
		t.Error("rings for a source that is empty again")
	}
	if err := errors.Join(b.Close(), unix.Close(fd)); err != nil {
		t.Fatal(err)
	}
}

// TestBadSource: a descriptor that is closed is named, and the bell stays as it was.
func TestBadSource(t *testing.T) {
	b := newBell(t)
	if err := b.Enable(doorbell.Source{FD: 1 << 20, Events: unix.EPOLLIN}); !errors.Is(err, unix.EBADF) {
		t.Errorf("a source that is closed: %v, not EBADF", err)
	}
	if b.FD() != -1 {
		t.Errorf("descriptor %d after an error", b.FD())
	}
	if err := errors.Join(b.Enable(), b.Close()); err != nil {
		t.Fatal(err)
	}
}
