package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/info"
	"github.com/weft-fabric/weft/provider/wire"
)

// complete returns a copy of given in which everything that an endpoint needs
// is set, from the domain's own description where given leaves it out, and what its
// capabilities imply. Errors: fi.EINVAL for sizes beyond what the domain offers.
func (d *Domain) complete(given *fi.Info) (*fi.Info, error) {
	full, own := given.Clone(), d.info
	if full.Caps == 0 {
		full.Caps = own.Caps
	}
	full.Caps = info.Implied(full.Caps)
	if full.AddrFormat == fi.FormatUnspec {
		full.AddrFormat = d.format
	}
	if full.EP == nil {
		full.EP = own.Clone().EP
	}
	if full.Tx == nil {
		full.Tx = own.Clone().Tx
	}
	if own.Tx == nil || own.EP == nil {
		return nil, fmt.Errorf("the domain was opened without endpoint attributes: %w", fi.EINVAL)
	}
	auth, err := d.endpointKey(full.EP)
	if err != nil {
		return nil, err
	}
	full.EP.AuthKey, full.EP.AuthKeySize = auth.Bytes(), uint64(len(auth))
	tx := full.Tx
	if tx.Size == 0 {
		tx.Size = own.Tx.Size
	}
	if tx.InjectSize == 0 {
		tx.InjectSize = own.Tx.InjectSize
	}
	inject := uint64(d.cfg.InjectSize)
	if d.Matches() {
		inject = own.Tx.InjectSize // the device's limit
	}
	if tx.InjectSize > inject || tx.IOVLimit > wire.IOVLimit {
		return nil, fmt.Errorf("transmit attributes beyond the limits: inject %d bytes, %d elements: %w",
			tx.InjectSize, tx.IOVLimit, fi.EINVAL)
	}
	if _, ok := fi.DSCP(tx.TClass); !ok {
		return nil, fmt.Errorf("traffic class %#x: %w", tx.TClass, fi.EINVAL)
	}
	rx, err := d.completeRx(full.Rx)
	full.Rx = rx
	if rx != nil {
		if rx.Caps == 0 {
			rx.Caps = full.Caps
		}
		const endpoints = info.DirectedCaps | fi.TaggedMultiRecv // the application may have changed the endpoint's only
		rx.Caps = rx.Caps&^endpoints | full.Caps&endpoints
	}
	return full, err
}

// completeRx does the same for receive attributes.
func (d *Domain) completeRx(attr *fi.RxAttr) (*fi.RxAttr, error) {
	own := d.info.Rx
	if own == nil {
		own = &fi.RxAttr{Caps: d.info.Caps, Size: 1024, IOVLimit: wire.IOVLimit}
	}
	rx := *own
	if attr != nil {
		rx = *attr
	}
	if rx.Size == 0 {
		rx.Size = own.Size
	}
	if rx.Caps == 0 {
		rx.Caps = own.Caps
	}
	if rx.IOVLimit > wire.IOVLimit {
		return nil, fmt.Errorf("receive attributes beyond the limits: %d elements: %w", rx.IOVLimit, fi.EINVAL)
	}
	return &rx, nil
}
