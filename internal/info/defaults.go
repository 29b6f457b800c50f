package info

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/names"
)

// Defaults complete the attributes with which an application opens an endpoint or a context in a domain. Immutable.
type Defaults struct {
	Own    *fi.Info // what the domain was opened with
	Format fi.AddrFormat
	Inject uint64         // the most bytes that are injected
	Config *config.Config // nil: the defaults
}

// Complete returns a copy of given in which everything that an endpoint needs
// is set, from the domain's own description where given leaves it out, and what its
// capabilities imply. Errors: fi.EINVAL for what is not offered.
func (d *Defaults) Complete(given *fi.Info) (*fi.Info, error) {
	if d.Format != names.Matched { // a device has its own limits
		if err := asError(d.checkEndpoint(given)); err != nil {
			return nil, err
		}
	}
	full, own := given.Clone(), d.Own
	if full.Caps == 0 {
		full.Caps = own.Caps
	}
	full.Caps = implied(full.Caps)
	if full.AddrFormat == fi.FormatUnspec {
		full.AddrFormat = d.Format
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
	if err := d.completeTx(full.Tx); err != nil {
		return nil, err
	}
	rx, err := d.CompleteRx(full.Rx)
	full.Rx = rx
	if rx != nil {
		if rx.Caps == 0 {
			rx.Caps = full.Caps
		}
		const endpoints = DirectedCaps | fi.TaggedMultiRecv // the application may have changed the endpoint's only
		rx.Caps = rx.Caps&^endpoints | full.Caps&endpoints
	}
	return full, err
}

// completeTx does the same for transmit attributes.
func (d *Defaults) completeTx(tx *fi.TxAttr) error {
	if tx.Size == 0 {
		tx.Size = d.Own.Tx.Size
	}
	if tx.InjectSize == 0 {
		tx.InjectSize = d.Own.Tx.InjectSize
	}
	if tx.InjectSize > d.Inject || tx.IOVLimit > IOVLimit {
		return fmt.Errorf("transmit attributes beyond the limits: inject %d bytes, %d elements: %w",
			tx.InjectSize, tx.IOVLimit, fi.EINVAL)
	}
	if _, ok := fi.DSCP(tx.TClass); !ok {
		return fmt.Errorf("traffic class %#x: %w", tx.TClass, fi.EINVAL)
	}
	return nil
}

// CompleteRx is Complete for receive attributes, nil: all are left out.
func (d *Defaults) CompleteRx(attr *fi.RxAttr) (*fi.RxAttr, error) {
	own := d.Own.Rx
	if own == nil {
		own = &fi.RxAttr{Caps: d.Own.Caps, Size: 1024, IOVLimit: IOVLimit}
	}
	rx := *own
	if attr != nil {
		rx = *attr
		if d.Format != names.Matched {
			if err := asError(opening(d.Config, 0).checkRx(rx, epTypes[0])); err != nil {
				return nil, err
			}
		}
	}
	if rx.Size == 0 {
		rx.Size = own.Size
	}
	if rx.Caps == 0 {
		rx.Caps = own.Caps
	}
	if rx.IOVLimit > IOVLimit {
		return nil, fmt.Errorf("receive attributes beyond the limits: %d elements: %w", rx.IOVLimit, fi.EINVAL)
	}
	return &rx, nil
}
