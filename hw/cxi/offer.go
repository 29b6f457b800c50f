package cxi

import (
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/libcxi"
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
// it returns, 0: any. Errors: hw.ErrInvalid (it names nothing on the device).
func (d *Device) ParseSourceName(name []byte) (pid int, err error) {
	n, ok := proto.ParseName(name, d.PIDBits)
	switch {
	case !ok || n.NID != d.NID:
		return 0, fmt.Errorf("cxi: source name % x is not of %s: %w", name, d.Name, hw.ErrInvalid)
	case n.PID == libcxi.AnyPID:
		return 0, nil
	case n.PID == 0:
		return 0, fmt.Errorf("cxi: source name % x has PID 0: %w", name, hw.ErrInvalid)
	}
	return int(n.PID), nil
}
