package outcome

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// TestOutcomes holds the errno of each error of a transport, wrapped or not.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		err              error
		post, read, copy fi.Errno
	}{
		{hw.ErrNoResource, fi.EAGAIN, fi.EIO, fi.EIO},
		{hw.ErrUnreachable, fi.EAGAIN, fi.EIO, fi.EIO},
		{hw.ErrPeerDead, fi.ECONNRESET, fi.ECONNRESET, fi.ECONNRESET},
		{hw.ErrTooLong, fi.EMSGSIZE, fi.EIO, fi.EIO},
		{hw.ErrCanceled, fi.EIO, fi.ECONNRESET, fi.ECONNRESET},
		{hw.ErrKey, fi.EIO, fi.ECONNRESET, fi.EIO},
		{hw.ErrPermission, fi.EIO, fi.EIO, fi.EIO},
		{fi.ECONNRESET, fi.EIO, fi.ECONNRESET, fi.ECONNRESET},
		{errors.New("other"), fi.EIO, fi.EIO, fi.EIO},
	} {
		for _, err := range []error{c.err, fmt.Errorf("step: %w", c.err)} {
			if got := OfPost(err); !errors.Is(got, c.post) {
				t.Errorf("post: %v is %v, want %v", err, got, c.post)
			}
			if got := OfRead(err); got != c.read {
				t.Errorf("read: %v is %v, want %v", err, got, c.read)
			}
			if got := OfCopy(err); got != c.copy {
				t.Errorf("copy: %v is %v, want %v", err, got, c.copy)
			}
		}
	}
	if err := OfPost(nil); err != nil {
		t.Errorf("no error is %v", err)
	}
}
