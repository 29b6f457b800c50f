package sock

import (
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Stamps of single datagrams: when they left this host and when they came. The
// kernel's own are of the moment at which a datagram is given to the driver; an
// interface that has a clock gives others, if that is switched on
// (hwstamp_ctl, ptp4l). Of received datagrams the kernel's stamp comes anyway.
//
// A stamp of a datagram sent comes back in the error queue, by a number that
// counts the datagrams that asked for one.

// Left says when a datagram left.
type Left struct {
	ID       uint32
	Software time.Duration // by the wall clock, as time since 1970; 0: not known
	Hardware time.Duration // by the interface's clock, since its epoch; 0: not known
}

// stampFlags have stamps reported; each datagram sent asks for its own.
const stampFlags = unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE |
	unix.SOF_TIMESTAMPING_RX_HARDWARE |
	unix.SOF_TIMESTAMPING_OPT_ID | unix.SOF_TIMESTAMPING_OPT_TSONLY | unix.SOF_TIMESTAMPING_OPT_CMSG

const askStamp = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_TX_HARDWARE

// EnableStamps has the socket report stamps, which cost a control message more
// with everything that is received.
func (s *Socket) EnableStamps() error {
	if err := unix.SetsockoptInt(s.FD, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, stampFlags); err != nil {
		return fmt.Errorf("time stamps: %w", err)
	}
	s.stamps = true
	if s.inbox != nil { // what it takes has none
		s.inbox.unused.Store(true)
		s.inbox.switchOff(true)
	}
	return nil
}

// FlushStamped is Flush of the one datagram that was added last, the others
// having been flushed, and asks for its stamp. It returns the stamp's number,
// false if none will come: what a bypass may take has none.
func (o *Out) FlushStamped(s *Socket) (id uint32, ok bool) {
	o.stamp = s.stamps && o.n == 1 && o.impair == nil && s.bypass == nil
	asked := o.stamp
	o.Flush(s)
	o.stamp = false
	if asked && len(o.Failed) > 0 {
		s.stamps = false // whether the kernel has counted it is not known
	}
	if !asked || !s.stamps {
		return 0, false
	}
	s.asked++
	return s.asked - 1, true
}

// putStamp asks for the stamp of a datagram.
func (o *Out) putStamp(c []byte) int {
	if !o.stamp {
		return 0
	}
	binary.NativeEndian.PutUint32(cmsg(c, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, 4), askStamp)
	return unix.CmsgSpace(4)
}

// readStamps reads the kernel's struct scm_timestamping.
func readStamps(data []byte) (software, hardware time.Duration) {
	at := func(i int) time.Duration {
		b := data[16*i:]
		return time.Duration(binary.NativeEndian.Uint64(b))*time.Second + time.Duration(
			binary.NativeEndian.Uint64(b[8:]))
	}
	if len(data) < 48 {
		return 0, 0
	}
	return at(0), at(2)
}
