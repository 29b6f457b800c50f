package ptp

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const second = int64(time.Second)

func clock(ns int64) unix.PtpClockTime {
	return unix.PtpClockTime{Sec: ns / second, Nsec: uint32(ns % second)}
}

// TestOffset chooses the quickest reading and takes leap seconds out of a clock
// that keeps TAI, but not out of one that keeps UTC.
func TestOffset(t *testing.T) {
	const at = 1_700_000_000_000_000_000
	for _, c := range []struct {
		name     string
		readings []Reading
		tai      int32
		want     Offset
		fails    bool
	}{
		{"quickest", []Reading{{at, at + 5000, at + 4000}, {at, at + 600, at + 1000}, {at, at + 9000, at + 3000}}, 0,
			Offset{100, 500}, false},
		{"TAI", []Reading{{at, at + 37*second + 300, at + 200}}, 37, Offset{200, 100}, false},
		{"UTC", []Reading{{at, at + 300, at + 200}}, 37, Offset{200, 100}, false},
		{"stepped", []Reading{{at + 1000, at, at}, {at, at, at + 200}}, 0, Offset{-100, 100}, false},
		{"nothing", []Reading{{0, 0, 0}}, 37, Offset{}, true},
		{"empty", nil, 37, Offset{}, true},
	} {
		got, err := best(c.readings, c.tai)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

// TestAnswers reads the kernel's structures, whatever number of samples they
// claim.
func TestAnswers(t *testing.T) {
	const at = 1_700_000_000_000_000_000
	e := &unix.PtpSysOffsetExtended{Samples: 2}
	e.Ts[0] = [3]unix.PtpClockTime{clock(at), clock(at + 10), clock(at + 20)}
	e.Ts[1] = [3]unix.PtpClockTime{clock(at + 30), clock(at + 40), clock(at + 50)}
	if got := extended(e); len(got) != 2 || got[1] != (Reading{at + 30, at + 40, at + 50}) {
		t.Errorf("extended: %v", got)
	}
	e.Samples = 1 << 30
	if got := extended(e); len(got) != len(e.Ts) {
		t.Errorf("extended: %d readings", len(got))
	}
	b := &sysOffsetAnswer{Samples: 2}
	for i := range 5 {
		b.Ts[i] = clock(at + int64(10*i))
	}
	if got := basic(b); len(got) != 2 || got[1] != (Reading{at + 20, at + 30, at + 40}) {
		t.Errorf("basic: %v", got)
	}
	b.Samples = 1 << 30
	if got := basic(b); len(got) != 25 {
		t.Errorf("basic: %d readings", len(got))
	}
}

// TestStamps reads what interfaces answer: one with all of it, as mlx5's driver
// says, one that stamps PTP packets only, and one with software alone.
func TestStamps(t *testing.T) {
	const hardware = unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE |
		unix.SOF_TIMESTAMPING_RAW_HARDWARE
	for _, c := range []struct {
		name   string
		info   unix.EthtoolTsInfo
		want   Interface
		device string
	}{
		{"all packets", unix.EthtoolTsInfo{So_timestamping: hardware, Phc_index: 2, Tx_types: 0x3, Rx_filters: 0x3},
			Interface{true, true, 2}, "/dev/ptp2"},
		{"PTP only", unix.EthtoolTsInfo{So_timestamping: hardware, Phc_index: 0, Tx_types: 0x3, Rx_filters: 0x1001},
			Interface{true, false, 0}, "/dev/ptp0"},
		{"software", unix.EthtoolTsInfo{So_timestamping: 0x1a, Phc_index: -1}, Interface{false, false, -1}, ""},
		{"nonsense", unix.EthtoolTsInfo{Phc_index: -77}, Interface{false, false, -1}, ""},
	} {
		got := stamps(&c.info)
		if got != c.want || got.Device() != c.device {
			t.Errorf("%s: %+v, device %q", c.name, got, got.Device())
		}
	}
}

// TestThisHost makes the real calls: on the loopback interface, on no
// interface, on no device, on the kernel's clock.
func TestThisHost(t *testing.T) {
	if i, err := FindInterface("lo"); err != nil || i.Clock != -1 || i.Transmit || i.Receive {
		t.Errorf("loopback: %+v, %v", i, err)
	}
	if _, err := FindInterface("nosuchif"); !errors.Is(err, unix.ENODEV) {
		t.Errorf("no interface: %v", err)
	}
	if _, err := Open("/dev/null"); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("/dev/null as a clock: %v", err)
	}
	if s, err := ReadSystem(); err != nil || s.TAI < 0 || s.TAI > 100 {
		t.Errorf("kernel: %+v, %v", s, err)
	}
	if _, err := AskDaemon([]string{"/nonexistent/ptp4l"}); !errors.Is(err, unix.ENOENT) {
		t.Errorf("no daemon: %v", err)
	}
}

// TestDevice compares the host's first PTP clock, where there is one.
func TestDevice(t *testing.T) {
	if _, err := os.Stat("/dev/ptp0"); err != nil {
		t.Skip("this host has no /dev/ptp0")
	}
	d, err := Open("/dev/ptp0")
	if errors.Is(err, os.ErrPermission) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	one, err := d.Now()
	if err != nil {
		t.Fatal(err)
	}
	if two, err := d.Now(); err != nil || two < one {
		t.Errorf("%d, then %d, %v", one, two, err)
	}
	if o, err := d.Offset(0); err != nil || o.Error < 0 {
		t.Errorf("%+v, %v", o, err)
	}
}

// answer makes a response to a request.
func answer(id uint16, size int, sequence uint16, data []byte) []byte {
	m := request(nil, id, size, sequence)
	m[headerSize+12] = actionResponse
	copy(m[messageSize:], data)
	return m
}

// TestMessage reads a response as ptp4l makes them, and refuses what is none.
func TestMessage(t *testing.T) {
	port := make([]byte, portSize)
	port[7], port[10] = 5, byte(Slave)
	status := make([]byte, timeSize)
	binary.BigEndian.PutUint64(status, ^uint64(1233)) // -1234
	binary.BigEndian.PutUint32(status[38:], 1)
	binary.BigEndian.PutUint64(status[42:], 77)
	p, err := response(answer(portDataSet, portSize, 7, port), portDataSet, portSize, 7)
	if err != nil {
		t.Fatal(err)
	}
	s, err := response(answer(timeStatusNP, timeSize, 8, status), timeStatusNP, timeSize, 8)
	if err != nil {
		t.Fatal(err)
	}
	if d := decode(p, s); d != (Daemon{Slave, -1234, 77}) {
		t.Errorf("%+v", d)
	}
	p[10] = byte(Master)
	if d := decode(p, s); d.Grandmaster != 5 {
		t.Errorf("a master's grandmaster is %d", d.Grandmaster)
	}
	for i, change := range []func(m []byte) []byte{
		func(m []byte) []byte { return m[:messageSize-1] },
		func(m []byte) []byte { return m[:len(m)-1] },
		func(m []byte) []byte { m[0] = 0; return m },
		func(m []byte) []byte { m[1] = 1; return m },
		func(m []byte) []byte { m[headerSize+12] = 0; return m },
		func(m []byte) []byte { m[31]++; return m },
		func(m []byte) []byte { m[headerSize+15] = 2; return m },
		func(m []byte) []byte { m[headerSize+19]++; return m },
		func(m []byte) []byte { m[headerSize+17] = 0; return m },
		func(m []byte) []byte { m[headerSize+16] = 0xff; return m },
	} {
		if _, err := response(change(answer(portDataSet, portSize, 7, port)), portDataSet, portSize, 7); !errors.Is(err,
			errMessage) {
			t.Errorf("change %d: %v", i, err)
		}
	}
}

// FuzzResponse: whatever a daemon answers, nothing panics.
func FuzzResponse(f *testing.F) {
	f.Add(answer(portDataSet, portSize, 1, nil))
	f.Add(answer(timeStatusNP, timeSize, 1, nil))
	f.Fuzz(func(t *testing.T, m []byte) {
		port, err := response(m, portDataSet, portSize, 1)
		if err == nil && len(port) != portSize {
			t.Fatalf("%d bytes", len(port))
		}
		status, err := response(m, timeStatusNP, timeSize, 1)
		if err == nil && len(status) != timeSize {
			t.Fatalf("%d bytes", len(status))
		}
	})
}

// TestCheck goes through what a poll can find.
func TestCheck(t *testing.T) {
	synced := System{Synchronised: true}
	for _, c := range []struct {
		status Status
		want   time.Duration
		reason string
	}{
		{Status{}, 0, "neither"},
		{Status{HasDaemon: true, Daemon: Daemon{Master, 0, 5}}, 0, ""},
		{Status{HasDaemon: true, Daemon: Daemon{Slave, 900, 77}}, 900, ""},
		{Status{HasDaemon: true, Daemon: Daemon{Slave, -1001, 77}}, 0, "offset of -1.001µs"},
		{Status{HasDaemon: true, Daemon: Daemon{Slave, 900, 77}, Device: "/dev/ptp0", HasOffset: true,
			Offset: Offset{-50, 10}}, 960, ""},
		{Status{HasDaemon: true, Daemon: Daemon{Master, 0, 5}, Device: "/dev/ptp0", HasOffset: true,
			Offset: Offset{2000, 10}}, 0, "off the system clock"},
		{Status{HasDaemon: true, Daemon: Daemon{Slave, 0, 0}}, 0, "no grandmaster"},
		{Status{HasDaemon: true, Daemon: Daemon{State: 4}}, 0, "listening"},
		{Status{HasDaemon: true, Daemon: Daemon{State: 200}}, 0, "state 200"},
		{Status{Device: "/dev/ptp0", System: synced}, 0, "cannot be compared"},
		{Status{Device: "/dev/ptp0", HasOffset: true}, 0, "nothing disciplines"},
		{Status{Device: "/dev/ptp0", HasOffset: true, Offset: Offset{-500, 100}, System: synced}, 600, ""},
		{Status{Device: "/dev/ptp0", HasOffset: true, Offset: Offset{5000, 100}, System: synced}, 0, "5µs off"},
	} {
		got, err := c.status.Check(1000)
		if got != c.want || (err == nil) != (c.reason == "") {
			t.Errorf("%+v: %v, %v", c.status, got, err)
		}
		if err != nil && (!errors.Is(err, ErrNotSynchronised) || !strings.Contains(err.Error(), c.reason)) {
			t.Errorf("%+v: %v", c.status, err)
		}
	}
}
