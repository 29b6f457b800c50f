package rma

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/rkey"
)

// Operation describes one read or write, which is checked.
type Operation struct {
	IOV     []fi.IOVec    // local memory
	Remote  []fi.RMAIOVec // the peer's, as long in all as IOV
	Dest    fi.Addr
	Data    uint64
	Flags   uint64
	Context uint64
	Work    uint64 // the number of the deferred work, or of the list, that it is of, or 0
	Read    bool
	HasData bool // Data goes with the write
	Inject  bool // fi_inject_write forms: never a completion

	Listed bool // an element of a list: FI_WEFT_TOKEN_WAYS holds
	More   bool // another operation to the peer follows at once, or the path's device is uncorked
	// Later: what a device writes with fi.DeliveryComplete need not be in its place when the operation ends: the list
	// flushes.
	Later bool
	// Local is memory that the device of the path knows for all elements of a list, nil: none.
	Local *rkey.Local
}

// WithData reports whether the operation is a write with CQ data.
func (a *Operation) WithData() bool { return a.HasData || a.Flags&fi.RemoteCQData != 0 }

// Injects reports whether the caller's memory is the caller's again when the operation is posted.
func (a *Operation) Injects() bool { return a.Inject || a.Flags&fi.Inject != 0 }

// Kind is what the completion of a read or a write says.
func Kind(read bool) uint64 {
	if read {
		return fi.RMA | fi.Read
	}
	return fi.RMA | fi.Write
}

// Ended is how an operation has ended.
type Ended struct {
	Context uint64
	Flags   uint64 // what its completion says
	Work    uint64 // as in Operation
	Total   uint64 // bytes; 0 of one that has failed before anything was sent
	Status  fi.Errno

	Completes bool // it writes a completion if it succeeds; one that fails does anyway
	Asked     bool // a completion was asked for by fi.Completion
}

// Ended is how a read or write has ended. total: as in the result.
func (a *Operation) Ended(completes bool, status fi.Errno, total uint64) Ended {
	return Ended{Context: a.Context, Flags: Kind(a.Read), Work: a.Work, Total: total, Status: status,
		Completes: completes, Asked: a.Flags&fi.Completion != 0}
}
