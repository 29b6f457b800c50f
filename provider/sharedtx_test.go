package provider

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
)

func TestOpenSharedTx(t *testing.T) {
	i := testInfo()
	d := openTestDomain(t, i)
	for _, c := range []struct {
		what string
		attr *fi.TxAttr
		want fi.Errno
	}{
		{"defaults", nil, fi.Success},
		{"nothing", &fi.TxAttr{}, fi.Success},
		{"much", &fi.TxAttr{Caps: fi.Msg | fi.Send, OpFlags: fi.Completion, MsgOrder: fi.OrderSAS, Size: 1 << 20,
			InjectSize: 4096, IOVLimit: 4}, fi.Success},
		{"operation flags", &fi.TxAttr{OpFlags: fi.More}, fi.EBADFLAGS},
		{"capabilities", &fi.TxAttr{Caps: fi.RMA}, fi.EINVAL},
		{"order", &fi.TxAttr{MsgOrder: 1 << 9}, fi.EINVAL},
		{"completion order", &fi.TxAttr{CompOrder: fi.OrderStrict}, fi.EINVAL},
		{"mode", &fi.TxAttr{Mode: fi.MsgPrefix}, fi.Success},
		{"size", &fi.TxAttr{Size: 1<<20 + 1}, fi.EINVAL},
		{"inject size", &fi.TxAttr{InjectSize: 4097}, fi.EINVAL},
		{"iov limit", &fi.TxAttr{IOVLimit: 5}, fi.EINVAL},
		{"rma iov limit", &fi.TxAttr{RMAIOVLimit: 5}, fi.EINVAL},
	} {
		s, err := d.OpenSharedTx(c.attr)
		if fi.ErrnoOf(err) != c.want {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
		if err != nil {
			continue
		}
		a := s.Attr()
		if a.Caps == 0 || a.Size == 0 || a.InjectSize != 4096 || a.IOVLimit != 4 || a.Mode != 0 {
			t.Errorf("%s: %+v", c.what, a)
		}
		if c.attr != nil && c.attr.Size != 0 && a.Size != c.attr.Size {
			t.Errorf("%s: size %d", c.what, a.Size)
		}
		wantErrno(t, d.Close(), fi.EBUSY, "close of a domain with a context")
		wantErrno(t, s.Close(), fi.Success, "close")
		wantErrno(t, s.Close(), fi.EBADF, "second close")
	}
}

// A context may be closed before its endpoints, and is not bound to further ones.
func TestSharedTxClosedFirst(t *testing.T) {
	b := newBench(t, nil, &fi.Info{Caps: fi.Msg})
	s, err := b.domain.OpenSharedTx(nil)
	if err != nil {
		t.Fatal(err)
	}
	open := func(want fi.Errno) *Endpoint {
		e, err := b.domain.OpenEndpoint(b.info)
		if err != nil {
			t.Fatal(err)
		}
		wantErrno(t, e.BindSharedTx(s), want, "bind")
		return e
	}
	bound := open(fi.Success)
	wantErrno(t, s.Close(), fi.Success, "close of a used context")
	wantErrno(t, open(fi.EBADF).Close(), fi.Success, "close of an endpoint without the context")
	wantErrno(t, bound.Close(), fi.Success, "close of an endpoint with the context")
}
