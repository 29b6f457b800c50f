package udp

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/hwtest"
)

// bound returns a UDP socket bound to a port of its own on the host's loopback
// interface.
func bound(t testing.TB, v6 bool) int {
	t.Helper()
	family, sa := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	if v6 {
		family, sa = unix.AF_INET6, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, sa); err != nil {
		t.Fatal(err)
	}
	return fd
}

// open makes an interface on the host's loopback interface.
func open(t testing.TB, v6 bool, c Config) *Iface {
	t.Helper()
	if c.Logf == nil {
		c.Logf = t.Logf
	}
	if c.Memory == nil {
		c.Memory = NewMemoryDomain()
	}
	i, err := Open(bound(t, v6), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.Close() })
	return i
}

func TestConformance(t *testing.T) {
	for name, c := range map[string]struct {
		Config
		v6, mapped bool
	}{
		"default":  {},
		"ipv6":     {v6: true}, // between hosts: TestHosts
		"stripes":  {Config: Config{Stripes: 4}},
		"key":      {Config: Config{Key: []byte("a secret")}},
		"ethernet": {Config: Config{MaxPacket: 1472}},
		"small":    {Config: Config{Window: minWindow, MaxBcopy: 64, MaxPacket: minPacket, NoGSO: true}},
		"large":    {Config: Config{Window: 1 << 20, MaxBcopy: 1 << 16, Eager: 1 << 16}},
		"mapped":   {mapped: true},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "stripes" && name != "key" {
				t.Skip("the other configurations take long")
			}
			hwtest.Run(t, func(t testing.TB) hw.Iface {
				if c.mapped {
					return openAt(t, mapper(t, c.v6), 70, c.Config)
				}
				return open(t, c.v6, c.Config)
			})
		})
	}
}
