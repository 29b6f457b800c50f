// Package dmabuf maps dma-bufs: memory of a device that the kernel hands around
// as file descriptors (Documentation/driver-api/dma-buf.rst).
//
// The processor must say when it accesses such memory ([Mapping.Access]), so
// that caches that the device does not see are written back. A [Mapping]'s
// methods may be called by any thread.
package dmabuf

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrNotDMABuf: the descriptor is open, but of something else.
var ErrNotDMABuf = errors.New("dmabuf: not a dma-buf")

// Mapping is a dma-buf in the memory of this process.
type Mapping struct {
	fd  int
	mem []byte
}

// Request codes and flags of linux/dma-buf.h.
const (
	ioctlSync = 0x40086200 // DMA_BUF_IOCTL_SYNC: _IOW('b', 0, struct dma_buf_sync)
	syncRead  = 1 << 0
	syncWrite = 2 << 0
	syncEnd   = 1 << 2
)

// Pretend has memory files taken for dma-bufs until undo is called, for the tests of
// what is above: few machines make dma-bufs without a device.
func Pretend() (undo func()) {
	was := sync
	sync = func(int, uint64) error { return nil }
	return func() { sync = was }
}

// PretendFailing has accesses to dma-bufs end with an error until undo is called, as a driver's do, for tests.
func PretendFailing(err error) (undo func()) {
	was := sync
	sync = func(int, uint64) error { return err }
	return func() { sync = was }
}

// sync says that an access by the processor begins or ends. Replaced by tests.
var sync = func(fd int, flags uint64) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), ioctlSync, uintptr(unsafe.Pointer(&flags)))
		switch errno {
		case 0:
			return nil
		case unix.EINTR, unix.EAGAIN:
		case unix.ENOTTY:
			return ErrNotDMABuf
		default:
			return errno
		}
	}
}

// Map maps the whole dma-buf of a descriptor, which stays the caller's.
// Writable says whether it may be written to. Errors: unix.EBADF, ErrNotDMABuf, unix.EACCES for a
// descriptor without the right, and what the exporting driver says.
func Map(fd int, writable bool) (*Mapping, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("dma-buf descriptor %d: %w", fd, err)
	}
	m := &Mapping{fd: own}
	if err = m.open(writable); err != nil {
		unix.Close(own)
		return nil, fmt.Errorf("dma-buf descriptor %d: %w", fd, err)
	}
	return m, nil
}

func (m *Mapping) open(writable bool) error {
	size, err := unix.Seek(m.fd, 0, unix.SEEK_END) // how the kernel reports a dma-buf's size
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotDMABuf, err)
	}
	if size <= 0 {
		return fmt.Errorf("size %d: %w", size, ErrNotDMABuf)
	}
	if err = sync(m.fd, syncRead); err == nil {
		err = sync(m.fd, syncRead|syncEnd)
	}
	if err != nil {
		return err
	}
	prot := unix.PROT_READ
	if writable {
		prot |= unix.PROT_WRITE
	}
	m.mem, err = unix.Mmap(m.fd, 0, int(size), prot, unix.MAP_SHARED)
	return err
}

// Bytes is the memory, valid until Close.
func (m *Mapping) Bytes() []byte { return m.mem }

// FD is the mapping's own descriptor, open until Close.
func (m *Mapping) FD() int { return m.fd }

// Access calls f, which reads or, with write, writes the memory.
func (m *Mapping) Access(write bool, f func()) error {
	flags := uint64(syncRead)
	if write {
		flags = syncWrite
	}
	if err := sync(m.fd, flags); err != nil {
		return fmt.Errorf("begin access to a dma-buf: %w", err)
	}
	f()
	if err := sync(m.fd, flags|syncEnd); err != nil {
		return fmt.Errorf("end access to a dma-buf: %w", err)
	}
	return nil
}

// Close takes the mapping away. It is not accessed any more.
func (m *Mapping) Close() error {
	return errors.Join(unix.Munmap(m.mem), unix.Close(m.fd))
}
