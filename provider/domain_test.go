package provider

import (
	"strings"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/log/logtest"
)

func TestOpenDomainAttributes(t *testing.T) {
	f := &Fabric{attr: fi.FabricAttr{Name: "127.0.0.0/8"}, cfg: config.Default()}
	for _, c := range []struct {
		what   string
		change func(i *fi.Info)
		want   fi.Errno
	}{
		{"as it is", func(i *fi.Info) {}, fi.Success},
		{"no domain attributes", func(i *fi.Info) { i.Domain = nil }, fi.EINVAL},
		{"no name", func(i *fi.Info) { i.Domain.Name = "" }, fi.EINVAL},
		{"no fabric attributes", func(i *fi.Info) { i.Fabric = nil }, fi.Success},
		{"another fabric", func(i *fi.Info) { i.Fabric.Name = "10.0.0.0/8" }, fi.EINVAL},
		{"threading", func(i *fi.Info) { i.Domain.Threading = 99 }, fi.EINVAL},
		{"automatic progress", func(i *fi.Info) { i.Domain.DataProgress = fi.ProgressAuto }, fi.Success},
		{"automatic control progress", func(i *fi.Info) { i.Domain.ControlProgress = fi.ProgressAuto }, fi.Success},
		{"unified progress", func(i *fi.Info) { i.Domain.ControlProgress = fi.ProgressControlUnified }, fi.Success},
		{"resource management", func(i *fi.Info) { i.Domain.ResourceMgmt = 3 }, fi.EINVAL},
		{"address vector type", func(i *fi.Info) { i.Domain.AVType = 3 }, fi.EINVAL},
		{"basic registration", func(i *fi.Info) { i.Domain.MRMode = fi.MRBasic }, fi.Success},
		{"registration modes", func(i *fi.Info) { i.Domain.MRMode = fi.MRRaw | fi.MRMMUNotify | 1<<20 }, fi.Success},
	} {
		i := testInfo()
		c.change(i)
		d, err := f.OpenDomain(i)
		if fi.ErrnoOf(err) != c.want {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
		if err != nil {
			continue
		}
		wantErrno(t, f.Close(), fi.EBUSY, "close of a fabric with a domain")
		i.Domain.Name = "changed afterwards"
		if d.DomainName() != "lo" {
			t.Errorf("%s: the domain is called %q", c.what, d.DomainName())
		}
		wantErrno(t, d.Close(), fi.Success, "close")
		wantErrno(t, d.Close(), fi.EBADF, "second close")
	}
	_, err := f.OpenDomain(nil)
	wantErrno(t, err, fi.EINVAL, "nil")
	wantErrno(t, f.Close(), fi.Success, "close fabric")
	_, err = f.OpenDomain(testInfo())
	wantErrno(t, err, fi.EBADF, "closed fabric")
}

func TestStripes(t *testing.T) {
	for _, c := range []struct {
		threading         fi.Threading
		configured, cores int
		txSize            uint64
		want              int
	}{
		{fi.ThreadUnspec, 0, 8, 1024, 8},
		{fi.ThreadSafe, 0, 8, 1024, 8},
		{fi.ThreadSafe, 0, 7, 1024, 4},
		{fi.ThreadSafe, 0, 8, 64, 4},
		{fi.ThreadSafe, 0, 8, 63, 2},
		{fi.ThreadSafe, 0, 8, 1, 1},
		{fi.ThreadSafe, 0, 8, 0, 1},
		{fi.ThreadSafe, 0, 1, 1024, 1},
		{fi.ThreadSafe, 16, 2, 1024, 16},
		{fi.ThreadSafe, 6, 2, 1024, 4},
		{fi.ThreadSafe, 1, 8, 1024, 1},
		{fi.ThreadFID, 0, 8, 1024, 1},
		{fi.ThreadFID, 4, 8, 1024, 4},
		{fi.ThreadEndpoint, 0, 8, 1024, 1},
		{fi.ThreadEndpoint, 4, 8, 1024, 4},
		{fi.ThreadCompletion, 4, 8, 1024, 1},
		{fi.ThreadDomain, 4, 8, 1024, 1},
	} {
		i := testInfo()
		i.Domain.Threading = c.threading
		cfg := *config.Default()
		cfg.TxStripes = c.configured
		d := openTestDomainWith(t, i, &cfg)
		d.maxStripes = maxStripes(c.configured, c.cores)
		if got := d.stripes(c.txSize); got != c.want {
			t.Errorf("%+v: %d stripes", c, got)
		}
		if _, alone := d.exclusive(); !alone && d.cqStripes() < d.stripes(c.txSize) {
			t.Errorf("%+v: queues for %d stripes", c, d.cqStripes())
		}
	}
}

func TestExclusive(t *testing.T) {
	for _, c := range []struct {
		threading      fi.Threading
		caps           uint64
		object, shared bool
	}{
		{fi.ThreadUnspec, 0, false, false},
		{fi.ThreadSafe, 0, false, false},
		{fi.ThreadFID, 0, false, false},
		{fi.ThreadEndpoint, 0, false, false},
		{fi.ThreadCompletion, 0, true, false},
		{fi.ThreadCompletion, fi.Trigger, false, false},
		{fi.ThreadCompletion, fi.RMAEvent, false, false}, // readers of a region's counter drive all endpoints
		{fi.ThreadCompletion, fi.Collective, false, false},
		{fi.ThreadDomain, fi.Trigger | fi.RMAEvent | fi.Collective, true, true},
	} {
		i := testInfo()
		i.Domain.Threading = c.threading
		i.Caps |= c.caps
		d := openTestDomain(t, i)
		ep, q := d.exclusive()
		if ep != c.object || q != c.object || d.exclusiveShared() != c.shared {
			t.Errorf("%d: endpoint %v, queue %v, shared context %v", c.threading, ep, q, d.exclusiveShared())
		}
	}
}

// TestExclusiveEndpoint has an endpoint of a shared receive context, or of collective operations, in a domain of
// FI_THREAD_COMPLETION. Threads of the context's other endpoints, or readers of counters of arrivals, make progress of
// it, so neither it nor its queue is one thread's alone.
func TestExclusiveEndpoint(t *testing.T) {
	for _, c := range []struct {
		threading fi.Threading
		shares    bool
		caps      uint64
		alone     bool
	}{
		{fi.ThreadCompletion, false, 0, true},
		{fi.ThreadCompletion, true, 0, false},
		{fi.ThreadDomain, true, 0, true},
		{fi.ThreadCompletion, false, fi.Collective, false},
		{fi.ThreadDomain, false, fi.Collective, true},
	} {
		b := newBench(t, nil, &fi.Info{Caps: fi.Msg | fi.Tagged, Domain: &fi.DomainAttr{Threading: c.threading}})
		srx, err := b.domain.OpenSharedRx(nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &side{t: t, bench: b, domain: b.domain}
		if s.av, err = b.domain.OpenAV(&fi.AVAttr{Type: fi.AVTable}); err != nil {
			t.Fatal(err)
		}
		if s.cq, err = b.domain.OpenCQ(&fi.CQAttr{}, nil); err != nil {
			t.Fatal(err)
		}
		own := *b.info
		own.Caps |= c.caps
		if s.ep, err = b.domain.OpenEndpoint(&own); err != nil {
			t.Fatal(err)
		}
		if c.shares {
			wantErrno(t, s.ep.BindSharedRx(srx), fi.Success, "bind")
		}
		for _, err := range []error{s.ep.BindCQ(s.cq, fi.Transmit|fi.Recv), s.ep.BindAV(s.av, 0), s.ep.Enable()} {
			wantErrno(t, err, fi.Success, "enable")
		}
		queue, ep := s.cq.Hot().Flags&hot.CQExclusive != 0, s.ep.base.hot.Flags&hot.EPExclusive != 0
		if queue != c.alone || ep != c.alone {
			t.Errorf("%+v: queue %v, endpoint %v", c, queue, ep)
		}
		s.close()
		wantErrno(t, srx.Close(), fi.Success, "close")
	}
}

func TestOpenCQ(t *testing.T) {
	d := openTestDomain(t, testInfo())
	for _, c := range []struct {
		attr fi.CQAttr
		want fi.Errno
	}{
		{fi.CQAttr{}, fi.Success},
		{fi.CQAttr{Format: fi.CQFormatTagged, Size: 100, WaitObj: fi.WaitFD}, fi.Success},
		{fi.CQAttr{Flags: fi.Affinity, SignalingVector: 1}, fi.Success},
		{fi.CQAttr{SignalingVector: -1}, fi.Success},
		{fi.CQAttr{WaitCond: 99}, fi.Success}, // ignored without a wait object
		{fi.CQAttr{Flags: fi.Affinity, SignalingVector: -1}, fi.EINVAL},
		{fi.CQAttr{Flags: fi.More}, fi.EBADFLAGS},
		{fi.CQAttr{Format: 5}, fi.EINVAL},
		{fi.CQAttr{Format: -1}, fi.EINVAL},
		{fi.CQAttr{WaitObj: 99}, fi.EINVAL},
		{fi.CQAttr{WaitObj: fi.WaitSet}, fi.EINVAL},
		{fi.CQAttr{WaitObj: fi.WaitFD, WaitCond: 2}, fi.EINVAL},
		{fi.CQAttr{Size: 1 << 40}, fi.EINVAL},
	} {
		attr := c.attr
		q, err := d.OpenCQ(&attr, nil)
		if fi.ErrnoOf(err) != c.want {
			t.Errorf("%+v: %v, want %v", c.attr, err, c.want)
		}
		if err != nil {
			continue
		}
		if attr.Format == fi.CQFormatUnspec || attr.Format != q.Format() {
			t.Errorf("%+v: format %d", c.attr, attr.Format)
		}
		wantErrno(t, d.Close(), fi.EBUSY, "close of a domain with a queue")
		wantErrno(t, q.Close(), fi.Success, "close")
	}
	_, err := d.OpenCQ(nil, nil)
	wantErrno(t, err, fi.EINVAL, "nil")
}

func TestOpenCQOptions(t *testing.T) {
	cfg := *config.Default()
	cfg.TxStripes, cfg.MPSCRingSize = 4, 200
	i := testInfo()
	d := openTestDomainWith(t, i, &cfg)
	q, err := d.OpenCQ(&fi.CQAttr{Size: 16}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if h := q.Hot(); h.NRings != 5 || h.Log2Slots != 8 || h.Flags&hot.CQExclusive != 0 {
		t.Errorf("%d rings of 1<<%d, flags %#x", h.NRings, h.Log2Slots, h.Flags)
	}
	wantErrno(t, q.Close(), fi.Success, "close")
	i.Domain.Threading = fi.ThreadDomain
	q, err = openTestDomainWith(t, i, &cfg).OpenCQ(&fi.CQAttr{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if h := q.Hot(); h.NRings != 1 || h.Flags&hot.CQExclusive == 0 {
		t.Errorf("%d rings, flags %#x", h.NRings, h.Flags)
	}
	wantErrno(t, q.Close(), fi.Success, "close")
}

func TestOpenCounter(t *testing.T) {
	d := openTestDomain(t, testInfo())
	for _, c := range []struct {
		attr *fi.CntrAttr
		want fi.Errno
	}{
		{nil, fi.Success},
		{&fi.CntrAttr{WaitObj: fi.WaitFD}, fi.Success},
		{&fi.CntrAttr{Flags: 1}, fi.EBADFLAGS},
		{&fi.CntrAttr{Events: fi.CntrEventsBytes}, fi.Success},
		{&fi.CntrAttr{Events: 2}, fi.ENOSYS},
		{&fi.CntrAttr{WaitObj: fi.WaitSet}, fi.EINVAL},
		{&fi.CntrAttr{WaitObj: 99}, fi.EINVAL},
	} {
		k, err := d.OpenCounter(c.attr, nil)
		if fi.ErrnoOf(err) != c.want {
			t.Errorf("%+v: %v, want %v", c.attr, err, c.want)
		}
		if err != nil {
			continue
		}
		wantErrno(t, d.Close(), fi.EBUSY, "close of a domain with a counter")
		wantErrno(t, k.Close(), fi.Success, "close")
	}
}

func TestOpenPollAndWaitSet(t *testing.T) {
	d := openTestDomain(t, testInfo())
	w, err := d.fabric.OpenWait(&fi.WaitAttr{WaitObj: fi.WaitFD})
	if err != nil {
		t.Fatal(err)
	}
	q, err := d.OpenCQ(&fi.CQAttr{WaitObj: fi.WaitSet}, w)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.OpenPoll()
	if err != nil {
		t.Fatal(err)
	}
	wantErrno(t, p.Add(q, 7), fi.Success, "add")
	wantErrno(t, q.Close(), fi.EBUSY, "close of a polled queue")
	wantErrno(t, w.Close(), fi.EBUSY, "close of a used wait set")
	wantErrno(t, p.Close(), fi.Success, "close poll set")
	wantErrno(t, q.Close(), fi.Success, "close queue")
	wantErrno(t, w.Close(), fi.Success, "close wait set")
	_, err = d.fabric.OpenWait(&fi.WaitAttr{WaitObj: fi.WaitNone})
	wantErrno(t, err, fi.EINVAL, "wait set without wait object")
	_, err = d.fabric.OpenWait(nil)
	wantErrno(t, err, fi.EINVAL, "nil")
	// A wait set that is not asked for does not matter.
	q, err = d.OpenCQ(&fi.CQAttr{}, w)
	if err != nil {
		t.Fatal(err)
	}
	wantErrno(t, q.Close(), fi.Success, "close queue")
}

func TestOpenFabric(t *testing.T) {
	SetConfigLookup(func(string) (string, bool) { return "", false })
	defer SetConfigLookup(nil)
	for _, c := range []struct {
		attr *fi.FabricAttr
		want fi.Errno
	}{
		{nil, fi.EINVAL},
		{&fi.FabricAttr{}, fi.EINVAL},
		{&fi.FabricAttr{Name: "x", ProvName: "tcp"}, fi.ENODEV},
		{&fi.FabricAttr{Name: "x", ProvName: "weft"}, fi.Success},
		{&fi.FabricAttr{Name: "x"}, fi.Success},
	} {
		f, err := OpenFabric(c.attr)
		if fi.ErrnoOf(err) != c.want {
			t.Errorf("%+v: %v, want %v", c.attr, err, c.want)
		}
		if err == nil {
			if f.FabricName() != "x" {
				t.Errorf("%+v is called %q", c.attr, f.FabricName())
			}
			wantErrno(t, f.Close(), fi.Success, "close")
			wantErrno(t, f.Close(), fi.EBADF, "second close")
		}
	}
}

// A bad value fails every call with the same error, and is logged once.
func TestConfigurationError(t *testing.T) {
	lines := logtest.Capture(t, log.Info)
	SetConfigLookup(func(name string) (string, bool) {
		return "lots", name == "FI_WEFT_TX_STRIPES"
	})
	defer SetConfigLookup(nil)
	_, err := GetInfo(fi.Version(1, 17), "", "", 0, nil)
	wantErrno(t, err, fi.EINVAL, "GetInfo")
	_, err = OpenFabric(&fi.FabricAttr{Name: "x"})
	wantErrno(t, err, fi.EINVAL, "OpenFabric")
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "FI_WEFT_TX_STRIPES") {
		t.Errorf("log lines %q", got)
	}
}

func TestUnknownVariableIsLogged(t *testing.T) {
	lines := logtest.Capture(t, log.Info)
	t.Setenv("FI_WEFT_NO_SUCH_THING", "1")
	SetConfigLookup(func(string) (string, bool) { return "", false })
	defer SetConfigLookup(nil)
	for range 2 {
		if _, err := configuration(); err != nil {
			t.Fatal(err)
		}
	}
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], "FI_WEFT_NO_SUCH_THING") {
		t.Errorf("log lines %q", got)
	}
}

// GetInfo names what the process has open, and what it returns can be opened.
func TestGetInfoToObjects(t *testing.T) {
	SetConfigLookup(func(string) (string, bool) { return "", false })
	defer SetConfigLookup(nil)
	get := func(hints *fi.Info) []*fi.Info {
		infos, err := GetInfo(fi.Version(1, 17), "127.0.0.1", "", fi.Source, hints)
		if err != nil || len(infos) == 0 {
			t.Fatalf("%d infos: %v", len(infos), err)
		}
		return infos
	}
	i := get(nil)[0]
	if i.Fabric.Fabric != nil || i.Domain.Domain != nil {
		t.Fatalf("objects %v %v before any is open", i.Fabric.Fabric, i.Domain.Domain)
	}
	f, err := OpenFabric(i.Fabric)
	if err != nil {
		t.Fatal(err)
	}
	if i = get(nil)[0]; i.Fabric.Fabric != f || i.Domain.Domain != nil {
		t.Errorf("objects %v %v", i.Fabric.Fabric, i.Domain.Domain)
	}
	d, err := f.OpenDomain(i)
	if err != nil {
		t.Fatal(err)
	}
	second, err := f.OpenDomain(i)
	if err != nil {
		t.Fatal(err)
	}
	if i = get(nil)[0]; i.Domain.Domain != d {
		t.Errorf("domain %v, want the first opened", i.Domain.Domain)
	}
	hints := &fi.Info{Domain: &fi.DomainAttr{Domain: second}}
	if i = get(hints)[0]; i.Domain.Domain != second || i.Domain.Name != d.DomainName() {
		t.Errorf("domain %v of name %q, want the hinted", i.Domain.Domain, i.Domain.Name)
	}
	wantErrno(t, second.Close(), fi.Success, "close")
	wantErrno(t, d.Close(), fi.Success, "close")
	wantErrno(t, f.Close(), fi.Success, "close")
	if i = get(nil)[0]; i.Fabric.Fabric != nil || i.Domain.Domain != nil {
		t.Errorf("closed objects %v %v", i.Fabric.Fabric, i.Domain.Domain)
	}
}
