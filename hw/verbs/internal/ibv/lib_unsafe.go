package ibv

// #cgo CFLAGS: -O2 -std=gnu11 -Wall -Wextra -D_GNU_SOURCE
// #cgo noescape weft_ibv_clock
// #cgo nocallback weft_ibv_clock
// #include <stdlib.h>
// #include "lib.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/shlib"
)

// ErrAbsent: libibverbs or one of its functions is not installed.
var ErrAbsent = errors.New("libibverbs is not installed")

// DefaultLibrary is the library's name for the loader.
const DefaultLibrary = "libibverbs.so.1"

var library = shlib.New(ErrAbsent, unsafe.Pointer(&C.weft_ibv_symbols), int(C.weft_ibv_symbol_count))

// Load loads the library called name, unless one was loaded before. Errors: ErrAbsent.
func Load(name string) error {
	return library.Load(name, func() { forkStatus = check("ibv_fork_init", C.weft_ibv_fork_init()) })
}

// forkStatus is set by the first Load that succeeds, before it returns.
var forkStatus error

// ForkStatus is what ibv_fork_init said when the library was loaded: nil, or
// why children of fork may disturb registered memory on kernels before 5.12.
func ForkStatus() error { return forkStatus }

// check turns an errno value into an error.
func check(step string, rc C.int) error {
	if rc == 0 {
		return nil
	}
	if rc < 0 { // some drivers return negative values
		rc = -rc
	}
	return fmt.Errorf("%s: %w", step, unix.Errno(rc))
}

// StatusText describes a completion's status.
func StatusText(status uint32) string { return C.GoString(C.weft_ibv_status_str(C.uint32_t(status))) }

// Context is an open device.
type Context struct{ p *C.struct_ibv_context }

// DeviceAttr are a device's limits, as far as they matter here.
type DeviceAttr struct {
	MaxQP, MaxQPWR, MaxSGE, MaxCQ, MaxCQE, MaxMR int
	MaxSRQ, MaxSRQWR                             int
	MaxReadSGE                                   int // of a read, 0: as MaxSGE
	MaxReadAtomic, MaxInitReadAtomic             int
	MaxMRSize                                    uint64
	Clock                                        Clock // zero: completions carry no time stamps
	Firmware                                     string
	Software                                     bool // no hardware: soft-RoCE
}

// vendorRXE is what soft-RoCE says. Soft-iWARP has no datagrams, which connections are made by.
const vendorRXE = 0xffffff

// OpenDevice opens a device by its name, such as mlx5_0. Errors: ENODEV; EACCES or EPERM
// without permission for its character device.
func OpenDevice(name string) (*Context, error) {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	x := new(Context)
	if err := check("open device "+name, C.weft_ibv_open(c, &x.p)); err != nil {
		return nil, err
	}
	return x, nil
}

// Close closes the device.
func (x *Context) Close() error { return check("close device", C.weft_ibv_close(x.p)) }

// Query reads the device's limits.
func (x *Context) Query() (DeviceAttr, error) {
	var a C.struct_ibv_device_attr
	if err := check("query device", C.weft_ibv_query_device(x.p, &a)); err != nil {
		return DeviceAttr{}, err
	}
	d := DeviceAttr{
		MaxQP: int(a.max_qp), MaxQPWR: int(a.max_qp_wr), MaxSGE: int(a.max_sge), MaxReadSGE: int(a.max_sge_rd),
		MaxCQ: int(a.max_cq), MaxCQE: int(a.max_cqe), MaxMR: int(a.max_mr),
		MaxSRQ: int(a.max_srq), MaxSRQWR: int(a.max_srq_wr),
		MaxReadAtomic: int(a.max_qp_rd_atom), MaxInitReadAtomic: int(a.max_qp_init_rd_atom),
		MaxMRSize: uint64(a.max_mr_size),
		Firmware:  C.GoString(&a.fw_ver[0]),
		Software:  a.vendor_id == vendorRXE,
	}
	d.Clock = x.Clock()
	return d, nil
}

// Clock says how a device's clock counts: its ticks are the stamps of completions. The zero value is none.
type Clock struct {
	Mask uint64 // the bits that count; then it begins at 0 again
	KHz  uint64 // ticks in a millisecond
}

// Clock asks the device for its clock. One that cannot be read is none.
func (x *Context) Clock() Clock {
	var mask, khz C.uint64_t
	C.weft_ibv_query_clock(x.p, &mask, &khz)
	return Clock{uint64(mask), uint64(khz)}
}

// Now reads the device's clock. False: it could not be read.
func (x *Context) Now() (ticks uint64, ok bool) {
	var now C.uint64_t
	rc := C.weft_ibv_clock(x.p, &now)
	return uint64(now), rc == 0
}

// Port describes a port.
type Port struct {
	Active      bool
	Ethernet    bool // RoCE; else InfiniBand
	ActiveMTU   int  // 1 to 5: 256 to 4096 bytes
	LID         uint16
	GIDs, PKeys int // entries of the tables
	MaxMessage  uint64
	GRHRequired bool
	Bandwidth   float64 // bytes per second, from lanes and speed
}

// QueryPort reads the state of a port, counted from 1.
func (x *Context) QueryPort(port int) (Port, error) {
	var a C.struct_weft_port
	if err := check(fmt.Sprintf("query port %d", port), C.weft_ibv_query_port(x.p, C.uint8_t(port), &a)); err != nil {
		return Port{}, err
	}
	return Port{
		Active: a.state == C.IBV_PORT_ACTIVE, Ethernet: a.link_layer == C.IBV_LINK_LAYER_ETHERNET,
		ActiveMTU: int(a.active_mtu), LID: uint16(a.lid), GIDs: int(a.gid_tbl_len), PKeys: int(a.pkey_tbl_len),
		MaxMessage: uint64(a.max_msg_sz), GRHRequired: a.flags&C.IBV_QPF_GRH_REQUIRED != 0,
		Bandwidth: lanes(uint32(a.active_width)) * laneRate(uint32(a.active_speed)),
	}, nil
}

// GID reads an entry of a port's GID table. Errors: ENODATA and the like for an empty one.
func (x *Context) GID(port, index int) (gid [16]byte, err error) {
	rc := C.weft_ibv_query_gid(x.p, C.uint8_t(port), C.int(index), (*C.uint8_t)(unsafe.Pointer(&gid[0])))
	return gid, check(fmt.Sprintf("query gid %d of port %d", index, port), rc)
}

// AsyncFD becomes readable when [Context.AsyncEvent] has something.
func (x *Context) AsyncFD() int { return int(C.weft_ibv_async_fd(x.p)) }

// Event is an asynchronous event of a device.
type Event struct {
	Type uint32
	Port int    // 0 if it is of no port
	QP   uint32 // its number, 0 if it is of no queue pair
}

// Types of events.
const (
	EventCQError     = C.IBV_EVENT_CQ_ERR
	EventQPFatal     = C.IBV_EVENT_QP_FATAL
	EventDeviceFatal = C.IBV_EVENT_DEVICE_FATAL
	EventPortActive  = C.IBV_EVENT_PORT_ACTIVE
	EventPortError   = C.IBV_EVENT_PORT_ERR
	EventGIDChange   = C.IBV_EVENT_GID_CHANGE
	EventLIDChange   = C.IBV_EVENT_LID_CHANGE
	EventSRQError    = C.IBV_EVENT_SRQ_ERR
)

// String describes the event.
func (e Event) String() string { return C.GoString(C.weft_ibv_event_str(C.uint32_t(e.Type))) }

// AsyncEvent takes one event without waiting. Errors: EAGAIN if there is none.
func (x *Context) AsyncEvent() (Event, error) {
	var kind, port, qp C.uint32_t
	rc := C.weft_ibv_async_event(x.p, &kind, &port, &qp)
	return Event{Type: uint32(kind), Port: int(port), QP: uint32(qp)}, check("asynchronous event", rc)
}

// lanes is the number of lanes that a port's width code names.
func lanes(width uint32) float64 {
	return map[uint32]float64{1: 1, 2: 4, 4: 8, 8: 12, 16: 2}[width]
}

// laneRate is a lane's data rate in bytes per second (InfiniBand
// Architecture Specification, PortInfo.LinkSpeed), with its line code taken off.
func laneRate(speed uint32) float64 {
	gigabits := map[uint32]float64{1: 2, 2: 4, 4: 8, 8: 10, 16: 13.6, 32: 25, 64: 50, 128: 100}[speed]
	return gigabits * 1e9 / 8
}
