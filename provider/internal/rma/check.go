package rma

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// The flags that reads and writes may carry.
const (
	writeFlags = fi.Completion | fi.More | fi.Inject | fi.InjectComplete | fi.TransmitComplete | fi.DeliveryComplete |
		fi.RemoteCQData | fi.Fence | fi.Priority
	readFlags = fi.Completion | fi.More | fi.Fence | fi.Priority | fi.InjectComplete | fi.TransmitComplete |
		fi.DeliveryComplete
)

// Limits are the longest operations of a kind that may be posted, in bytes.
type Limits struct {
	Most   uint64
	Inject uint64 // of one that is injected
}

// Check validates the arguments and returns the operation's length in bytes. Errors: fi.EBADFLAGS; fi.EINVAL for too
// many elements, ones without local memory, lengths that differ, and what is too long to inject; fi.EMSGSIZE.
func (a *Operation) Check(l Limits) (uint64, error) {
	what, allowed := "write", writeFlags
	if a.Read {
		what, allowed = "read", readFlags
	}
	if a.Flags&^allowed != 0 {
		return 0, log.Reject(log.EPData, fi.EBADFLAGS, "%s: flags %#x are not for it", what, a.Flags&^allowed)
	}
	if len(a.IOV) > wire.IOVLimit || len(a.Remote) > wire.IOVLimit {
		return 0, log.Reject(log.EPData, fi.EINVAL, "%s: %d local and %d remote elements, at most %d", what,
			len(a.IOV), len(a.Remote), wire.IOVLimit)
	}
	local, remote := uint64(0), uint64(0)
	for _, v := range a.IOV {
		if v.Len > wire.MaxMessage || hmem.Nowhere(v) {
			return 0, log.Reject(log.EPData, fi.EINVAL, "%s: element of %d bytes at %#x", what, v.Len, v.Base)
		}
		local += v.Len
	}
	for _, v := range a.Remote {
		if v.Len > wire.MaxMessage {
			return 0, log.Reject(log.EPData, fi.EMSGSIZE, "%s: remote element of %d bytes, at most %d", what,
				v.Len, uint64(wire.MaxMessage))
		}
		remote += v.Len
	}
	if local != remote {
		return 0, log.Reject(log.EPData, fi.EINVAL, "%s: %d bytes here, %d there", what, local, remote)
	}
	if local > l.Most {
		return 0, log.Reject(log.EPData, fi.EMSGSIZE, "%s: %d bytes, at most %d", what, local, l.Most)
	}
	if a.Injects() && local > l.Inject {
		return 0, log.Reject(log.EPData, fi.EINVAL, "inject: %d bytes, at most %d", local, l.Inject)
	}
	if !a.Read {
		hmem.Touch(a.IOV)
	}
	return local, nil
}
