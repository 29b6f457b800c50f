package dmabuf

import (
	"errors"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory returns the descriptor of a sealed memfd of n bytes.
func memory(t *testing.T, n int64) int {
	t.Helper()
	fd, err := unix.MemfdCreate("weft-dmabuf-test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Ftruncate(fd, n); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestMap maps memory that stands for a dma-buf and checks that accesses are
// bracketed.
func TestMap(t *testing.T) {
	var calls []uint64
	was := sync
	defer func() { sync = was }()
	sync = func(_ int, flags uint64) error { calls = append(calls, flags); return nil }
	fd := memory(t, 8192)
	m, err := Map(fd, true)
	if err != nil {
		t.Fatal(err)
	}
	calls = nil
	if err := m.Access(true, func() { m.Bytes()[4097] = 7; calls = append(calls, 99) }); err != nil {
		t.Fatal(err)
	}
	if len(calls) != 3 || calls[0] != syncWrite || calls[1] != 99 || calls[2] != syncWrite|syncEnd {
		t.Errorf("calls %v", calls)
	}
	b := make([]byte, 1)
	if _, err := unix.Pread(fd, b, 4097); err != nil || b[0] != 7 {
		t.Errorf("the file has %v, %v", b, err)
	}
	if len(m.Bytes()) != 8192 {
		t.Errorf("%d bytes mapped", len(m.Bytes()))
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	sync = func(int, uint64) error { return unix.EIO }
	if _, err := Map(fd, true); !errors.Is(err, unix.EIO) {
		t.Errorf("a driver that refuses: %v", err)
	}
}

// TestRefused gives descriptors that are no dma-bufs.
func TestRefused(t *testing.T) {
	if _, err := Map(memory(t, 4096), false); !errors.Is(err, ErrNotDMABuf) {
		t.Errorf("a memfd: %v", err)
	}
	if _, err := Map(-1, false); !errors.Is(err, unix.EBADF) {
		t.Errorf("descriptor -1: %v", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := Map(int(r.Fd()), false); !errors.Is(err, ErrNotDMABuf) {
		t.Errorf("a pipe: %v", err)
	}
}

// TestUDMABuf does it with a dma-buf of the kernel's.
func TestUDMABuf(t *testing.T) {
	dev, err := os.OpenFile("/dev/udmabuf", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no udmabuf: %v", err)
	}
	defer dev.Close()
	fd := memory(t, 16384)
	create := struct {
		memfd, flags uint32
		offset, size uint64
	}{memfd: uint32(fd), flags: 1, size: 16384}
	// UDMABUF_CREATE
	buf, _, errno := unix.Syscall(unix.SYS_IOCTL, dev.Fd(), 0x40187542, uintptr(unsafe.Pointer(&create)))
	if errno != 0 {
		t.Skipf("udmabuf makes no dma-buf: %v", errno)
	}
	defer unix.Close(int(buf))
	m, err := Map(int(buf), true)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Access(true, func() { m.Bytes()[5000] = 9 }); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	if _, err := unix.Pread(fd, b, 5000); err != nil || b[0] != 9 {
		t.Errorf("the memory behind it has %v, %v", b, err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
