package cxi

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// MatchAttr is what an interface with this configuration matches, before it is open.
func (c MatchConfig) MatchAttr() hw.MatchAttr {
	c = c.withDefaults()
	return hw.MatchAttr{TagMask: proto.TagMask, MaxMessage: maxMatched, MaxInject: nic.MaxInline, MaxWrite: placeBytes,
		Receives: c.Receives, Sends: c.Sends, MaxMinFree: maxMinFree, ChoosesKeys: true}
}

// MatchNameBytes is the length of the name of a matched endpoint.
const MatchNameBytes = proto.NameBytes

// SourceName is the name that an endpoint on the device has before it has a PID: any.
func (d *Device) SourceName() []byte {
	return proto.Name{NID: d.NID, PID: libcxi.AnyPID}.AppendTo(nil)
}

// ParseSourceName reads what SourceName gives, or a name of which an endpoint on the device is to have the PID, which
// it returns, nil: any. Errors: hw.ErrInvalid (it names nothing on the device).
func (d *Device) ParseSourceName(name []byte) (pid *uint32, err error) {
	n, ok := proto.ParseName(name, d.PIDBits)
	switch {
	case !ok || n.NID != d.NID:
		return nil, fmt.Errorf("cxi: source name % x is not of %s: %w", name, d.Name, hw.ErrInvalid)
	case n.PID == libcxi.AnyPID:
		return nil, nil
	}
	return &n.PID, nil
}

// NodeName is the name of the endpoint that a node and a service are, as users of libfabric's provider write them: a
// NIC by the name of one of this host's devices, by its Ethernet address or by its number, and a PID. Without a node
// the NIC is the device's own, without a service the PID is 0, and any of a name for an own endpoint. Errors:
// hw.ErrInvalid.
func (d *Device) NodeName(all []Device, node, service string, own bool) (name []byte, err error) {
	n := proto.Name{NID: d.NID}
	if own {
		n.PID = libcxi.AnyPID
	}
	if node != "" {
		nid, ok := nodeNID(all, node)
		if !ok {
			return nil, fmt.Errorf("cxi: node %q is no NIC: %w", node, hw.ErrInvalid)
		}
		n.NID = nid
	}
	if service != "" {
		pid, ok := number(service, libcxi.AnyPID-1)
		if !ok {
			return nil, fmt.Errorf("cxi: service %q is no PID, 0 to %d: %w", service, libcxi.AnyPID-1, hw.ErrInvalid)
		}
		n.PID = pid
	}
	return n.AppendTo(nil), nil
}

// nodeNID is the number of the NIC that a node is. An Ethernet address of one ends in it.
func nodeNID(all []Device, node string) (nid uint32, ok bool) {
	const most = 1<<20 - 1
	if k := slices.IndexFunc(all, func(d Device) bool { return d.Name == node }); k >= 0 {
		return all[k].NID, true
	}
	if m, err := net.ParseMAC(node); err == nil && len(m) == 6 {
		return (uint32(m[3])<<16 | uint32(m[4])<<8 | uint32(m[5])) & most, true
	}
	return number(node, most)
}

// number reads a number up to most as C does: decimal, hexadecimal behind 0x, octal behind 0.
func number(s string, most uint64) (n uint32, ok bool) {
	base := 10
	if digits, hex := strings.CutPrefix(strings.ToLower(s), "0x"); hex {
		s, base = digits, 16
	} else if strings.HasPrefix(s, "0") {
		base = 8
	}
	v, err := strconv.ParseUint(s, base, 32)
	return uint32(v), err == nil && v <= most
}
