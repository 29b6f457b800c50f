package verbs

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
)

var sample = address{ethernet: true, kind: GIDRoCEv2, mtu: 5, gid: [16]byte{10: 255, 11: 255, 12: 10, 13: 77, 15: 1},
	qp: 17, qkey: 5, nonce: 99}

func TestAddressRoundTrip(t *testing.T) {
	b := sample.appendTo(nil)
	got, err := parseAddress(b)
	if err != nil || got != sample || len(b) != addressBytes {
		t.Fatalf("%+v, %v, %d bytes", got, err, len(b))
	}
	for name, damage := range map[string]func(b []byte){
		"magic": func(b []byte) { b[0] = 'x' }, "version": func(b []byte) { b[2]++ },
		"flags": func(b []byte) { b[3] |= 2 },
		"kind":  func(b []byte) { b[4] = 9 }, "mtu 0": func(b []byte) { b[5] = 0 },
		"mtu 6": func(b []byte) { b[5] = 6 },
		"qp 0":  func(b []byte) { clear(b[24:28]) }, "qp of 25 bits": func(b []byte) { b[27] = 1 },
		"nonce": func(b []byte) { clear(b[32:]) }, "gid": func(b []byte) { clear(b[8:24]) },
	} {
		c := bytes.Clone(b)
		damage(c)
		if _, err := parseAddress(c); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzAddress(f *testing.F) {
	f.Add(sample.appendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := parseAddress(b); err == nil && !bytes.Equal(a.appendTo(nil), b) {
			t.Errorf("%x is read as %+v", b, a)
		}
	})
}

var samplePacket = packet{kind: packetHello, flags: flagWant, reads: 16, nonce: 7, from: sample, epoch: 1, qp: 3,
	psn: 4, index: 5, seq: 6}

func FuzzPacket(f *testing.F) {
	f.Add(samplePacket.appendTo(nil))
	for _, k := range []packetType{packetMemory, packetPassive, packetWait, packetBye, packetRefuse, packetLost} {
		p := samplePacket
		p.kind = k
		f.Add(p.appendTo(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePacket(b, 7)
		if err != nil {
			return
		}
		if !bytes.Equal(p.appendTo(nil), b) {
			t.Errorf("%x is read as %+v", b, p)
		}
		if p.nonce != 7 || p.index >= maxPeers && p.kind <= packetPassive ||
			len(p.nameBytes()) > max(maxNameBytes, addressBytes) {
			t.Errorf("accepted %+v", p)
		}
	})
}

func TestPacketOfStranger(t *testing.T) {
	b := samplePacket.appendTo(nil)
	if _, err := parsePacket(b, 7); err != nil {
		t.Error(err)
	}
	if _, err := parsePacket(b, 8); err == nil {
		t.Error("a packet that does not know our number is accepted")
	}
}

func FuzzKey(f *testing.F) {
	m := &Memory{region: hw.Region{Len: 100, Base: 50, Access: allAccess}, addr: 1000, mr: &ibv.MR{RKey: 5}}
	f.Add(m.PackKey(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := unpackKey(b)
		if err != nil {
			return
		}
		r := rand.New(rand.NewPCG(1, uint64(len(b))))
		for range 20 {
			addr, n := r.Uint64(), r.Uint64()>>r.IntN(64)
			at, _, err := remote(k, addr, n, 0)
			if err == nil && (at < k[2] || at+n < at || at+n > k[2]+k[3]) {
				t.Errorf("key %v lets %d bytes at %#x through as %#x", k, n, addr, at)
			}
		}
	})
}

func TestRemote(t *testing.T) {
	m := &Memory{region: hw.Region{Len: 100, Base: 50, Access: hw.RemoteRead}, addr: 1000, mr: &ibv.MR{RKey: 5}}
	k, err := unpackKey(m.PackKey(nil))
	if err != nil {
		t.Fatal(err)
	}
	if at, rkey, err := remote(k, 60, 90, hw.RemoteRead); at != 1010 || rkey != 5 || err != nil {
		t.Errorf("at %d with key %d, %v", at, rkey, err)
	}
	for _, c := range []struct {
		addr, n uint64
		need    hw.Access
	}{{60, 91, hw.RemoteRead}, {49, 1, hw.RemoteRead}, {60, 1, hw.RemoteWrite}, {151, 0, hw.RemoteRead},
		{60, ^uint64(0), hw.RemoteRead}} {
		if _, _, err := remote(k, c.addr, c.n, c.need); !errors.Is(err, hw.ErrKey) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// fakeSysfs makes a GID table.
func fakeSysfs(t *testing.T, entries map[string][3]string) string {
	root := t.TempDir()
	base := filepath.Join(root, "class/infiniband/dev0/ports/1")
	for n, e := range entries {
		for k, dir := range []string{"gids", "gid_attrs/types", "gid_attrs/ndevs"} {
			d := filepath.Join(base, dir)
			if err := errors.Join(os.MkdirAll(d, 0o755), os.WriteFile(filepath.Join(d, n), []byte(e[k]+"\n"),
				0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestChooseGID(t *testing.T) {
	root := fakeSysfs(t, map[string][3]string{
		"0": {"fe80:0000:0000:0000:0000:0000:0000:0001", "IB/RoCE v1", "eth0"},
		"1": {"fe80:0000:0000:0000:0000:0000:0000:0001", "RoCE v2", "eth0"},
		"2": {"0000:0000:0000:0000:0000:ffff:0a4d:0001", "IB/RoCE v1", "eth0"},
		"3": {"0000:0000:0000:0000:0000:ffff:0a4d:0001", "RoCE v2", "eth0"},
		"4": {"0000:0000:0000:0000:0000:ffff:0a4d:0002", "RoCE v2", "elsewhere"},
		"5": {"2001:0db8:0000:0000:0000:0000:0000:0001", "RoCE v2", "eth0"},
		"6": {"0000:0000:0000:0000:0000:0000:0000:0000", "RoCE v2", ""},
		"x": {"2001:0db8:0000:0000:0000:0000:0000:0001", "RoCE v2", "eth0"},
	})
	table := gidTable(root, "dev0", 1)
	if len(table) != 6 {
		t.Fatalf("%d entries: %+v", len(table), table)
	}
	for _, want := range []int{3, 5, 1, 2, 0} { // best first, each taken away in turn
		e, err := chooseGID(table, true, []string{"lo", "eth0"})
		if err != nil || e.index != want {
			t.Fatalf("entry %d, want %d, %v", e.index, want, err)
		}
		for n := range table {
			if table[n].index == want {
				table[n].netdev = "gone"
			}
		}
	}
	if _, err := chooseGID(table, true, []string{"eth0"}); !errors.Is(err, hw.ErrUnreachable) {
		t.Errorf("no entry: %v", err)
	}
	if e, err := chooseGID(table, false, nil); err != nil || e.index != 0 {
		t.Errorf("InfiniBand: entry %d, %v", e.index, err)
	}
}

func TestAckTimeout(t *testing.T) {
	for _, limit := range []time.Duration{time.Millisecond, time.Second, 4 * time.Second, 10 * time.Second, time.Hour} {
		c := Config{PathTimeout: limit}
		code := c.ackTimeout()
		total := time.Duration(4096<<code) * (retries + 1)
		if code < 8 || code > 17 || code > 8 && total > limit/2 {
			t.Errorf("%v: code %d, %v in all", limit, code, total)
		}
	}
}

func TestNoLibrary(t *testing.T) {
	if err := ibv.Load("libweft-absent.so.1"); err != nil && !errors.Is(err, ibv.ErrAbsent) {
		t.Error(err)
	} else if err == nil && os.Getenv("WEFT_TEST_RDMA") == "" {
		t.Log("a library was loaded before")
	}
}

func TestConfigRanges(t *testing.T) {
	a := ibv.DeviceAttr{MaxSRQWR: 1000, MaxCQE: 1000, MaxQPWR: 1000}
	for _, c := range []Config{{RxBuffers: 15}, {RxBuffers: 1001}, {Stripes: -1}, {BounceCount: 1, Stripes: 2},
		{BounceBytes: 255},
		{Depth: 15}, {Depth: 1001}, {Name: make([]byte, 33)}, {PathTimeout: -1}, {EagerPeers: -1}, {EagerPeers: 9}} {
		c = c.withDefaults()
		if err := c.check(a); !errors.Is(err, hw.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	c := Config{}.withDefaults()
	if err := c.check(a); err != nil {
		t.Error(err)
	}
}
