package tokens

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/names"
	"github.com/weft-fabric/weft/provider/token"
)

// endpoint opens tokens. Its fields are changed by the test while no call is under way.
type endpoint struct {
	cfg      config.Config
	devices  []Device
	keys     []hw.Key
	known    map[names.Name]fi.Addr
	closed   bool
	users    atomic.Int64
	ordered  bool
	apart    bool
	attaches bool
	maps     bool
	path     Path
	up       bool
}

var errClosed = errors.New("closed")

func newEndpoint() (e *endpoint, o *Opened) {
	e = &endpoint{cfg: *config.Default(), known: map[names.Name]fi.Addr{}, attaches: true, maps: true}
	o = new(Opened)
	o.Init(e)
	return e, o
}

func (e *endpoint) Acquire() error {
	if e.closed {
		return errClosed
	}
	e.users.Add(1)
	return nil
}

func (e *endpoint) Know(a peers.Address) (fi.Addr, error) {
	n, context := a.Name, a.Number
	if n.Port == 0 || context > 1 {
		return fi.AddrNotAvail, fi.EINVAL
	}
	addr, known := e.known[n]
	if !known {
		addr = fi.Addr(len(e.known))
		e.known[n] = addr
	}
	return addr | fi.Addr(context)<<63, nil
}

func (e *endpoint) Release()                  { e.users.Add(-1) }
func (e *endpoint) Keys() []hw.Key            { return e.keys }
func (e *endpoint) Config() *config.Config    { return &e.cfg }
func (e *endpoint) Devices() []Device         { return e.devices }
func (e *endpoint) Ordered() bool             { return e.ordered }
func (e *endpoint) Apart() bool               { return e.apart }
func (e *endpoint) Attaches() bool            { return e.attaches }
func (e *endpoint) Maps() bool                { return e.maps }
func (e *endpoint) Path(fi.Addr) (Path, bool) { return e.path, e.up }

// device is an interface on a device whose keys have 16 bytes: two numbers.
type device struct {
	hw.MemoryDomain
	kind byte // first byte of the addresses
}

func (d *device) DeviceAddress() []byte { return []byte{d.kind, 1} }

func (d *device) CheckDevice(b []byte) error {
	if len(b) != 2 || b[0] != d.kind {
		return hw.ErrInvalid
	}
	return nil
}

func (d *device) UnpackKey(b []byte) (hw.RemoteKey, error) {
	if len(b) != 16 {
		return hw.RemoteKey{}, hw.ErrInvalid
	}
	return hw.RemoteKey{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}, nil
}

// KeyRegion: the key's second number is the length of its region, which begins at 4096.
func (d *device) KeyRegion(k hw.RemoteKey) hw.Region {
	return hw.Region{Base: 4096, Len: int(k[1]), Access: hw.RemoteRead | hw.RemoteWrite}
}

// add gives an endpoint a device of a kind, by a transport.
func (e *endpoint) add(kind byte, transport uint32) {
	d := &device{kind: kind}
	e.devices = append(e.devices, Device{d, d, transport})
}

// rail is a key for the interface of a peer's device.
func rail(kind, number byte, key, length uint64) token.RDMA {
	b := binary.LittleEndian.AppendUint64(nil, key)
	return token.RDMA{Address: []byte{kind, number}, Key: binary.LittleEndian.AppendUint64(b, length)}
}

// shares has memory of devices mapped from offset on.
type shares struct {
	offset uint64
	ok     bool
}

func (s shares) Share(uint64, uint64) (token, offset uint64, ok bool) { return 1, s.offset, s.ok }

// plain is a region of host memory.
func plain() Own {
	return Own{
		Owner: peers.Address{Name: owner(7)}, Incarnation: 3, Agent: "agent", Key: 11, Base: 4096, Length: 100,
		Rights: fi.RemoteRead | fi.RemoteWrite, Memory: &hmem.Region{Parts: []fi.IOVec{{Base: 1 << 20, Len: 100}}},
		Shares: shares{},
	}
}

// owner is an endpoint of another process.
func owner(port uint16) names.Name { return names.New(netip.MustParseAddr("10.0.0.1"), port) }

// made makes a token under authorisation keys.
func made(t *testing.T, o Own, keys ...string) Token {
	t.Helper()
	secrets := make([][]byte, len(keys))
	for i, k := range keys {
		secrets[i] = []byte(k)
	}
	packed, err := o.Make(secrets)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}
