package provider

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
)

// complete returns a copy of info in which everything that an endpoint needs
// is set, from the domain's own description where info leaves it out. Errors:
// fi.EINVAL for sizes beyond what the domain offers.
func (d *Domain) complete(info *fi.Info) (*fi.Info, error) {
	full, own := info.Clone(), d.info
	if full.Caps == 0 {
		full.Caps = own.Caps
	}
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
	full.EP.AuthKey, full.EP.AuthKeySize = auth.bytes(), uint64(len(auth))
	tx := full.Tx
	if tx.Size == 0 {
		tx.Size = own.Tx.Size
	}
	if tx.InjectSize == 0 {
		tx.InjectSize = own.Tx.InjectSize
	}
	if tx.InjectSize > uint64(d.cfg.InjectSize) || tx.IOVLimit > iovLimit {
		return nil, fmt.Errorf("transmit attributes beyond the limits: inject %d bytes, %d elements: %w",
			tx.InjectSize, tx.IOVLimit, fi.EINVAL)
	}
	rx, err := d.completeRx(full.Rx)
	full.Rx = rx
	if rx != nil && rx.Caps == 0 {
		rx.Caps = full.Caps
	}
	return full, err
}

// completeRx does the same for receive attributes.
func (d *Domain) completeRx(attr *fi.RxAttr) (*fi.RxAttr, error) {
	own := d.info.Rx
	if own == nil {
		own = &fi.RxAttr{Caps: d.info.Caps, Size: 1024, IOVLimit: iovLimit}
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
	if rx.IOVLimit > iovLimit {
		return nil, fmt.Errorf("receive attributes beyond the limits: %d elements: %w", rx.IOVLimit, fi.EINVAL)
	}
	return &rx, nil
}
