package provider

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/names"
)

// progressHints ask for progress models.
func progressHints(control, data fi.Progress) *fi.Info {
	return &fi.Info{
		Caps: fi.Msg | fi.Tagged, Mode: ^uint64(0), EP: &fi.EPAttr{Type: fi.EPRDM}, Tx: &fi.TxAttr{}, Rx: &fi.RxAttr{},
		Domain: &fi.DomainAttr{ControlProgress: control, DataProgress: data}, Fabric: &fi.FabricAttr{},
	}
}

// waitFor reads one completion without making progress.
func (s *side) waitFor() cq.Entry {
	s.t.Helper()
	e := s.completed()
	s.meet()
	return e
}

// completed is waitFor without the leases of the other sides, which may close meanwhile.
func (s *side) completed() cq.Entry {
	s.t.Helper()
	var buf [1]cq.Entry
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
		if n, _ := s.cq.ReadQuietly(buf[:]); n == 1 {
			return buf[0]
		}
	}
	s.t.Fatalf("no completion without progress\n%s", proxy.State())
	return cq.Entry{}
}

// TestAutomaticProgress sends every size both ways while nothing polls.
func TestAutomaticProgress(t *testing.T) {
	for name, change := range map[string]func(*config.Config){
		"default":      nil,
		"fragments":    func(c *config.Config) { c.UseCMA = config.No },
		"one for each": func(c *config.Config) { c.ProgressEndpoints = 1 },
		"no spin":      func(c *config.Config) { c.ProgressSpin = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			bench := newBench(t, change, progressHints(fi.ProgressAuto, fi.ProgressAuto))
			a, b := bench.side(t), bench.side(t)
			a.know(b)
			b.know(a)
			for i, n := range sizes {
				for _, early := range []bool{true, false} {
					want, got := pattern(n, byte(i)), make([]byte, n)
					post := func() {
						b.recv(RecvArgs{IOV: iovOf(got), Src: b.addr[a], Tag: 9, Context: 1, Tagged: true})
					}
					if early {
						post()
					}
					a.send(SendArgs{IOV: iovOf(want), Dest: a.addr[b], Tag: 9, Context: 2, Tagged: true,
						Flags: fi.DeliveryComplete})
					if !early {
						time.Sleep(2 * time.Millisecond)
						post()
					}
					if e := b.waitFor(); e.Context != 1 || e.Len != uint64(n) || !bytes.Equal(got, want) {
						t.Fatalf("%d bytes: %+v", n, e)
					}
					if e := a.waitFor(); e.Context != 2 {
						t.Fatalf("%d bytes: sent %+v", n, e)
					}
				}
			}
			threads := 1
			if bench.domain.cfg.ProgressEndpoints == 1 {
				threads = 2
			}
			if n := len(bench.domain.threads.list); n != threads {
				t.Errorf("%d threads, want %d", n, threads)
			}
		})
	}
}

// TestAutomaticBesidePolling polls while the thread is there: nothing changes.
func TestAutomaticBesidePolling(t *testing.T) {
	bench := newBench(t, nil, progressHints(fi.ProgressAuto, fi.ProgressAuto))
	a, b := bench.side(t), bench.side(t)
	a.know(b)
	b.know(a)
	for _, early := range []bool{true, false} {
		swap(t, a, b, fi.DeliveryComplete, early)
	}
	for range 20 { // close while it works
		c := bench.side(t)
		a.know(c)
		buf := make([]byte, 100000)
		for range 4 {
			a.send(SendArgs{IOV: iovOf(buf), Dest: a.addr[c], Context: 3, Flags: fi.DeliveryComplete})
		}
		c.close()
	}
}

// TestHybridProgress: the caller's progress matches, the thread copies.
func TestHybridProgress(t *testing.T) {
	bench := newBench(t, nil, progressHints(fi.ProgressAuto, fi.ProgressManual))
	a, b := bench.side(t), bench.side(t)
	a.know(b)
	b.know(a)
	want, got := pattern(32<<20, 1), make([]byte, 32<<20)
	b.recv(RecvArgs{IOV: iovOf(got), Src: b.addr[a], Context: 1})
	a.send(SendArgs{IOV: iovOf(want), Dest: a.addr[b], Context: 2})
	time.Sleep(5 * time.Millisecond)
	if n, _ := b.cq.ReadQuietly(make([]cq.Entry, 1)); n != 0 {
		t.Fatal("matched without the caller")
	}
	b.ep.Progress()
	if e := b.waitFor(); e.Context != 1 || !bytes.Equal(got, want) {
		t.Fatalf("%+v", e)
	}
	a.completion(b)
	swap(t, a, b, 0, true)
	swap(t, a, b, fi.DeliveryComplete, false)
}

// TestNothingIsExclusiveBesideAThread goes through the threading levels.
func TestNothingIsExclusiveBesideAThread(t *testing.T) {
	for _, level := range []fi.Threading{fi.ThreadSafe, fi.ThreadDomain, fi.ThreadCompletion} {
		for _, p := range [][2]fi.Progress{{fi.ProgressAuto, fi.ProgressAuto}, {fi.ProgressAuto, fi.ProgressManual},
			{fi.ProgressManual, fi.ProgressManual}} {
			d := &Domain{info: &fi.Info{Domain: &fi.DomainAttr{Threading: level, ControlProgress: p[0],
				DataProgress: p[1]}}}
			ep, queue := d.exclusive()
			want := level != fi.ThreadSafe && p[0] == fi.ProgressManual
			if ep != want || queue != want || d.exclusiveShared() && p[0] == fi.ProgressAuto {
				t.Errorf("level %d, progress %v: endpoint %v, queue %v, shared %v", level, p, ep, queue,
					d.exclusiveShared())
			}
		}
	}
}

// TestServiceKnowsNames asks the process's own service for its endpoints.
func TestServiceKnowsNames(t *testing.T) {
	bench := newBench(t, nil, progressHints(fi.ProgressAuto, fi.ProgressAuto))
	a, b := bench.side(t), bench.side(t)
	c, err := proxy.Dial(proxy.OwnAddress("service"), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list := func() map[string]bool {
		body, err := c.Call(proxy.KindName, nil)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for len(body) > 0 {
			n := int(body[0])
			name, err := names.FromSockaddr(body[1 : 1+n])
			if err != nil {
				t.Fatal(err)
			}
			found[fmt.Sprint(name)] = true
			body = body[1+n:]
		}
		return found
	}
	if l := list(); len(l) != 2 || !l[fmt.Sprint(a.ep.base.name)] || !l[fmt.Sprint(b.ep.base.name)] {
		t.Errorf("names %v", l)
	}
	text, err := c.Call(proxy.KindState, nil)
	if err != nil || !strings.Contains(string(text), "weft-progress: engine endpoint "+fmt.Sprint(a.ep.base.name)) {
		t.Errorf("state %q: %v", text, err)
	}
	a.close()
	if l := list(); len(l) != 1 {
		t.Errorf("names after a close: %v", l)
	}
}

// TestReserve: while an endpoint with a progress thread is reserved its owner makes all progress, and
// as soon as it is not any longer the thread does.
func TestReserve(t *testing.T) {
	bench := newBench(t, func(c *config.Config) { c.ProgressWatch = time.Second },
		progressHints(fi.ProgressAuto, fi.ProgressAuto))
	a, b := bench.side(t), bench.side(t)
	a.know(b)
	b.know(a)
	for range 5 {
		for _, on := range []bool{true, true, false} {
			if err := Reserve(b.ep, on); err != nil {
				t.Fatal(err)
			}
		}
		want, got := pattern(8, 3), make([]byte, 8)
		// A batch that the thread began before it was notified may take one message, however late it gets a processor.
		for try := 0; ; try++ {
			b.recv(RecvArgs{IOV: iovOf(got), Src: b.addr[a], Tag: 9, Context: 1, Tagged: true})
			a.send(SendArgs{IOV: iovOf(want), Dest: a.addr[b], Tag: 9, Context: 2, Tagged: true})
			time.Sleep(20 * time.Millisecond)
			if n, _ := b.cq.ReadQuietly(make([]cq.Entry, 1)); n == 0 {
				break
			}
			if try == 1 {
				t.Fatal("two messages arrived without their owner's progress")
			}
			a.waitFor()
			clear(got)
		}
		began := time.Now()
		if err := Reserve(b.ep, false); err != nil {
			t.Fatal(err)
		}
		wantErrno(t, Reserve(b.ep, false), fi.EINVAL, "giving back what is not reserved")
		if b.waitFor(); !bytes.Equal(got, want) {
			t.Fatal("wrong bytes")
		}
		t.Logf("taken over in %v", time.Since(began))
		a.waitFor()
	}
}
