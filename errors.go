package weft

import (
	"fmt"
	"net"
)

// Op is a kind of operation.
type Op uint8

// The kinds of operations.
const (
	OpSend Op = iota + 1
	OpRecv
	OpRead
	OpWrite
)

var opNames = [...]string{OpSend: "send", OpRecv: "receive", OpRead: "read", OpWrite: "write"}

// String returns the operation's name in lower case.
func (o Op) String() string {
	if int(o) < len(opNames) && o != 0 {
		return opNames[o]
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// Error is why an operation failed. It wraps the [fi.Errno].
type Error struct {
	Op   Op
	Peer Peer  // the peer that was named; AnyPeer for a receive from any
	Err  error // a [fi.Errno], or an error that wraps one
}

// Error returns the operation, the peer and the reason.
func (e *Error) Error() string {
	if e.Peer == AnyPeer {
		return fmt.Sprintf("weft: %v: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("weft: %v, peer %d: %v", e.Op, e.Peer.n-1, e.Err)
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// errClosed is what calls on a closed endpoint return.
var errClosed = fmt.Errorf("weft: endpoint: %w", net.ErrClosed)
