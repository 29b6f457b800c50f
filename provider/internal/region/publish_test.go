package region

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/hmem"
)

// memoryDomain is a transport's or a device's: it has the regions that are registered, by the names that they have.
type memoryDomain struct {
	hw.MemoryDomain
	open  []*registered
	full  bool
	lasts bool // keys do
}

type registered struct {
	d *memoryDomain
	r hw.Region
}

func (d *memoryDomain) Register(r hw.Region) (hw.Memory, error) {
	if d.full {
		return nil, hw.ErrNoResource
	}
	m := &registered{d, r}
	d.open = append(d.open, m)
	return m, nil
}

// names are those of the regions.
func (d *memoryDomain) names() (list []uint64) {
	for _, m := range d.open {
		list = append(list, m.r.Name)
	}
	slices.Sort(list)
	return list
}

func (m *registered) Region() hw.Region { return m.r }
func (m *registered) Keep() bool        { return m.d.lasts }

func (m *registered) PackKey(to []byte) []byte { return binary.LittleEndian.AppendUint64(to, m.r.Base) }

func (m *registered) Close() error {
	m.d.open = slices.DeleteFunc(m.d.open, func(o *registered) bool { return o == m })
	return nil
}

// published is a region in a table under key 7, and a publisher that knows it.
func published(t *testing.T, change func(*Region[owner], *Publisher, *memoryDomain)) (*Region[owner], *Publisher,
	*memoryDomain) {
	t.Helper()
	var table Table[owner]
	r := made(t, attr(fi.RemoteRead|fi.RemoteWrite, 4096), 0, Options{Addressed: true})
	d := &memoryDomain{}
	p := &Publisher{Memory: d, Mapped: true, Allocated: true}
	if change != nil {
		change(r, p, d)
	}
	if _, err := table.Add(r, 7, false); err != nil && r.Remote() {
		t.Fatal(err)
	}
	r.Publish(p, 7)
	return r, p, d
}

// direct reports whether the data plane accesses a region by a key.
func direct(r *Region[owner], key uint64) bool {
	if r.table == nil {
		return false
	}
	_, _, refusal := dataplane.Admit(r.table.Word(), key, r.Base, r.Length, hot.KeyDirect)
	return refusal == fi.Success
}

// TestPublish: a region is known by both keys to the transport and the data plane until it is withdrawn, and not known
// again afterwards.
func TestPublish(t *testing.T) {
	r, p, d := published(t, nil)
	alias, _, err := r.table.Alias(r)
	if err != nil {
		t.Fatal(err)
	}
	r.PublishAlias(p, alias)
	names := []uint64{7, alias}
	slices.Sort(names)
	if !slices.Equal(d.names(), names) || !d.open[0].r.Named || d.open[0].r.Len != 4096 {
		t.Fatalf("%+v", d.open)
	}
	if !direct(r, 7) || !direct(r, alias) {
		t.Error("the data plane does not access it")
	}
	r.Withdraw()
	if len(d.open) != 0 || direct(r, 7) || direct(r, alias) {
		t.Error("it is known after it is withdrawn")
	}
	if r.PublishAlias(p, alias); len(d.open) != 0 || direct(r, alias) {
		t.Error("it is known again")
	}
	if key, _ := r.Export(p, d, nil); key != nil || len(d.open) != 0 {
		t.Error("it is given to a device")
	}
}

// TestUnpublished has each reason why a region is not known, and what it is not known to.
func TestUnpublished(t *testing.T) {
	onDevice := func(r *Region[owner]) { r.Memory = hmem.Region{Parts: r.Memory.Parts, Named: r.Memory.Parts} }
	for _, c := range []struct {
		what          string
		change        func(*Region[owner], *Publisher, *memoryDomain)
		known, direct bool
	}{
		{"read only", func(r *Region[owner], _ *Publisher, _ *memoryDomain) { r.Rights = fi.RemoteRead }, true, true},
		{"not for peers", func(r *Region[owner], _ *Publisher, _ *memoryDomain) { r.Rights = fi.Send }, false, false},
		{"for one operation", func(r *Region[owner], _ *Publisher, _ *memoryDomain) { r.Single = true }, false, false},
		{"another key", func(r *Region[owner], _ *Publisher, _ *memoryDomain) { r.Auth = "a" }, false, false},
		{"the domain's key", func(r *Region[owner], p *Publisher, _ *memoryDomain) {
			r.Auth, p.Auth = "a", "a"
		}, true, true},
		{"no transport", func(_ *Region[owner], p *Publisher, _ *memoryDomain) { p.Memory = nil }, false, false},
		{"no room", func(_ *Region[owner], _ *Publisher, d *memoryDomain) { d.full = true }, false, true},
		{"a device's", func(r *Region[owner], _ *Publisher, _ *memoryDomain) { onDevice(r) }, true, false},
		{"a device's that is not mapped", func(r *Region[owner], p *Publisher, _ *memoryDomain) {
			p.Mapped = false
			onDevice(r)
		}, false, false},
	} {
		r, _, d := published(t, c.change)
		if known, direct := len(d.open) == 1, direct(r, 7); known != c.known || direct != c.direct {
			t.Errorf("%s: known %v, to the data plane %v", c.what, known, direct)
		}
	}
}

// TestHide: peers find a device's memory no more, and may be given it anew.
func TestHide(t *testing.T) {
	r, p, d := published(t, func(r *Region[owner], _ *Publisher, _ *memoryDomain) {
		r.Memory.Named = r.Memory.Parts
	})
	if len(d.open) != 1 || !d.open[0].r.Device || d.open[0].r.Addr != nil {
		t.Fatalf("%+v", d.open)
	}
	if r.Hide(); len(d.open) != 0 {
		t.Error("it is known")
	}
	if r.PublishAlias(p, 9); !slices.Equal(d.names(), []uint64{9}) {
		t.Errorf("known by %v", d.names())
	}
}

// TestExport: a device has one registration of a region, until it is taken back, and none of a region that devices may
// not reach.
func TestExport(t *testing.T) {
	r, p, _ := published(t, nil)
	device := &memoryDomain{lasts: true}
	for range 2 {
		key, lasts := r.Export(p, device, []byte{1})
		if want := binary.LittleEndian.AppendUint64([]byte{1}, 1<<16); !slices.Equal(key, want) || !lasts ||
			len(device.open) != 1 {
			t.Fatalf("key %v, lasts %v, %d registrations", key, lasts, len(device.open))
		}
	}
	if r.Unexport(); len(device.open) != 0 || !direct(r, 7) {
		t.Error("it is registered, or not published any more")
	}
	if key, _ := r.Export(p, device, nil); key == nil || len(device.open) != 1 {
		t.Error("it is not registered again")
	}
	r.Unexport()
	device.full = true
	if key, _ := r.Export(p, device, nil); key != nil {
		t.Error("a key of a device without room")
	}
	device.full, p.Allocated = false, false
	if key, _ := r.Export(p, device, nil); key != nil || len(device.open) != 0 {
		t.Error("memory that the application may free is registered")
	}
}
