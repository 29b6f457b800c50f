package nic

import (
	"encoding/binary"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Link is what the kernel says of a network interface of this network namespace,
// whatever /sys shows, which may be that of another one.
type Link struct {
	Name  string
	Index int
	// Kind is the software that makes the interface: "bridge", "veth", "vlan", "tun" and
	// so on; empty for hardware and for the loopback interface.
	Kind string
	// Type is its ARPHRD_ number.
	Type uint16
	// Up says that it was switched on, Running that it has a carrier too and may be used.
	Up, Running, Loopback bool
	MTU                   int
	Address               net.HardwareAddr
}

// States of an interface (RFC 2863) as the kernel numbers them.
const (
	operUnknown = 0
	operTesting = 4
	operDormant = 5
)

// attrType masks the flags of an attribute's type (NLA_TYPE_MASK).
const attrType = 1<<14 - 1

// Links lists the interfaces of this network namespace by name.
func Links() (map[string]Link, error) {
	b, err := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC)
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	links := map[string]Link{}
	for _, m := range messages {
		if m.Header.Type != unix.RTM_NEWLINK || len(m.Data) < unix.SizeofIfInfomsg {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(&m)
		if err != nil {
			return nil, fmt.Errorf("attributes of a network interface: %w", err)
		}
		l := linkOf(m.Data, attrs)
		links[l.Name] = l
	}
	return links, nil
}

// linkOf reads a struct ifinfomsg and the attributes behind it (rtnetlink(7)).
func linkOf(b []byte, attrs []syscall.NetlinkRouteAttr) Link {
	flags := native(b[8:12])
	l := Link{
		Type: uint16(native(b[2:4])), Index: int(native(b[4:8])),
		Up: flags&unix.IFF_UP != 0, Loopback: flags&unix.IFF_LOOPBACK != 0,
	}
	state := byte(operUnknown)
	for _, a := range attrs {
		switch a.Attr.Type & attrType {
		case unix.IFLA_IFNAME:
			l.Name = cString(a.Value)
		case unix.IFLA_ADDRESS:
			l.Address = a.Value
		case unix.IFLA_MTU:
			l.MTU = int(native(a.Value))
		case unix.IFLA_LINKINFO:
			l.Kind = kindOf(a.Value)
		case unix.IFLA_OPERSTATE:
			state = a.Value[0]
		}
	}
	// IFF_RUNNING, and the state, follow the carrier a moment later. A link that waits for its key (802.1X) is
	// dormant.
	l.Running = flags&unix.IFF_LOWER_UP != 0 && state != operDormant && state != operTesting
	return l
}

// kindOf finds IFLA_INFO_KIND in the attributes of IFLA_LINKINFO.
func kindOf(b []byte) string {
	for len(b) >= unix.SizeofRtAttr {
		size := int(native(b[:2]))
		if size < unix.SizeofRtAttr || size > len(b) {
			return ""
		}
		if native(b[2:4])&attrType == unix.IFLA_INFO_KIND {
			return cString(b[unix.SizeofRtAttr:size])
		}
		b = b[min((size+3)&^3, len(b)):] // attributes begin at multiples of 4
	}
	return ""
}

// native reads a number of this machine's byte order, 2 or 4 bytes; 0 for others.
func native(b []byte) uint32 {
	switch len(b) {
	case 2:
		return uint32(binary.NativeEndian.Uint16(b))
	case 4:
		return binary.NativeEndian.Uint32(b)
	}
	return 0
}

func cString(b []byte) string { return unix.ByteSliceToString(b) }
