package tokens

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/names"
	"github.com/weft-fabric/weft/provider/token"
)

// TestMake: what tokens say of regions.
func TestMake(t *testing.T) {
	defer dmabuf.Pretend()()
	fd, err := unix.MemfdCreate("weft-tokens-test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, 8192); err != nil {
		t.Fatal(err)
	}
	attr := fi.MRAttr{DMABuf: &fi.DMABuf{FD: fd, Offset: 4096, Len: 100}}
	device, err := hmem.EnterRegion(&attr, fi.MRDMABuf, true, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Leave(1)
	for what, c := range map[string]struct {
		change func(o *Own)
		rights uint16
		kind   token.Kind
		offset uint64 // where in its allocation the region is, 0: the token does not say
		rails  int
	}{
		"host memory":  {func(*Own) {}, token.Read | token.Write, token.Host, 0, 0},
		"to be read":   {func(o *Own) { o.Rights = fi.RemoteRead | fi.Send }, token.Read, token.Host, 0, 0},
		"to be filled": {func(o *Own) { o.Rights = fi.RemoteWrite }, token.Write, token.Host, 0, 0},
		"a dma-buf": {func(o *Own) { o.Memory, o.Shares = &device, shares{4096, true} }, token.Read | token.Write,
			token.DMABuf, 4096, 0},
		"not shared": {func(o *Own) { o.Memory = &device }, token.Read | token.Write, token.DMABuf, 0, 0},
		"known to devices": {func(o *Own) {
			o.Rails = []token.RDMA{rail('a', 1, 5, 100), rail('b', 1, 6, 100)}
		}, token.Read | token.Write, token.Host, 0, 2},
	} {
		o := plain()
		c.change(&o)
		got, err := token.Parse(made(t, o, "secret"), []byte("secret"))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		place, placed := got.Place()
		if got.Owner != o.Owner.Name || got.Incarnation != 3 || got.Agent != "agent" || got.Key != 11 ||
			got.Base != 4096 || got.Length != 100 || got.Rights != c.rights || got.Kind != c.kind ||
			len(got.Rails()) != c.rails || placed != (c.offset != 0) || place.Offset != c.offset {
			t.Errorf("%s: %+v, at %+v", what, got, place)
		}
		if _, ok := got.Find(token.PartMessages); !ok {
			t.Errorf("%s: it is not reached by messages", what)
		}
	}
	o := plain()
	o.Agent = strings.Repeat("x", token.MaxAgent+1)
	if _, err := o.Make(nil); !errors.Is(err, fi.EINVAL) {
		t.Errorf("a name that is too long: %v", err)
	}
}

// TestProcess: a token names its process, but of an endpoint that shares no memory.
func TestProcess(t *testing.T) {
	here, err := proc.This()
	if err != nil {
		t.Fatal(err)
	}
	var together, apart Process
	p, ok := token.ParseIPC(together.Body(false))
	if !ok || p.PID != here.Self.PID || p.BootID != here.BootID || p.NetNS != here.NetNS || p.PIDNS != here.PIDNS {
		t.Errorf("%+v", p)
	}
	if b := apart.Body(true); b != nil {
		t.Errorf("%x of an endpoint that shares no memory", b)
	}
}

// TestReachable: the name of an endpoint that is bound to all addresses is one of the host's, of its interface if
// there is one.
func TestReachable(t *testing.T) {
	at := func(addr, iface string) names.Local {
		return names.Local{Name: names.New(netip.MustParseAddr(addr), 0), Iface: iface}
	}
	all := []names.Local{at("10.0.0.1", "a"), at("10.0.0.2", "b"), at("fe00::1", "a"), at("10.0.0.3", "b")}
	failed := errors.New("no interfaces")
	for _, c := range []struct {
		bound, iface, want string
		here               []names.Local
		err                error
	}{
		{"10.9.9.9", "a", "10.9.9.9", nil, nil},
		{"0.0.0.0", "a", "10.0.0.1", all, nil}, {"0.0.0.0", "b", "10.0.0.2", all, nil},
		{"0.0.0.0", "c", "10.0.0.1", all, nil}, {"::", "b", "fe00::1", all, nil},
		{"0.0.0.0", "a", "0.0.0.0", all[2:3], fi.EADDRNOTAVAIL}, {"0.0.0.0", "a", "0.0.0.0", nil, failed},
	} {
		here := func() ([]names.Local, error) {
			if errors.Is(c.err, failed) {
				return nil, failed
			}
			return c.here, nil
		}
		n, err := Reachable(names.New(netip.MustParseAddr(c.bound), 77), here, c.iface)
		if n != names.New(netip.MustParseAddr(c.want), 77) || !errors.Is(err, c.err) {
			t.Errorf("%+v: %v, %v", c, n, err)
		}
	}
}
