package xdp

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// socket makes the socket of a stripe for a queue. The first socket registers the
// frames, the first of each queue has its rings of free frames; the others share
// them. A stripe sends over one of its sockets.
func (d *Device) socket(stripe, number, queues, receive int) error {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	d.sockets = append(d.sockets, fd)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer)
	if len(d.sockets) == 1 {
		if err := register(fd, d.frames, d.size); err != nil {
			return err
		}
	}
	var off unix.XDPMmapOffsets
	if err := readOption(fd, unix.XDP_MMAP_OFFSETS, &off); err != nil {
		return fmt.Errorf("form of the rings: %w", err)
	}
	if stripe == 0 {
		if err := d.queue(fd, receive, &off); err != nil {
			return err
		}
	}
	p, q := d.ports[stripe], d.queues[number]
	r := receiver{fd: fd, queue: q}
	if r.rx, err = newRing(fd, unix.XDP_RX_RING, &off.Rx, unix.XDP_PGOFF_RX_RING, receive, sizeDesc); err != nil {
		return err
	}
	p.receivers = append(p.receivers, r)
	if number == stripe%queues {
		p.fd, p.queue = fd, q
		if p.tx, err = newRing(fd, unix.XDP_TX_RING, &off.Tx, unix.XDP_PGOFF_TX_RING, sendFrames,
			sizeDesc); err != nil {
			return err
		}
	}
	return d.bind(fd, stripe, number)
}

// queue makes the rings of free frames of a queue.
func (d *Device) queue(fd, receive int, off *unix.XDPMmapOffsets) error {
	q := &queue{fd: fd}
	d.queues = append(d.queues, q)
	var err error
	q.fill, err = newRing(fd, unix.XDP_UMEM_FILL_RING, &off.Fr, unix.XDP_UMEM_PGOFF_FILL_RING, receive, sizeAddr)
	if err != nil {
		return err
	}
	q.completion, err = newRing(fd, unix.XDP_UMEM_COMPLETION_RING, &off.Cr, unix.XDP_UMEM_PGOFF_COMPLETION_RING,
		sendFrames, sizeAddr)
	return err
}

// Sizes of a ring's entries.
const (
	sizeAddr = 8
	sizeDesc = 16
)

// newRing makes a ring of a socket.
func newRing(fd, name int, off *unix.XDPRingOffset, page int64, entries int, entry uintptr) (ring, error) {
	n := uint32(entries)
	if err := option(fd, name, &n); err != nil {
		return ring{}, fmt.Errorf("ring of %d: %w", entries, err)
	}
	return mapRing(fd, off, page, n, entry)
}

// bind ties a socket to a queue of the interface. The kernel uses the driver's way
// without a copy if there is one, and then also for the sockets that share.
func (d *Device) bind(fd, stripe, number int) error {
	a := unix.SockaddrXDP{Ifindex: uint32(d.iface.Index), QueueID: uint32(number)}
	switch {
	case stripe > 0:
		a.Flags, a.SharedUmemFD = unix.XDP_SHARED_UMEM, uint32(d.queues[number].fd)
	case number > 0:
		a.Flags, a.SharedUmemFD = unix.XDP_SHARED_UMEM, uint32(d.sockets[0])
	case d.steering.generic:
		a.Flags = unix.XDP_USE_NEED_WAKEUP | unix.XDP_COPY
	default:
		a.Flags = unix.XDP_USE_NEED_WAKEUP
	}
	err := unix.Bind(fd, &a)
	for n := 0; errors.Is(err, unix.EBUSY) && n < bindAgain; n++ {
		time.Sleep(bindPause)
		err = unix.Bind(fd, &a)
	}
	if err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if len(d.sockets) == 1 {
		var options uint32
		if readOption(fd, unix.XDP_OPTIONS, &options) == nil {
			d.zeroCopy = options&unix.XDP_OPTIONS_ZEROCOPY != 0
		}
	}
	return nil
}
