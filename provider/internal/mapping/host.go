package mapping

import (
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/token"
)

// Remote is a peer's region as mappings need it. Any thread may call its methods.
type Remote interface {
	// Token is what is known of the region. Constant.
	Token() *token.Token
	// Process is the owner's process, and whether that is this one, or why the owner shares no memory with this
	// process.
	Process() (pid int, own bool, why string)
}

// Process is this process as it answers others.
type Process interface {
	// Region returns a region that others may access without its owner taking part, and enters its gate. What is not
	// proxy.StatusOK says why not. rights are those of the access. Any thread.
	Region(incarnation, key, rights uint64) (Own, proxy.Status)
}

// Own is a region of this process, in one part, whose gate is entered.
type Own interface {
	// Covers reports whether n bytes that peers name by addr and what follows are in the region, and At is where one of
	// them is; see [region.Region].
	Covers(addr, n uint64) bool
	At(addr uint64) uint64
	// First is where the region begins, and Buffer is the driver's number of the memory there when it was registered.
	// Buffer is for memory of a device.
	First() uint64
	Buffer() uint64
	// Hide has peers not ask any more where the region is.
	Hide()
	// Domain is what the region's domain has of mappings.
	Domain() *Domain
	// Leave leaves the gate: the region is used no more.
	Leave()
}
