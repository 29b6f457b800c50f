package matched

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// memoryDevice is a device with regions; the test gives its answers.
type memoryDevice struct {
	device
	exposed   []hw.MatchRegion
	withdrawn []hw.MatchID
	transfers []hw.MatchTransfer
	injected  [][]byte
	busy      int   // how many commands about regions find no room
	refuse    error // what the next answers say
	second    error // the same about entries for writes with data
	silent    bool  // there are none
	mute      bool  // there are none to withdrawals
	answers   []hw.MatchEvent
	shared    int // operations with a shared context under way, to whatever peer
}

func (d *memoryDevice) MaxKey() uint64 { return 1<<32 - 1 }

func (d *memoryDevice) KeyValid(key uint64, data bool) bool {
	return key <= d.MaxKey() && !(data && key == 66)
}

func (d *memoryDevice) SharedUnderway(hw.MatchAddress) bool { return d.shared > 0 }

func (d *memoryDevice) room() error {
	if d.busy > 0 {
		d.busy--
		return hw.ErrNoResource
	}
	return nil
}

func (d *memoryDevice) Expose(r *hw.MatchRegion) (hw.MatchID, error) {
	if err := d.room(); err != nil {
		return 0, err
	}
	if r.Choose {
		r.Key = 1000
	}
	d.exposed = append(d.exposed, *r)
	err := d.refuse
	if r.Notify && err == nil {
		err = d.second
	}
	d.answers = append(d.answers, hw.MatchEvent{Kind: hw.MatchExposed, Context: r.Context, Err: err})
	return hw.MatchID(len(d.exposed)), d.err
}

func (d *memoryDevice) Withdraw(id hw.MatchID) error {
	if err := d.room(); err != nil {
		return err
	}
	d.withdrawn = append(d.withdrawn, id)
	if d.mute {
		return nil
	}
	d.answers = append(d.answers, hw.MatchEvent{Kind: hw.MatchWithdrawn, Context: d.exposed[id-1].Context,
		Err: d.refuse})
	return d.err
}

// say is an answer about an entry, the last one or one before it, that comes late.
func (d *memoryDevice) say(kind hw.MatchKind, back int, err error) {
	d.on(&hw.MatchEvent{Kind: kind, Context: d.exposed[len(d.exposed)-1-back].Context, Err: err})
}

func (d *memoryDevice) PostTransfer(t *hw.MatchTransfer) error {
	d.transfers = append(d.transfers, *t)
	d.injected = append(d.injected, slices.Clone(t.Inject))
	return d.err
}

func (d *memoryDevice) Progress(int) int {
	answers := d.answers
	if d.answers = nil; d.silent {
		return 0
	}
	for k := range answers {
		d.on(&answers[k])
	}
	return len(answers)
}

func openMemory() (*Endpoint, *memoryDevice, *[]Ended) {
	d := new(memoryDevice)
	e, ended := openOn(d, d)
	return e, d, ended
}

// vector is a piece of memory.
func vector(b []byte) []fi.IOVec {
	return []fi.IOVec{{Base: uintptr(unsafe.Pointer(unsafe.SliceData(b))), Len: uint64(len(b))}}
}

func remoteOf(key, at, n uint64) []fi.RMAIOVec { return []fi.RMAIOVec{{Addr: at, Len: n, Key: key}} }

// TestTransferRefused holds what is refused, after which nothing is under way.
func TestTransferRefused(t *testing.T) {
	e, d, _ := openMemory()
	b := make([]byte, 200)
	for what, c := range map[string]struct {
		t    Transfer
		want fi.Errno
	}{
		"two buffers": {Transfer{IOV: slices.Concat(vector(b), vector(b)), Remote: remoteOf(1, 0, 400)},
			fi.EINVAL},
		"no remote buffer":             {Transfer{IOV: vector(b)}, fi.EINVAL},
		"two remote buffers":           {Transfer{Remote: make([]fi.RMAIOVec, 2)}, fi.EINVAL},
		"another length":               {Transfer{IOV: vector(b), Remote: remoteOf(1, 0, 199)}, fi.EINVAL},
		"a buffer at 0":                {Transfer{IOV: []fi.IOVec{{Len: 8}}, Remote: remoteOf(1, 0, 8)}, fi.EINVAL},
		"a long key":                   {Transfer{Remote: remoteOf(1<<32, 0, 0)}, fi.EKEYREJECTED},
		"a key of no writes with data": {Transfer{Remote: remoteOf(66, 0, 0), HasData: true}, fi.EINVAL},
		"a read with data": {Transfer{Remote: remoteOf(1, 0, 0), Read: true, Flags: fi.RemoteCQData},
			fi.EBADFLAGS},
		"an injected read": {Transfer{Remote: remoteOf(1, 0, 0), Read: true, Flags: fi.Inject}, fi.EBADFLAGS},
		"injected, too long": {Transfer{IOV: vector(b), Remote: remoteOf(1, 0, 200), Inject: true},
			fi.EMSGSIZE},
		"FI_INJECT, as well": {Transfer{IOV: vector(b), Remote: remoteOf(1, 0, 200), Flags: fi.Inject},
			fi.EMSGSIZE},
		"too long": {Transfer{IOV: []fi.IOVec{{Base: 1, Len: 1<<20 + 1}}, Remote: remoteOf(1, 0, 1<<20+1),
			Read: true},
			fi.EMSGSIZE},
		"no such peer": {Transfer{Remote: remoteOf(1, 0, 0), Dest: 4}, fi.EINVAL},
	} {
		if err := e.Transfer(&c.t); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	if len(d.transfers) != 0 || e.Room() != 4 {
		t.Errorf("%d reached the device, room for %d", len(d.transfers), e.Room())
	}
	for _, c := range []struct{ device, want error }{
		{hw.ErrNoResource, fi.EAGAIN}, {hw.ErrInvalid, fi.EINVAL}, {hw.ErrTooLong, fi.EMSGSIZE},
	} {
		d.err = c.device
		if err := e.Transfer(&Transfer{Remote: remoteOf(1, 0, 0)}); !errors.Is(err, c.want) || e.Room() != 4 {
			t.Errorf("the device says %v: %v, room for %d", c.device, err, e.Room())
		}
	}
	plain, _, _ := opened()
	if err := plain.Transfer(&Transfer{Remote: remoteOf(1, 0, 0)}); !errors.Is(err, fi.EOPNOTSUPP) {
		t.Errorf("a device without regions: %v", err)
	}
	if _, err := plain.Expose(&RegionAttr{Access: hw.RemoteRead}); !errors.Is(err, fi.EOPNOTSUPP) ||
		plain.MaxKey() != 0 {
		t.Errorf("a region of such a device: %v", err)
	}
}

// TestTransfers posts writes and reads of each kind and has them end.
func TestTransfers(t *testing.T) {
	e, d, ended := openMemory()
	b := []byte("written")
	for k, c := range []struct {
		t    Transfer
		want hw.MatchTransfer
		bits uint64 // of the completion
		err  error  // of the device
		says fi.Errno
	}{
		{Transfer{IOV: vector(b), Remote: remoteOf(5, 9, 7), Dest: 1},
			hw.MatchTransfer{To: 11, Key: 5, Offset: 9, Inject: b}, fi.RMA | fi.Write, nil, fi.Success},
		{Transfer{IOV: vector(b), Remote: remoteOf(5, 9, 7), Inject: true, Data: 3, HasData: true},
			hw.MatchTransfer{To: 10, Key: 5, Offset: 9, Inject: b, Data: 3, HasData: true, Ordered: true},
			fi.RMA | fi.Write,
			hw.ErrKey, fi.EIO},
		{Transfer{Remote: remoteOf(5, 0, 0), Flags: fi.RemoteCQData | fi.DeliveryComplete | fi.More, Data: 4},
			hw.MatchTransfer{To: 10, Key: 5, Data: 4, HasData: true, Delivered: true, More: true},
			fi.RMA | fi.Write,
			hw.ErrPeerDead, fi.ECONNRESET},
		{Transfer{Remote: remoteOf(0, 0, 0), Read: true, Flags: fi.DeliveryComplete},
			hw.MatchTransfer{To: 10, Get: true, Delivered: true}, fi.RMA | fi.Read, nil, fi.Success},
	} {
		c.t.Context, e.o.Order = uint64(k+1), 0
		if c.want.Ordered {
			e.o.Order = fi.OrderRMAWAW
		}
		if err := e.Transfer(&c.t); err != nil {
			t.Fatal(err)
		}
		got := d.transfers[k]
		context := got.Context
		if !bytes.Equal(d.injected[k], c.want.Inject) {
			t.Errorf("transfer %d injects %q", k, d.injected[k])
		}
		got.Inject, c.want.Inject, got.Context = nil, nil, 0
		if g, w := got, c.want; g.To != w.To || g.Key != w.Key || g.Offset != w.Offset || g.Get != w.Get ||
			g.Data != w.Data ||
			g.HasData != w.HasData || g.Ordered != w.Ordered || g.Delivered != w.Delivered ||
			g.More != w.More {
			t.Errorf("transfer %d: %+v, not %+v", k, got, c.want)
		}
		ev := hw.MatchEvent{Kind: hw.MatchTransferred, Context: context, Last: true, Err: c.err}
		named := uint64(k + 1)
		if ev.Shared = got.Shared; c.t.Inject {
			named, ev.Length = 0, c.t.Remote[0].Len
		}
		d.on(&ev)
		n := (*ended)[k]
		if n.Entry.Flags != c.bits || n.Entry.Context != named || got.Shared != c.t.Inject || n.Err != c.says ||
			n.Inject != c.t.Inject || n.Receive ||
			n.Search || n.Bytes != c.t.Remote[0].Len || n.Flags != c.t.Flags {
			t.Errorf("transfer %d ends: %+v", k, n)
		}
	}
	if e.Room() != 4 {
		t.Errorf("room for %d", e.Room())
	}
}

// TestFence: what is fenced waits for what was posted before to its peer, and for nothing else.
func TestFence(t *testing.T) {
	e, d, _ := openMemory()
	if err := e.Send(&Send{Dest: 1}); err != nil {
		t.Fatal(err)
	}
	if err := e.Receive(&Receive{Src: 1}); err != nil {
		t.Fatal(err)
	}
	fenced := Transfer{Remote: remoteOf(5, 0, 0), Dest: 1, Flags: fi.Fence}
	if err := e.Transfer(&fenced); !errors.Is(err, fi.EAGAIN) || len(d.transfers) != 0 {
		t.Errorf("behind a send: %v", err)
	}
	if err := e.Send(&Send{Dest: 2, Flags: fi.Fence}); err != nil {
		t.Errorf("to another peer: %v", err)
	}
	d.on(&hw.MatchEvent{Kind: hw.MatchSent, Context: d.sends[0].Context, Last: true})
	if err := e.Transfer(&fenced); err != nil || len(d.transfers) != 1 {
		t.Errorf("when the send has ended: %v", err)
	}
	if err := e.Send(&Send{Dest: 1, Flags: fi.Fence}); !errors.Is(err, fi.EAGAIN) {
		t.Errorf("behind a write: %v", err)
	}
}

// TestRegionChosen: the device chooses the key, once, and what peers write is counted.
func TestRegionChosen(t *testing.T) {
	e, d, ended := openMemory()
	count, bytes := 0, uint64(0)
	r, err := e.Expose(&RegionAttr{Access: hw.RemoteWrite, Choose: true, Notify: true,
		Written: func(n uint64) { count++; bytes += n }})
	if err != nil || r.Key() != 1000 || len(d.exposed) != 2 {
		t.Fatalf("%v, %+v", err, d.exposed)
	}
	if a, b := d.exposed[0], d.exposed[1]; !a.Choose || !a.Data || !a.Events || a.Notify || b.Choose || !b.Notify ||
		b.Key != 1000 {
		t.Errorf("%+v and %+v", a, b)
	}
	d.on(&hw.MatchEvent{Kind: hw.MatchWritten, Context: d.exposed[0].Context, Length: 5})
	d.on(&hw.MatchEvent{Kind: hw.MatchWritten, Context: d.exposed[1].Context, Length: 7, HasData: true})
	if count != 2 || bytes != 12 || len(*ended) != 1 {
		t.Errorf("%d writes of %d bytes, %d completions", count, bytes, len(*ended))
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestRegions: a region has an entry, and another for writes with data; both are gone when it is closed.
func TestRegions(t *testing.T) {
	e, d, ended := openMemory()
	d.busy = 3
	r, err := e.Expose(&RegionAttr{Addr: 1000, Key: 7, Access: hw.RemoteRead | hw.RemoteWrite, Notify: true,
		Context: 99})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.exposed) != 2 || d.exposed[0].Notify || !d.exposed[1].Notify || d.exposed[0].Key != 7 ||
		d.exposed[1].Key != 7 ||
		d.exposed[0].Access != hw.RemoteRead|hw.RemoteWrite || d.exposed[1].Access != hw.RemoteWrite {
		t.Errorf("exposed %+v", d.exposed)
	}
	written := hw.MatchEvent{Kind: hw.MatchWritten, Context: d.exposed[1].Context, From: 12, Data: 5, HasData: true,
		Length: 8,
		Offset: 24}
	d.on(&written)
	if len(*ended) != 1 {
		t.Fatalf("%+v", *ended)
	}
	n := (*ended)[0]
	if n.Entry.Flags != fi.RMA|fi.RemoteWrite|fi.RemoteCQData || n.Entry.Context != 99 || n.Entry.Data != 5 ||
		n.Entry.Len != 8 ||
		n.Entry.Buf != 1024 || n.Entry.Src != 2 || n.Err != fi.Success || n.Receive {
		t.Errorf("%+v", n)
	}
	d.refuse = hw.ErrInvalid
	if err := r.Close(); !errors.Is(err, fi.EINVAL) {
		t.Errorf("the device refuses: %v", err)
	}
	d.refuse, d.busy = nil, 2
	if err := r.Close(); err != nil || len(d.withdrawn) != 3 {
		t.Errorf("%v, withdrawn %v", err, d.withdrawn)
	}
	d.on(&written) // of an entry that is gone
	if len(*ended) != 1 {
		t.Errorf("%+v", *ended)
	}

	for what, c := range map[string]struct {
		attr RegionAttr
		want int
	}{"reads": {RegionAttr{Access: hw.RemoteRead, Notify: true}, 1}, "writes": {RegionAttr{Access: hw.RemoteWrite},
		1}} {
		d.exposed, d.withdrawn = nil, nil
		r, err := e.Expose(&c.attr)
		if err != nil || len(d.exposed) != c.want {
			t.Errorf("%s: %v, exposed %+v", what, err, d.exposed)
			continue
		}
		if err := r.Close(); err != nil || len(d.withdrawn) != c.want {
			t.Errorf("%s: %v, withdrawn %v", what, err, d.withdrawn)
		}
	}
}

// TestRegionsRefused: what the device has no room for, refuses or does not answer is no region.
func TestRegionsRefused(t *testing.T) {
	e, d, _ := openMemory()
	a := RegionAttr{Key: 7, Access: hw.RemoteRead | hw.RemoteWrite, Notify: true}
	d.err = hw.ErrInvalid
	if _, err := e.Expose(&a); !errors.Is(err, fi.EINVAL) {
		t.Errorf("refused at once: %v", err)
	}
	d.err, d.refuse = nil, hw.ErrNoResource
	if _, err := e.Expose(&a); !errors.Is(err, fi.ENOSPC) {
		t.Errorf("no room: %v", err)
	}
	if n := len(e.regions.by); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// registration is a registration that knows whether it has ended.
type registration struct {
	hw.Memory
	ended int
}

func (m *registration) Close() error {
	m.ended++
	return nil
}

// TestRegionsKept: memory stays registered as long as the device may have an entry of it, whatever Expose has said, and
// the registration ends once.
func TestRegionsKept(t *testing.T) {
	e, d, _ := openMemory()
	expose := func(what string, device func(), want error) (*Region, *registration) {
		m := new(registration)
		a := RegionAttr{Memory: m, Key: 7, Access: hw.RemoteRead | hw.RemoteWrite, Notify: true}
		device()
		r, err := e.Expose(&a)
		if !errors.Is(err, want) {
			t.Fatalf("%s: %v, want %v", what, err, want)
		}
		return r, m
	}
	closed := func(what string, r *Region, m *registration, withdrawn int) {
		t.Helper()
		if m.ended != 0 {
			t.Fatalf("%s: the registration has ended", what)
		}
		d.second, d.silent, d.mute = nil, false, false
		before := len(d.withdrawn)
		if err := r.Close(); err != nil || m.ended != 1 {
			t.Errorf("%s: close: %v, the registration has ended %d times", what, err, m.ended)
		}
		if n := len(d.withdrawn) - before; n != withdrawn || len(e.regions.by) != 0 {
			t.Errorf("%s: %d entries taken away, not %d, %d are left", what, n, withdrawn, len(e.regions.by))
		}
	}

	for what, device := range map[string]func(){
		"refused at once":           func() { d.err = hw.ErrInvalid },
		"refused":                   func() { d.refuse = hw.ErrInvalid },
		"never posted":              func() { d.err = hw.ErrNoResource },
		"the device has no regions": func() { e.memory = nil },
	} {
		m := new(registration)
		device()
		if r, err := e.Expose(&RegionAttr{Memory: m, Access: hw.RemoteRead}); err == nil || r != nil || m.ended != 1 {
			t.Errorf("%s: %v, %v, the registration has ended %d times", what, r, err, m.ended)
		}
		d.err, d.refuse, e.memory = nil, nil, d
	}

	r, m := expose("no answer", func() { d.silent = true }, fi.ETIMEDOUT)
	d.say(hw.MatchExposed, 0, hw.ErrNoResource)
	closed("no answer, then refused", r, m, 0)

	r, m = expose("no answer", func() { d.silent = true }, fi.ETIMEDOUT)
	d.say(hw.MatchExposed, 0, nil)
	closed("no answer, then exposed", r, m, 1)

	// The first entry is there, the second is refused, and the first stays for now.
	r, m = expose("the second", func() { d.mute, d.second = true, hw.ErrNoResource }, fi.ENOSPC)
	d.say(hw.MatchWithdrawn, 1, nil)
	closed("a withdrawal that is answered late", r, m, 0)
	r, m = expose("the second", func() { d.mute, d.second = true, hw.ErrNoResource }, fi.ENOSPC)
	d.say(hw.MatchWithdrawn, 1, hw.ErrInvalid)
	closed("a withdrawal that is refused late", r, m, 1)

	r, m = expose("all well", func() {}, nil)
	closed("all well", r, m, 2)
}

// atomicDevice is one with atomic operations, as far as the test says.
type atomicDevice struct {
	memoryDevice
	ops []hw.MatchAtomic
}

func (d *atomicDevice) AtomicValid(op hw.MatchOp, _ hw.MatchType, fetch bool) bool {
	return op == hw.MatchSum || op == hw.MatchSwap && fetch || op == hw.MatchRead && fetch
}

func (d *atomicDevice) PostAtomic(a *hw.MatchAtomic) error {
	d.ops = append(d.ops, *a)
	return d.err
}

// TestAtomics posts operations of each kind, has them end, and refuses what is none.
func TestAtomics(t *testing.T) {
	d := new(atomicDevice)
	e, ended := openOn(d, d)
	e.o.Order = fi.OrderAtomicWAW
	operand, compare, result := []byte("operands"), []byte("compares"), make([]byte, 8)
	base := Atomic{Op: hw.MatchSum, Type: hw.MatchUint64, Size: 8, Operand: vector(operand), Remote: remoteOf(5, 16,
		8),
		Dest: 2, Flags: fi.DeliveryComplete | fi.More, Context: 7, Inject: true}
	fetch, swap, read := base, base, base
	fetch.Fetch, fetch.Result = true, vector(result)
	swap.Op, swap.Fetch, swap.Result, swap.Compares, swap.Compare = hw.MatchSwap, true, vector(result), true,
		vector(compare)
	read.Op, read.Fetch, read.Result, read.Operand = hw.MatchRead, true, vector(result), nil
	for k, a := range []Atomic{base, fetch, swap, read} {
		*ended, d.ops = nil, nil
		clear(result)
		if err := e.Atomic(&a); err != nil {
			t.Fatal(err)
		}
		o := d.ops[0]
		if o.To != 12 || o.Key != 5 || o.Offset != 16 || o.Op != a.Op || o.Type != a.Type ||
			o.Fetch != a.Fetch || !o.Ordered ||
			!o.Delivered || !o.More || k < 3 != (string(o.Operand[:8]) == "operands") ||
			k == 2 != (string(o.Compare[:8]) == "compares") {
			t.Errorf("operation %d: %+v", k, o)
		}
		ev := hw.MatchEvent{Kind: hw.MatchTransferred, Context: o.Context, Last: true}
		copy(ev.Fetched[:], "what was, and more")
		named := uint64(7)
		if ev.Shared = o.Shared; ev.Shared {
			named, ev.Length = 0, 8
		}
		d.on(&ev)
		n := (*ended)[0]
		bits := map[bool]uint64{false: fi.Atomic | fi.Write, true: fi.Atomic | fi.Read}[a.Fetch]
		if n.Entry.Flags != bits || n.Entry.Context != named || o.Shared == a.Fetch || n.Err != fi.Success ||
			n.Bytes != 8 || !n.Inject ||
			n.Receive ||
			a.Fetch != (string(result) == "what was") {
			t.Errorf("operation %d: %+v, result %q", k, n, result)
		}
	}
	clear(result)
	if err := e.Atomic(&fetch); err != nil {
		t.Fatal(err)
	}
	last := d.ops[len(d.ops)-1]
	d.on(&hw.MatchEvent{Kind: hw.MatchTransferred, Context: last.Context, Last: true, Err: hw.ErrInvalid,
		Fetched: [16]byte{1}})
	if n := (*ended)[len(*ended)-1]; n.Err != fi.EIO || result[0] != 0 {
		t.Errorf("a refused operation: %+v, result %q", n, result)
	}

	posted := len(d.ops)
	for what, c := range map[string]struct {
		change func(a *Atomic)
		want   fi.Errno
	}{
		"another operation":    {func(a *Atomic) { a.Op = hw.MatchMin }, fi.EOPNOTSUPP},
		"a search":             {func(a *Atomic) { a.Flags = fi.Peek }, fi.EBADFLAGS},
		"data":                 {func(a *Atomic) { a.Flags = fi.RemoteCQData }, fi.EBADFLAGS},
		"two elements":         {func(a *Atomic) { a.Remote = remoteOf(5, 0, 16) }, fi.EINVAL},
		"no remote element":    {func(a *Atomic) { a.Remote = nil }, fi.EINVAL},
		"a long key":           {func(a *Atomic) { a.Remote = remoteOf(1<<32, 0, 8) }, fi.EKEYREJECTED},
		"a short operand":      {func(a *Atomic) { a.Operand = vector(operand[:4]) }, fi.EINVAL},
		"no comparand":         {func(a *Atomic) { a.Compare = nil }, fi.EINVAL},
		"a result at 0":        {func(a *Atomic) { a.Result = []fi.IOVec{{Len: 8}} }, fi.EINVAL},
		"a peer that is none":  {func(a *Atomic) { a.Dest = 4 }, fi.EINVAL},
		"an element too large": {func(a *Atomic) { a.Size = 17 }, fi.EOPNOTSUPP},
	} {
		a := swap
		c.change(&a)
		if err := e.Atomic(&a); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if err := e.JudgeAtomic(&a); a.Dest != 4 && !errors.Is(err, c.want) {
			t.Errorf("%s, later: %v, want %v", what, err, c.want)
		}
	}
	if err := e.JudgeAtomic(&swap); err != nil {
		t.Errorf("a good one, later: %v", err)
	}
	plain, _, _ := openMemory()
	if err := plain.Atomic(&base); !errors.Is(err, fi.EOPNOTSUPP) {
		t.Errorf("a device without such operations: %v", err)
	}
	if len(d.ops) != posted || e.Room() != 4 {
		t.Errorf("%d operations, room for %d", len(d.ops), e.Room())
	}
}
