package provider

import (
	"github.com/weft-fabric/weft/fi"
)

// Applications name device memory (package hmem) by a descriptor besides the address; [Domain.Translate] makes one of
// the two.

// Translate makes the addresses of a vector those of the regions that descs name, of which there are as many: see
// [region.Table.Translate].
func (d *Domain) Translate(iov []fi.IOVec, descs []uint64) error {
	return d.regions.Translate(iov, descs)
}

// hmem reports whether the domain was opened for device memory.
func (d *Domain) hmem() bool { return d.info.Caps&fi.HMEM != 0 }
