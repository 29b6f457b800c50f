package ptp

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Device is an open PTP clock. It may be used by several threads.
type Device struct {
	path string
	fd   int
}

// Open opens a PTP clock such as /dev/ptp0.
func Open(path string) (*Device, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open PTP clock %s: %w", path, err)
	}
	if _, err := unix.IoctlPtpClockGetcaps(fd); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("%s is not a PTP clock: %w", path, err)
	}
	return &Device{path, fd}, nil
}

// Path returns the device's file.
func (d *Device) Path() string { return d.path }

// Close closes the device.
func (d *Device) Close() error { return unix.Close(d.fd) }

// Now returns the clock's time in nanoseconds since its epoch.
func (d *Device) Now() (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.FdToClockID(d.fd), &ts); err != nil {
		return 0, fmt.Errorf("read %s: %w", d.path, err)
	}
	return ts.Nano(), nil
}

// readings is how many comparisons an offset is chosen from.
const readings = 10

// Offset compares the clock with the system clock, by the most precise way that
// kernel and device offer: both read at one instant by the hardware, the device
// read between two readings of the system clock, or the two read alternately.
// tai is as in the kernel's: see [System].
func (d *Device) Offset(tai int32) (Offset, error) {
	if p, err := unix.IoctlPtpSysOffsetPrecise(d.fd); err == nil {
		at := nanoseconds(p.Realtime)
		return best([]Reading{{at, nanoseconds(p.Device), at}}, tai)
	}
	if e, err := unix.IoctlPtpSysOffsetExtended(d.fd, readings); err == nil {
		return best(extended(e), tai)
	}
	b, err := sysOffset(d.fd, readings)
	if err != nil {
		return Offset{}, fmt.Errorf("compare %s with the system clock: %w", d.path, err)
	}
	return best(basic(b), tai)
}

func nanoseconds(t unix.PtpClockTime) int64 { return t.Sec*int64(time.Second) + int64(t.Nsec) }

// extended takes the readings out of PTP_SYS_OFFSET_EXTENDED's answer.
func extended(e *unix.PtpSysOffsetExtended) []Reading {
	var r []Reading
	for _, ts := range e.Ts[:min(int(e.Samples), len(e.Ts))] {
		r = append(r, Reading{nanoseconds(ts[0]), nanoseconds(ts[1]), nanoseconds(ts[2])})
	}
	return r
}

// basic takes the readings out of PTP_SYS_OFFSET's answer: the system clock and
// the device in turn, beginning and ending with the system clock.
func basic(b *sysOffsetAnswer) []Reading {
	var r []Reading
	for i := range min(int(b.Samples), (len(b.Ts)-1)/2) {
		r = append(r, Reading{nanoseconds(b.Ts[2*i]), nanoseconds(b.Ts[2*i+1]), nanoseconds(b.Ts[2*i+2])})
	}
	return r
}

// System is what the kernel says about the system clock.
type System struct {
	// Synchronised says that something disciplines the clock (phc2sys, an NTP
	// daemon): the kernel's STA_UNSYNC is clear.
	Synchronised bool

	// TAI is by how many seconds TAI is ahead of UTC, 0 if the kernel does not
	// know it.
	TAI int32
}

// ReadSystem asks the kernel (adjtimex(2)).
func ReadSystem() (System, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return System{}, fmt.Errorf("adjtimex: %w", err)
	}
	return System{Synchronised: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, TAI: t.Tai}, nil
}

// Interface is what an interface can do about time (ethtool -T).
type Interface struct {
	// Transmit and Receive say that it stamps all packets sent and received
	// in hardware.
	Transmit, Receive bool

	// Clock is the number of its PTP clock, -1 without.
	Clock int
}

// Device returns the file of the interface's PTP clock, empty without one.
func (i Interface) Device() string {
	if i.Clock < 0 {
		return ""
	}
	return fmt.Sprintf("/dev/ptp%d", i.Clock)
}

// Receive filters and transmit types, as bits of ETHTOOL_GET_TS_INFO's answer
// (linux/net_tstamp.h).
const (
	filterAll = 1 << 1
	transmit  = 1 << 1
)

// FindInterface asks an interface for its time stamps. One that knows no
// answer, as a bridge may, has none.
func FindInterface(name string) (Interface, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return Interface{}, fmt.Errorf("socket for ethtool: %w", err)
	}
	defer unix.Close(fd)
	info, err := unix.IoctlGetEthtoolTsInfo(fd, name)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return Interface{Clock: -1}, nil
	}
	if err != nil {
		return Interface{}, fmt.Errorf("time stamps of interface %q: %w", name, err)
	}
	return stamps(info), nil
}

func stamps(info *unix.EthtoolTsInfo) Interface {
	has := func(bits uint32) bool { return info.So_timestamping&bits == bits }
	return Interface{
		Transmit: has(unix.SOF_TIMESTAMPING_TX_HARDWARE|unix.SOF_TIMESTAMPING_RAW_HARDWARE) &&
			info.Tx_types&transmit != 0,
		Receive: has(unix.SOF_TIMESTAMPING_RX_HARDWARE|unix.SOF_TIMESTAMPING_RAW_HARDWARE) &&
			info.Rx_filters&filterAll != 0,
		Clock: int(max(info.Phc_index, -1)),
	}
}
