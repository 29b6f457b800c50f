package matched

import (
	"fmt"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// TestOpenErrno: a PID that is another's differs from a device without room.
func TestOpenErrno(t *testing.T) {
	for _, c := range []struct {
		err  error
		want fi.Errno
	}{
		{fmt.Errorf("open: %w", hw.ErrNoResource), fi.ENOSPC},
		{fmt.Errorf("%w: %w", hw.ErrNoResource, fi.EADDRINUSE), fi.EADDRINUSE},
		{hw.ErrPermission, fi.EACCES},
	} {
		if got := OpenErrno(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
