package provider

import (
	"testing"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/proxy"
)

// TestOwnRegion: which regions of this process others may access without their owner's taking part.
func TestOwnRegion(t *testing.T) {
	defer dmabuf.Pretend()()
	b := newBench(t, nil, hmemHints())
	y := b.side(t)
	m := y.region(make([]byte, 4096), 7, fi.RemoteRead)
	once, err := b.domain.RegMR(&fi.MRAttr{IOV: iovOf(make([]byte, 64)), Access: fi.RemoteRead, RequestedKey: 8},
		fi.MRSingleUse)
	if err != nil {
		t.Fatal(err)
	}
	defer once.Close()
	for what, c := range map[string]struct {
		incarnation, key, rights uint64
		want                     proxy.Status
	}{
		"right":            {y.ep.base.incarnation, 7, fi.RemoteRead, proxy.StatusOK},
		"no such endpoint": {y.ep.base.incarnation + 1, 7, fi.RemoteRead, proxy.StatusNone},
		"no such region":   {y.ep.base.incarnation, 9, fi.RemoteRead, proxy.StatusNone},
		"no right":         {y.ep.base.incarnation, 7, fi.RemoteWrite, proxy.StatusRefused},
		"no rights asked":  {y.ep.base.incarnation, 7, 0, proxy.StatusRefused},
		"for single use":   {y.ep.base.incarnation, 8, fi.RemoteRead, proxy.StatusRefused},
	} {
		r, status := (ownProcess{}).Region(c.incarnation, c.key, c.rights)
		if status != c.want {
			t.Errorf("%s: %v, want %v", what, status, c.want)
		}
		if status == proxy.StatusOK {
			if r.First() != uint64(m.region.Memory.Parts[0].Base) || r.Domain() != &b.domain.mappings ||
				!r.Covers(m.region.Base, 4096) || r.Covers(m.region.Base, 4097) {
				t.Errorf("%s: another region", what)
			}
			r.Leave()
		}
	}
}

// TestCloseWhileCopied: an endpoint is not closed while another process is at a copy, which does not end as long as
// that is stopped, and is closed when it has ended.
func TestCloseWhileCopied(t *testing.T) {
	b := newBench(t, nil, hmemHints())
	x := b.side(t)
	stopped := make(chan bool)
	x.ep.base.lists.Go(func() { <-stopped })
	closed := make(chan error, 1)
	go func() { closed <- x.ep.Close() }()
	select {
	case err := <-closed:
		wantErrno(t, err, fi.EBUSY, "close while a copy is under way")
	case <-time.After(time.Minute):
		close(stopped)
		t.Fatal("close waits for the copy")
	}
	wantErrno(t, x.ep.Close(), fi.EBUSY, "close again")
	close(stopped)
	x.close()
}
