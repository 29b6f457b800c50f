package backends

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// TestOpenFailed: which errno fi_enable gives for an error of a program's network, which its text names.
func TestOpenFailed(t *testing.T) {
	for _, c := range []struct {
		err  error
		want fi.Errno
	}{
		{fmt.Errorf("%w: %w", syscall.EPERM, fi.ENODEV), fi.ENODEV},
		{syscall.ENODEV, fi.ENODEV},
		{hw.ErrPermission, fi.EACCES},
		{errors.New("broken"), fi.EIO},
	} {
		e := &Endpoint{Program: []Network{{Name: "hub", Open: func([]byte) (hw.Iface, error) { return nil, c.err }}}}
		_, err := e.openProgram(nil)
		if fi.ErrnoOf(err) != c.want || !strings.Contains(err.Error(), "network hub") {
			t.Errorf("%v: %v", c.err, err)
		}
	}
}
