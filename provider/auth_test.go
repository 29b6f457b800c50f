package provider

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
)

// TestImpliedCaps: capabilities that an application writes into an info itself mean
// what they would mean in hints.
func TestImpliedCaps(t *testing.T) {
	const sides = fi.Send | fi.Recv
	const rma = fi.Read | fi.Write | fi.RemoteRead | fi.RemoteWrite
	const comm = fi.LocalComm | fi.RemoteComm
	info := testInfo()
	info.EP = &fi.EPAttr{Type: fi.EPRDM}
	d := openTestDomain(t, info)
	for _, c := range []struct {
		name     string
		caps, rx uint64
		want     uint64
		directed bool
	}{
		{"none: the domain's", 0, 0, info.Caps, false},
		{"no directions and no place", fi.Msg | fi.RMA, 0, fi.Msg | fi.RMA | sides | rma | comm, false},
		{"one direction, this host", fi.Msg | fi.Send | fi.LocalComm, 0, fi.Msg | fi.Send | fi.LocalComm, false},
		{"other hosts", fi.RMA | fi.Read | fi.RemoteComm, 0, fi.RMA | fi.Read | fi.RemoteComm, false},
		{"directed receives added", fi.Msg | fi.Recv | fi.DirectedRecv, fi.Msg | fi.Recv,
			fi.Msg | fi.Recv | fi.DirectedRecv | comm, true},
		{"directed receives taken out", fi.Msg | fi.Recv, fi.Msg | fi.Recv | fi.DirectedRecv, fi.Msg | fi.Recv | comm,
			false},
	} {
		i := testInfo()
		i.EP, i.Caps, i.Rx = info.EP, c.caps, &fi.RxAttr{Caps: c.rx, Size: 64, IOVLimit: 1}
		full, err := d.complete(i)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if directed := full.Rx.Caps&fi.DirectedRecv != 0; full.Caps != c.want || directed != c.directed {
			t.Errorf("%s: %#x, directed receives %v, want %#x, %v", c.name, full.Caps, directed, c.want, c.directed)
		}
	}
}

// TestBareReachesHosts: an endpoint whose capabilities name no place of peers has transports to other hosts.
func TestBareReachesHosts(t *testing.T) {
	for name, c := range map[string]struct {
		caps uint64
		want bool
	}{
		"neither":      {fi.Msg | fi.Tagged, true},
		"this host":    {fi.Msg | fi.Tagged | fi.LocalComm, false},
		"other hosts":  {fi.Msg | fi.Tagged | fi.RemoteComm, true},
		"both":         {fi.Msg | fi.Tagged | fi.LocalComm | fi.RemoteComm, true},
		"the domain's": {0, true},
	} {
		b := newBench(t, func(c *config.Config) { c.UDP = config.Yes }, &fi.Info{Caps: fi.Msg | fi.Tagged})
		b.info.Caps = c.caps
		if got := len(b.side(t).ep.base.transports.networks) != 0; got != c.want {
			t.Errorf("%s: transports to other hosts: %v", name, got)
		}
	}
}

// TestAttributesRefused: attributes that an endpoint or a context cannot have are refused, and the log says why.
func TestAttributesRefused(t *testing.T) {
	full := testInfo()
	full.EP, full.Tx = &fi.EPAttr{Type: fi.EPRDM}, &fi.TxAttr{Size: 64, InjectSize: 64, IOVLimit: 1}
	d := openTestDomain(t, full)
	var out bytes.Buffer
	log.UseWriter(&out, func(name string) (string, bool) { return "warn", name == "FI_LOG_LEVEL" })
	t.Cleanup(func() { log.UseWriter(os.Stderr, os.LookupEnv) })
	for what, c := range map[string]struct {
		open func(i *fi.Info) error
		text string
	}{
		"endpoint": {func(i *fi.Info) error {
			i.Tx = &fi.TxAttr{InjectSize: 1 << 30}
			_, err := d.OpenEndpoint(i)
			return err
		}, "tx_attr.inject_size: 1073741824 exceeds"},
		"key": {func(i *fi.Info) error {
			i.EP = &fi.EPAttr{Type: fi.EPRDM, AuthKeySize: 9}
			_, err := d.OpenEndpoint(i)
			return err
		}, "ep_attr.auth_key_size: 9 bytes without a key"},
		"scalable endpoint": {func(i *fi.Info) error {
			i.Tx = &fi.TxAttr{IOVLimit: 999}
			_, err := d.OpenScalable(i)
			return err
		}, "tx_attr.iov_limit: 999 exceeds"},
		"shared context": {func(*fi.Info) error {
			_, err := d.OpenSharedRx(&fi.RxAttr{IOVLimit: 998})
			return err
		}, "rx_attr.iov_limit: 998 exceeds"},
	} {
		out.Reset()
		err := c.open(testInfo())
		text := out.String()
		if fi.ErrnoOf(err) != fi.EINVAL || strings.Count(text, "\n") != 1 || !strings.Contains(text, c.text) {
			t.Errorf("%s: %v, the log says %q", what, err, text)
		}
	}
}
