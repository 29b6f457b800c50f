// Package outcome turns the errors of transports into the errnos of libfabric.
package outcome

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// OfPost is what a call returns whose post to a transport returned err: nil for nil, fi.EAGAIN where there was no room
// or no path yet, fi.ECONNRESET where the peer is gone, fi.EMSGSIZE for what is too long, and fi.EIO else.
func OfPost(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, hw.ErrNoResource), errors.Is(err, hw.ErrUnreachable):
		return fi.EAGAIN
	case errors.Is(err, hw.ErrPeerDead):
		return fi.ECONNRESET
	case errors.Is(err, hw.ErrTooLong):
		return fi.EMSGSIZE
	}
	return fi.EIO
}

// OfRead is the outcome of a rendezvous whose payload could not be read because of err. A sender keeps its region until
// it has been answered, so a device that does not know the key is that of another process in its place.
func OfRead(err error) fi.Errno {
	if errors.Is(err, hw.ErrKey) {
		return fi.ECONNRESET
	}
	return OfCopy(err)
}

// OfCopy is the outcome of a transfer from or to a peer's memory that failed with err: fi.ECONNRESET where the peer is
// gone, else fi.EIO.
func OfCopy(err error) fi.Errno {
	if errors.Is(err, hw.ErrPeerDead) || errors.Is(err, hw.ErrCanceled) || errors.Is(err, fi.ECONNRESET) {
		return fi.ECONNRESET
	}
	return fi.EIO
}
