package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// sizeLimits are the sizes that the application has set with fi.OptMaxMsgSize and
// its siblings, by option, 0: the endpoint's own. Stored by SetOpt, read by posts; relaxed.
type sizeLimits [fi.OptInjectAtomicSize - fi.OptMaxMsgSize + 1]atomic.Uint64

// isSize reports whether an option is one of them.
func isSize(name fi.Opt) bool { return name >= fi.OptMaxMsgSize && name <= fi.OptInjectAtomicSize }

// ownSize is the longest operation of the kind of an option that the endpoint can
// do, in bytes.
func (e *peering) ownSize(name fi.Opt) uint64 {
	switch name {
	case fi.OptMaxAtomicSize:
		return atomics.MaxBytes
	case fi.OptInjectMsgSize, fi.OptInjectTaggedSize, fi.OptInjectRMASize:
		return e.info.Tx.InjectSize
	case fi.OptInjectAtomicSize:
		return min(atomics.MaxBytes, e.info.Tx.InjectSize)
	}
	if e.chosen.lossy {
		return info.DgramMsgSize(e.domain.cfg)
	}
	return wire.MaxMessage
}

// size is the longest operation of the kind of an option that may be posted, in bytes.
func (e *peering) size(name fi.Opt) uint64 {
	if n := e.chosen.sizes[name-fi.OptMaxMsgSize].Load(); n != 0 {
		return n
	}
	return e.ownSize(name)
}

// setSize restricts the operations of a kind. C knows one limit for all kinds, so from
// then on Go posts, and checks.
func (e *peering) setSize(name fi.Opt, value uint64) error {
	own := e.ownSize(name)
	if value == 0 || value > own {
		return refuse(log.EPCtrl, fi.EINVAL, "endpoint option %d: %d bytes, 1 to %d are possible", name, value, own)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if value != own && !e.chosen.sized {
		e.chosen.sized = true
		e.hold(1)
	}
	e.chosen.sizes[name-fi.OptMaxMsgSize].Store(value)
	return nil
}
