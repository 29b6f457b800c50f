package provider

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
)

// TestSharedMemoryForbidden: with FI_OPT_SHARED_MEMORY_PERMITTED 0 a message to a peer on this
// host goes over a network, and so does one from a peer that may share memory.
func TestSharedMemoryForbidden(t *testing.T) {
	for name, both := range map[string]bool{"both": true, "one": false} {
		b := newBench(t, func(c *config.Config) { c.UDP = config.Yes }, nil)
		var sides [2]*side
		for i := range sides {
			s := &side{t: t, bench: b, domain: b.domain, addr: map[*side]fi.Addr{}}
			s.av = openTestAV(t, b.domain, fi.AVAttr{Type: fi.AVTable})
			var err error
			if s.cq, err = b.domain.OpenCQ(&fi.CQAttr{Format: fi.CQFormatTagged}, nil); err != nil {
				t.Fatal(err)
			}
			if s.ep, err = b.domain.OpenEndpoint(b.info); err != nil {
				t.Fatal(err)
			}
			if i == 0 || both {
				wantErrno(t, s.ep.SetOpt(fi.OptSharedMemoryPermitted, 0), fi.Success, "forbid")
			}
			for _, err := range []error{s.ep.BindCQ(s.cq, fi.Transmit|fi.Recv), s.ep.BindAV(s.av, 0), s.ep.Enable()} {
				if err != nil {
					t.Fatal(err)
				}
			}
			sides[i] = s
		}
		for i, x := range sides {
			y := sides[1-i]
			x.know(y)
			y.recv(RecvArgs{IOV: iovOf(make([]byte, 8)), Src: fi.AddrUnspec}, x)
			post(t, func() error { return x.ep.Send(&SendArgs{IOV: iovOf(make([]byte, 8)), Dest: x.addr[y]}) }, x, y)
			for l := range x.ep.base.links.All() {
				if p := l.Path(); p == nil || p.Via.Network == nil {
					t.Errorf("%s: side %d sends over shared memory", name, i)
				}
			}
		}
		for _, s := range sides {
			wantErrno(t, s.ep.Close(), fi.Success, "close")
			wantErrno(t, s.cq.Close(), fi.Success, "close")
		}
	}
	b := newBench(t, func(c *config.Config) { c.UDP = config.No }, nil)
	ep, err := b.domain.OpenEndpoint(b.info)
	if err != nil {
		t.Fatal(err)
	}
	wantErrno(t, ep.SetOpt(fi.OptSharedMemoryPermitted, 0), fi.EOPNOTSUPP, "without a network")
	wantErrno(t, ep.SetOpt(fi.OptSharedMemoryPermitted, 1), fi.Success, "what is anyway")
	wantErrno(t, ep.Close(), fi.Success, "close")
}
