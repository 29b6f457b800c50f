package verbs

import (
	"os"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/hwtest"
	"github.com/weft-fabric/weft/internal/memwatch"
)

// shared is the memory domain that the tests of this process share.
var shared struct {
	once sync.Once
	d    *MemoryDomain
	err  error
}

// domain opens the device, or skips the test where there is none. Where
// WEFT_TEST_RDMA is set a device must be there.
func domain(t testing.TB) *MemoryDomain {
	t.Helper()
	shared.once.Do(func() {
		shared.d, shared.err = OpenDomain(DomainConfig{GIDIndex: GIDAuto, Logf: func(f string, a ...any) {
			t.Logf(f, a...)
		}})
	})
	if shared.err != nil {
		if os.Getenv("WEFT_TEST_RDMA") != "" {
			t.Fatal(shared.err)
		}
		t.Skipf("no RDMA device here: %v; make test-rdma runs this in a virtual machine", shared.err)
	}
	return shared.d
}

// open opens an interface whose Connect waits for the peer.
func open(t testing.TB, c Config) *Iface {
	t.Helper()
	d := domain(t)
	if c.ConnectWait == 0 {
		c.ConnectWait = 2 * time.Second
	}
	c.Logf, c.Direct = t.Logf, direct
	i, err := d.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// TestCache: kept registrations and memory that comes and goes.
func TestCache(t *testing.T) {
	domain(t)
	w, err := memwatch.Start()
	if err != nil {
		t.Skipf("the kernel does not report changes: %v", err)
	}
	hwtest.RunCache(t, func(t testing.TB) hw.Iface { return open(t, Config{}) }, w)
}

func TestConformance(t *testing.T) {
	for name, c := range map[string]Config{
		"default":     {},
		"small":       {RxBuffers: 16, BounceCount: 4, BounceBytes: 256, Depth: 16},
		"stripes":     {RxBuffers: 128, BounceCount: 16, Stripes: 3, Stamps: true},
		"eager rings": {RxBuffers: 128, BounceCount: 16, EagerPeers: 2},
		"callbacks":   {EagerPeers: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "default" && name != "eager rings" {
				t.Skip("left out of the short form")
			}
			run := func(t *testing.T) { hwtest.Run(t, func(t testing.TB) hw.Iface { return open(t, c) }) }
			if name == "callbacks" {
				byCallbacks(t, run)
				return
			}
			run(t)
		})
	}
}
