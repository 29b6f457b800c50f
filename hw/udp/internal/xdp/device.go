package xdp

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/sock"
)

// Options of a device.
type Options struct {
	Name    sock.Addr // address and port that datagrams come to
	Stripes int       // 1 to 64
	Where   Where     // the program runs
	Class   uint8     // the code point of differentiated services that datagrams carry, 0 to 63
}

// Where says where the program runs that takes our frames.
type Where int

// Values of Where.
const (
	// Best is in the interface's driver where it runs programs, and else behind
	// it. It is behind that of a pair of virtual interfaces (veth): in the driver, a program
	// makes the kernel at the other end cut up all that is sent, before it is copied.
	Best         Where = iota
	InDriver           // or not at all
	BehindDriver       // for all drivers
)

// Device is the sockets of one address and port on one network interface.
type Device struct {
	iface    *net.Interface
	local    local
	steering *steering
	zeroCopy bool
	frames   []byte // UMEM
	size     int    // of one frame, a power of two
	queues   []*queue
	ports    []*Port
	sockets  []int
	routes   routes
}

// Sizes.
const (
	maxQueues   = 32
	maxSockets  = 512
	smallFrame  = 2048
	largeFrame  = 4096
	sendFrames  = 1024     // of each queue
	sendBuffer  = 8 << 20  // bytes of frames that wait in the kernel
	allFrames   = 4 * 1024 // to receive into, of all queues
	fewFrames   = 512      // of one queue at least
	manyFrames  = 2048     // of one queue at most
	bindAgain   = 600      // tries, while the kernel takes a queue from its last owner
	bindPause   = 5 * time.Millisecond
	overheadXDP = unix.XDP_PACKET_HEADROOM
)

// ErrUnsupported is why there can be no Device, beside errors of the kernel.
var ErrUnsupported = errors.New("AF_XDP is not possible")

// Open makes a Device. Errors: ErrUnsupported and those of the kernel, with the step
// that failed: EPERM without CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF, EBUSY if the interface
// or one of its queues has another user, EAFNOSUPPORT if the kernel is without
// AF_XDP.
func Open(o Options) (*Device, error) {
	name := o.Name.AddrPort()
	iface, err := interfaceOf(name.Addr())
	if err != nil {
		return nil, err
	}
	d := &Device{iface: iface, local: newLocal(name, iface.Index), size: smallFrame}
	if iface.MTU+sizeEthernet > smallFrame-overheadXDP {
		d.size = largeFrame
	}
	d.routes = routes{iface: iface.Index, mac: [6]byte(iface.HardwareAddr), from: name, class: o.Class,
		payload: d.MaxPacket()}
	if err := d.routes.open(); err != nil {
		return nil, err
	}
	queues := min(channels(iface.Name), maxQueues, max(1, maxSockets/o.Stripes))
	f := filter{mac: d.routes.mac, local: &d.local, frame: d.size - overheadXDP, stripes: o.Stripes, queues: queues}
	where := o.Where
	if where == Best && driver(iface.Name) == "veth" {
		where = BehindDriver
	}
	if d.steering, err = f.attach(iface.Index, where); err == nil {
		err = d.build(o.Stripes, queues)
	}
	if err != nil {
		d.Close()
		return nil, fmt.Errorf("interface %s: %w", iface.Name, err)
	}
	return d, nil
}

// interfaceOf returns the Ethernet that has an address.
func interfaceOf(ip netip.Addr) (*net.Interface, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("interfaces: %w", err)
	}
	for n := range list {
		i := &list[n]
		if zone := ip.Zone(); zone != "" && zone != fmt.Sprint(i.Index) {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("addresses of %s: %w", i.Name, err)
		}
		for _, a := range addrs {
			net, ok := a.(*net.IPNet)
			if !ok || !net.IP.Equal(ip.WithZone("").AsSlice()) {
				continue
			}
			if len(i.HardwareAddr) != 6 || bytes.Equal(i.HardwareAddr, make([]byte, 6)) {
				return nil, fmt.Errorf("%s is no Ethernet: %w", i.Name, ErrUnsupported)
			}
			return i, nil
		}
	}
	return nil, fmt.Errorf("no interface has %s: %w", ip, ErrUnsupported)
}

// MaxPacket is the largest datagram in bytes that a frame has room for.
func (d *Device) MaxPacket() int {
	headers := sizeEthernet + sizeIPv6 + sizeUDP
	if len(d.local.ip) == 4 {
		headers = sizeEthernet + sizeIPv4 + sizeUDP
	}
	return d.size - overheadXDP - headers
}

// String says how the device works, for people.
func (d *Device) String() string {
	where, how := "in the driver", "copied"
	if d.steering.generic {
		where = "behind the driver"
	}
	if d.zeroCopy {
		how = "not copied"
	}
	return fmt.Sprintf("%s, %s, frames %s, %d queues, datagrams up to %d bytes", d.iface.Name, where, how,
		len(d.queues), d.MaxPacket())
}

// Ports are those of the stripes.
func (d *Device) Ports() []*Port { return d.ports }

// Tick takes in whether routes and neighbours have changed, and asks again for
// what is not known. now is the time since any moment.
func (d *Device) Tick(now time.Duration) { d.routes.tick(now) }

// chunk is the frame that begins at an address.
func (d *Device) chunk(at uint64) []byte { return d.frames[at : at+uint64(d.size)] }

// frame is what the kernel received at an address, and the stamp in front of it; nil if
// that is not inside of one frame.
func (d *Device) frame(at uint64, n uint32) (b, stamp []byte) {
	offset := at & uint64(d.size-1)
	if at >= uint64(len(d.frames)) || offset < stampSize || offset+uint64(n) > uint64(d.size) {
		return nil, nil
	}
	return d.frames[at : at+uint64(n) : at+uint64(n)], d.frames[at-stampSize : at]
}

// build makes the sockets, and enters them in the program's map.
func (d *Device) build(stripes, queues int) error {
	receive := min(max(allFrames/queues, fewFrames), manyFrames)
	for receive&(receive-1) != 0 {
		receive &= receive - 1
	}
	frames := queues * (receive + sendFrames)
	b, err := mem.Map(frames*d.size, 0)
	if err != nil {
		return fmt.Errorf("%d frames: %w", frames, err)
	}
	d.frames = b
	for n := range stripes {
		d.ports = append(d.ports, &Port{d: d, ways: map[sock.Addr]*way{}})
		for q := range queues {
			if err := d.socket(n, q, queues, receive); err != nil {
				return fmt.Errorf("socket of stripe %d, queue %d: %w", n, q, err)
			}
		}
	}
	for q := range d.queues {
		d.stock(q, receive)
	}
	for n, fd := range d.sockets {
		if err := d.steering.sockets.Put(uint32(n), uint32(fd)); err != nil {
			return fmt.Errorf("socket map entry %d: %w", n, err)
		}
	}
	return nil
}

// stock gives queue q its frames.
func (d *Device) stock(q, receive int) {
	at := uint64(q * (receive + sendFrames) * d.size)
	var list []uint64
	for range receive {
		list = append(list, at)
		at += uint64(d.size)
	}
	d.queues[q].recycle(list)
	for range sendFrames {
		d.queues[q].free = append(d.queues[q].free, at)
		at += uint64(d.size)
	}
}

// Close takes the program off the interface, and the sockets with it.
func (d *Device) Close() {
	if d.steering != nil {
		d.steering.close()
	}
	for _, p := range d.ports {
		for i := range p.receivers {
			p.receivers[i].rx.unmap()
		}
		p.tx.unmap()
	}
	for _, q := range d.queues {
		q.fill.unmap()
		q.completion.unmap()
	}
	for _, fd := range d.sockets {
		_ = unix.Close(fd)
	}
	if d.frames != nil {
		_ = mem.Unmap(d.frames)
	}
	d.routes.close()
}
