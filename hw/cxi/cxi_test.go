package cxi

import (
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/step"
	"github.com/weft-fabric/weft/hw/hwtest"
	"github.com/weft-fabric/weft/internal/memwatch"
)

// shared is the memory domain that the tests of this process share.
var shared struct {
	once sync.Once
	d    *MemoryDomain
	err  error
}

// turn steps the model in the background, some commands at a time, as long as the process lives.
func turn(library string) error {
	f, err := step.Function(library)
	if err != nil {
		return err
	}
	go func() {
		for r := rand.New(rand.NewPCG(1, 2)); ; {
			if f(1+r.UintN(4)) == 0 {
				time.Sleep(time.Duration(r.UintN(20)) * time.Microsecond)
			}
		}
	}()
	return nil
}

// domain opens the model's NIC.
func domain(t testing.TB) *MemoryDomain {
	t.Helper()
	shared.once.Do(func() {
		shared.d, shared.err = OpenDomain(DomainConfig{Library: library(t)})
		if shared.err == nil && strings.Contains(os.Getenv("CASSINI"), "mode=stepped") {
			shared.err = turn(library(t))
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.d
}

// TestCache: kept registrations and memory that comes and goes.
func TestCache(t *testing.T) {
	w, err := memwatch.Start()
	if err != nil {
		t.Skipf("the kernel does not tell of changes: %v", err)
	}
	hwtest.RunCache(t, func(t testing.TB) hw.Iface { return open(t, Config{}) }, w)
}

// withoutDriver: C drives no interface that open opens (FI_WEFT_DIRECT=no). Set by one test at a time.
var withoutDriver bool

// open opens an interface whose Connect waits for the peer.
func open(t testing.TB, c Config) *Iface {
	t.Helper()
	if c.ConnectWait == 0 {
		c.ConnectWait = 2 * time.Second
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = 100 * time.Millisecond
	}
	c.Logf = t.Logf
	c.Direct = !withoutDriver
	i, err := domain(t).Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestConformance(t *testing.T) {
	for name, c := range map[string]Config{
		"default": {},
		"small":   {RxBuffers: 4, RxBytes: 4096, RxEvents: 64, BounceCount: 4, BounceBytes: 256, Depth: 16, Posted: 32},
		"stripes": {BounceCount: 16, Stripes: 3},
		"runtime": {},
	} {
		t.Run(name, func(t *testing.T) {
			withoutDriver = name == "runtime"
			defer func() { withoutDriver = false }()
			hwtest.Run(t, func(t testing.TB) hw.Iface { return open(t, c) })
		})
	}
}
