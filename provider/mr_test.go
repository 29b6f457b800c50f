package provider

import (
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/log/logtest"
)

func regionAttr(access, key uint64) *fi.MRAttr {
	return &fi.MRAttr{IOV: []fi.IOVec{{Base: 4096, Len: 100}}, Access: access, RequestedKey: key}
}

// Whatever reads warnings only sees why a registration was refused, whatever the reason.
func TestRegMRArguments(t *testing.T) {
	warned := logtest.Capture(t, log.Warn)
	d := openTestDomain(t, testInfo())
	with := func(change func(a *fi.MRAttr)) *fi.MRAttr {
		a := regionAttr(fi.RemoteRead, 5)
		change(a)
		return a
	}
	iov := func(list ...fi.IOVec) *fi.MRAttr { return with(func(a *fi.MRAttr) { a.IOV = list }) }
	for _, c := range []struct {
		what  string
		attr  *fi.MRAttr
		flags uint64
		want  fi.Errno
	}{
		{"plain", regionAttr(fi.Send|fi.Recv|fi.Read|fi.Write|fi.RemoteRead|fi.RemoteWrite, 1), 0, fi.Success},
		{"no rights", regionAttr(0, 1), 0, fi.Success},
		{"whole address space", iov(fi.IOVec{Base: 0, Len: 1<<64 - 1}), 0, fi.Success},
		{"16 parts", iov(make16()...), 0, fi.Success},
		{"17 parts", iov(append(make16(), fi.IOVec{Base: 1, Len: 1})...), 0, fi.EINVAL},
		{"no part", iov(), 0, fi.EINVAL},
		{"empty part", iov(fi.IOVec{Base: 1, Len: 1}, fi.IOVec{Base: 1}), 0, fi.Success},
		{"no bytes", iov(fi.IOVec{Base: 1}), 0, fi.Success},
		{"no bytes nowhere", iov(fi.IOVec{}), 0, fi.Success},
		{"wrapping part", iov(fi.IOVec{Base: 2, Len: 1<<64 - 1}), 0, fi.EINVAL},
		{"no right", regionAttr(fi.RMA|fi.Tagged|1<<60, 1), 0, fi.Success},
		{"offset", with(func(a *fi.MRAttr) { a.Offset = 1 }), 0, fi.Success},
		{"authorisation key too long", with(func(a *fi.MRAttr) { a.AuthKey = make([]byte, info.MaxAuthKey+1) }), 0,
			fi.EINVAL},
		{"authorisation key missing", with(func(a *fi.MRAttr) { a.AuthKeySize = 8 }), 0, fi.EINVAL},
		{"FI_AV_AUTH_KEY", with(func(a *fi.MRAttr) { a.AuthKeySize = fi.AVAuthKey }), 0, fi.EINVAL},
		{"a kind that nothing asked to know", with(func(a *fi.MRAttr) { a.Iface = fi.HMEMCUDA }), 0, fi.Success},
		{"memory of the device only", regionAttr(0, 1), fi.HMEMDeviceOnly, fi.EBADFLAGS},
		{"dma-buf", with(func(a *fi.MRAttr) { a.DMABuf = &fi.DMABuf{} }), fi.MRDMABuf, fi.EBADFLAGS},
		{"rma events", regionAttr(0, 1), fi.RMAEvent, fi.Success},
		{"single use", regionAttr(fi.RemoteRead, 1), fi.MRSingleUse, fi.Success},
		{"persistent", regionAttr(0, 1), fi.RMAPmem, fi.EBADFLAGS},
		{"impossible key", regionAttr(fi.RemoteWrite, fi.KeyNotAvail), 0, fi.EKEYREJECTED},
	} {
		m, err := d.RegMR(c.attr, c.flags)
		if fi.ErrnoOf(err) != c.want {
			t.Errorf("%s: %v, want %v", c.what, err, c.want)
		}
		seen := warned()
		if (err != nil) != (len(seen) == 1) || err != nil && !strings.Contains(seen[0], "register memory") {
			t.Errorf("%s: %v, warnings %q", c.what, err, seen)
		}
		if err != nil {
			continue
		}
		if m.Key() != c.attr.RequestedKey || m.Desc() == 0 {
			t.Errorf("%s: key %d, descriptor %d", c.what, m.Key(), m.Desc())
		}
		wantErrno(t, d.Close(), fi.EBUSY, "close of a domain with a region")
		wantErrno(t, m.Close(), fi.Success, "close")
		wantErrno(t, m.Close(), fi.EBADF, "second close")
	}
	_, err := d.RegMR(nil, 0)
	wantErrno(t, err, fi.EINVAL, "nil")
}

func make16() (list []fi.IOVec) {
	for i := range uintptr(16) {
		list = append(list, fi.IOVec{Base: i << 12, Len: 1})
	}
	return list
}

// What reads warnings only sees why a call was refused.
func TestRefusalIsWarning(t *testing.T) {
	warned := logtest.Capture(t, log.Warn)
	d := openTestDomain(t, testInfo())
	_, err := d.RegMR(&fi.MRAttr{}, 0)
	wantErrno(t, err, fi.EINVAL, "no part")
	_, err = d.OpenCounter(&fi.CntrAttr{Flags: 1}, nil)
	wantErrno(t, err, fi.EBADFLAGS, "counter")
	seen := warned()
	if len(seen) != 2 || !strings.Contains(seen[0], "0 parts") || !strings.Contains(seen[1], "counter flags 0x1") {
		t.Errorf("%q", seen)
	}
}

// A key is used once among regions that peers may access.
func TestRegMRKeys(t *testing.T) {
	d := openTestDomain(t, testInfo())
	first, err := d.RegMR(regionAttr(fi.RemoteWrite, 0), 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.RegMR(regionAttr(fi.RemoteRead, 0), 0)
	wantErrno(t, err, fi.ENOKEY, "key in use")
	local, err := d.RegMR(regionAttr(fi.Send, 0), 0)
	if err != nil {
		t.Fatalf("a region without remote rights: %v", err)
	}
	if first.Desc() == local.Desc() {
		t.Error("two regions have one descriptor")
	}
	wantErrno(t, local.Close(), fi.Success, "close")
	_, err = d.RegMR(regionAttr(fi.RemoteRead, 0), 0)
	wantErrno(t, err, fi.ENOKEY, "key in use after closing another region with it")
	wantErrno(t, first.Close(), fi.Success, "close")
	again, err := d.RegMR(regionAttr(fi.RemoteRead, 0), 0)
	if err != nil {
		t.Fatalf("key of a closed region: %v", err)
	}
	wantErrno(t, again.Close(), fi.Success, "close")
}

// Under FI_MR_BASIC the provider chooses, and the requested key is ignored.
func TestRegMRProviderKeys(t *testing.T) {
	i := testInfo()
	i.Domain.MRMode = fi.MRBasic
	d := openTestDomain(t, i)
	var mu sync.Mutex
	keys := map[uint64]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				m, err := d.RegMR(regionAttr(fi.RemoteWrite, 7), 0)
				if err != nil {
					t.Errorf("register: %v", err)
					return
				}
				mu.Lock()
				if keys[m.Key()] || m.Key() == fi.KeyNotAvail || m.Key() < 1<<16 {
					t.Errorf("key %#x", m.Key())
				}
				keys[m.Key()] = true
				mu.Unlock()
				defer m.Close()
			}
		})
	}
	wg.Wait()
	for _, m := range d.regions.All() {
		t.Errorf("region %#x is left", m.Key())
	}
}

// TestMRCounterAlone: readers of a region's counter make progress of endpoints, which they may not where one thread at
// a time uses those.
func TestMRCounterAlone(t *testing.T) {
	for caps, want := range map[uint64]fi.Errno{0: fi.EINVAL, fi.RMAEvent: fi.Success} {
		i := testInfo()
		i.Domain.Threading = fi.ThreadCompletion
		i.Caps |= caps
		d := openTestDomain(t, i)
		m, err := d.RegMR(regionAttr(fi.RemoteWrite, 0), 0)
		if err != nil {
			t.Fatal(err)
		}
		c, err := d.OpenCounter(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantErrno(t, m.BindCounter(c, fi.RemoteWrite), want, "bind a counter to a region")
		for _, o := range []interface{ Close() error }{m, c} {
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestMRSecondCounter: readers of a counter that a region has refused make no progress of the domain's endpoints.
func TestMRSecondCounter(t *testing.T) {
	i := testInfo()
	i.Caps |= fi.RMAEvent
	d := openTestDomain(t, i)
	m, err := d.RegMR(regionAttr(fi.RemoteWrite, 0), 0)
	if err != nil {
		t.Fatal(err)
	}
	closers := []interface{ Close() error }{m}
	for n, want := range []fi.Errno{fi.Success, fi.EINVAL} {
		c, err := d.OpenCounter(&fi.CntrAttr{WaitObj: fi.WaitFD}, nil)
		if err != nil {
			t.Fatal(err)
		}
		closers = append(closers, c)
		wantErrno(t, m.BindCounter(c, fi.RemoteWrite), want, "bind a counter to a region")
		if err := c.TryWait(); err != nil {
			t.Fatal(err)
		}
		d.drives.Wake()
		fds := []unix.PollFd{{Fd: int32(c.FD()), Events: unix.POLLIN}}
		if woken, err := unix.Poll(fds, 0); err != nil || (woken == 1) != (want == fi.Success) {
			t.Errorf("counter %d: %d descriptors readable, %v", n, woken, err)
		}
	}
	for _, o := range closers {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestMRBind(t *testing.T) {
	d := openTestDomain(t, testInfo())
	m, err := d.RegMR(regionAttr(fi.RemoteWrite, 0), 0)
	if err != nil {
		t.Fatal(err)
	}
	wantErrno(t, m.BindCounter(nil, fi.RemoteWrite), fi.EDOMAIN, "bind a counter of another domain")
	wantErrno(t, m.BindCounter(nil, fi.Send), fi.EBADFLAGS, "bind counter with wrong flags")
	wantErrno(t, m.BindEP(&Endpoint{}, 0), fi.EDOMAIN, "bind an endpoint of another domain")
	wantErrno(t, m.BindEP(nil, 1), fi.EBADFLAGS, "bind endpoint with flags")
	wantErrno(t, m.Enable(), fi.Success, "enable")
	wantErrno(t, m.Close(), fi.Success, "close")
}
