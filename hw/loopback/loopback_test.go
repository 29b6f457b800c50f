package loopback

import (
	"encoding/binary"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/hwtest"
)

var nextPort atomic.Uint32

// testAddress is an address that no other test of this process has.
func testAddress() []byte {
	n := nextPort.Add(1)
	a := make([]byte, sizeIPv4)
	binary.NativeEndian.PutUint16(a, unix.AF_INET)
	binary.BigEndian.PutUint16(a[2:], uint16(n))
	binary.BigEndian.PutUint32(a[4:], 127<<24|uint32(unix.Getpid())&0xff<<16|n>>16+1)
	return a
}

func open(t testing.TB, c Config) *Iface {
	t.Helper()
	if c.Logf == nil {
		c.Logf = t.Logf
	}
	i, err := Open(testAddress(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return i
}

func TestConformance(t *testing.T) {
	for name, c := range map[string]Config{
		"default": {},
		"tiny":    {RingLog2: 1, AttachCount: 64, BounceCount: 1, BounceBytes: 1},
		"stripes": {RingLog2: 4, Stripes: 8, BounceCount: 13, BounceBytes: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			c.Dir = shmDir(t)
			hwtest.Run(t, func(t testing.TB) hw.Iface {
				c := c
				c.KeyCount, c.Memory = 64, NewMemoryDomain()
				return open(t, c)
			})
		})
	}
}
