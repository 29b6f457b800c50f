package hmem

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/atomics"
)

const (
	bufBase   = 0x7000_0000_0000 // what the application calls the first byte
	bufOffset = 4096
	bufBytes  = 64 << 10
	limit     = 10 * time.Second
)

// register registers a dma-buf, for which a memory file stands, and returns the address of its range. The test closes
// it.
func register(t *testing.T) (b *DMABuf, addr uint64) {
	t.Helper()
	fd, err := unix.MemfdCreate("weft-hmem-test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, bufOffset+bufBytes); err != nil {
		t.Fatal(err)
	}
	b, part, err := Register(&fi.DMABuf{FD: fd, Offset: bufOffset, Len: bufBytes, Base: bufBase}, true)
	if err != nil {
		t.Fatal(err)
	}
	if part.Len != bufBytes || !OnDevice(uint64(part.Base)) || AppAddress(uint64(part.Base)) != bufBase+bufOffset {
		t.Fatalf("registered as %+v, which is %#x", part, AppAddress(uint64(part.Base)))
	}
	return b, uint64(part.Base)
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7+i>>8) ^ seed
	}
	return b
}

// TestCopies has bytes go to a dma-buf, to another one, to plain memory and back, and a word be added to there.
func TestCopies(t *testing.T) {
	defer dmabuf.Pretend()()
	x, from := register(t)
	y, to := register(t)
	data, got := pattern(5000, 1), make([]byte, 5000)
	plain := mem.Address(got)
	if OnDevice(plain) || AnyOnDevice([]fi.IOVec{{Base: uintptr(plain), Len: 1}}) ||
		!AnyOnDevice([]fi.IOVec{{Base: uintptr(plain), Len: 1}, {Base: uintptr(to), Len: 1}}) {
		t.Error("which memory is a device's is not known")
	}
	var batch cuda.Batch
	for i, step := range []func() error{
		func() error { return Store(from+3, data) },
		func() error { return Copy(&batch, to+1, from+3, 5000) },
		func() error { return Load(got, to+1) },
		func() error { clear(got); return Copy(&batch, plain, to+1, 5000) },
		func() error { return Copy(&batch, to+9, plain, 5000) },
		func() error { clear(got); return Load(got, to+9) },
	} {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	if !bytes.Equal(got, data) {
		t.Error("the bytes differ")
	}
	word := binary.LittleEndian.AppendUint64(nil, 40)
	operand := binary.LittleEndian.AppendUint64(nil, 2)
	job := atomics.Job{Op: fi.OpSum, Datatype: fi.Uint64, Count: 1, Operand: unsafe.Pointer(&operand[0])}
	if err := errors.Join(Store(to, word), apply(&job, to, 8), Load(word, to)); err != nil {
		t.Fatal(err)
	}
	if sum := binary.LittleEndian.Uint64(word); sum != 42 {
		t.Errorf("the sum is %d", sum)
	}
	x.Close()
	y.Close()
	if AppAddress(to) != 0 || Store(to, word) == nil || Load(word, to) == nil || Copy(&batch, to, from, 8) == nil ||
		apply(&job, to, 8) == nil {
		t.Error("memory of a dma-buf that is closed is used")
	}
}

// TestRegisterRefuses registers what is no range of a dma-buf.
func TestRegisterRefuses(t *testing.T) {
	undo := dmabuf.Pretend()
	fd, err := unix.MemfdCreate("weft-hmem-test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, 4096); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		d    fi.DMABuf
		want fi.Errno
	}{
		"beyond its end":   {fi.DMABuf{FD: fd, Offset: 1, Len: 4096}, fi.EINVAL},
		"a length too far": {fi.DMABuf{FD: fd, Offset: 1, Len: ^uint64(0)}, fi.EINVAL},
		"empty":            {fi.DMABuf{FD: fd}, fi.EINVAL},
		"no descriptor":    {fi.DMABuf{FD: -1, Len: 1}, fi.EBADF},
	} {
		if _, _, err := Register(&c.d, true); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	undo()
	if _, _, err := Register(&fi.DMABuf{FD: fd, Len: 4096}, true); !errors.Is(err, fi.EINVAL) {
		t.Errorf("a file that is no dma-buf: %v", err)
	}
}

// unused fails the test if something of the process's is left.
func unused(t *testing.T) {
	t.Helper()
	shares.Lock()
	defer shares.Unlock()
	if len(dmabufs.list) != 0 || len(shares.byBase) != 0 || shares.importers != 0 || shares.thread != nil {
		t.Errorf("left: %d mappings, %d allocations, %d importers, thread %v", len(dmabufs.list), len(shares.byBase),
			shares.importers, shares.thread)
	}
}

// TestShared has a process map an allocation by its token, use it, and give it up when the last region goes.
func TestShared(t *testing.T) {
	defer dmabuf.Pretend()()
	b, addr := register(t)
	if _, ok := ExportedAt(addr, 8, limit); ok {
		t.Error("memory without a region is shared")
	}
	first, second := b.Share(limit), b.Share(limit)
	x, ok := ExportedAt(addr, 8, limit)
	if !ok || first != second || x.Base != first.Base() || x.Size != bufOffset+bufBytes || x.Buffer != first.Buffer() {
		t.Fatalf("%+v, %v", x, ok)
	}
	if again, _ := ExportedAt(addr+8, 8, limit); again != x || !x.Has(addr+bufBytes-1, 1) || x.Has(addr+bufBytes-1, 2) {
		t.Errorf("%+v, before %+v", again, x)
	}
	data, got := pattern(3000, 2), make([]byte, 3000)
	var i Importer
	limits := cuda.Limits{Entries: 4, Bytes: 1 << 30}
	a := cuda.Foreign{PID: os.Getpid(), Token: x.Token}
	use, err := i.Acquire(a, limits, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	m, at := use.Mapping().(*Mapping), addr-x.Base
	if m.Size() != x.Size || !m.Writable() {
		t.Errorf("%d bytes, writable %v", m.Size(), m.Writable())
	}
	var batch cuda.Batch
	if err := errors.Join(m.Copy(&batch, mem.Address(data), at, 3000, false), Load(got, addr)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		t.Error("the mapping is of other memory")
	}
	clear(got)
	if err := errors.Join(m.CopyTo(mem.Address(got[:1000]), at, 1000),
		m.Copy(&batch, mem.Address(got[1000:]), at+1000, 2000, true)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		t.Error("the mapping has other bytes")
	}
	use.Release()

	leave([]*Share{first}, limit) // which recalls the mapping
	if _, err := i.Acquire(a, limits, 0, false); err == nil {
		t.Error("memory is mapped by a token that has ended")
	}
	if again, ok := ExportedAt(addr, 8, limit); !ok || again.Token == x.Token {
		t.Errorf("%+v, %v, before %+v", again, ok, x)
	}
	leave([]*Share{second}, limit)
	b.Close()
	i.Leave()
	if err := i.Enter(); !errors.Is(err, fi.EBADF) {
		t.Errorf("an importer that has left: %v", err)
	}
	unused(t)
}

// TestRecalledTogether closes a region of three allocations that others still use: they share one limit.
func TestRecalledTogether(t *testing.T) {
	const limit = 400 * time.Millisecond
	defer dmabuf.Pretend()()
	var i Importer
	var all []*Share
	var end []func()
	for range 3 {
		b, addr := register(t)
		all = append(all, b.Share(limit))
		x, _ := ExportedAt(addr, 8, limit)
		a := cuda.Foreign{PID: os.Getpid(), Token: x.Token}
		use, err := i.Acquire(a, cuda.Limits{Entries: 4, Bytes: 1 << 30}, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		end = append(end, use.Release, b.Close)
	}
	began := time.Now()
	leave(all, limit)
	if took := time.Since(began); took < limit || took >= 3*limit {
		t.Errorf("three allocations took %v, with a limit of %v", took, limit)
	}
	for _, f := range end {
		f()
	}
	i.Leave()
	unused(t)
}

// ready waits until an allocation is fetched, or cannot be.
func ready(t *testing.T, m *Memory, fetched <-chan struct{}) error {
	t.Helper()
	select {
	case <-fetched:
	case <-time.After(time.Minute):
		t.Fatal("the allocation is not fetched")
	}
	is, err := m.Ready()
	if !is {
		t.Error("what is fetched is not ready")
	}
	return err
}

// TestFetch has an allocation be mapped beside what the thread does.
func TestFetch(t *testing.T) {
	defer dmabuf.Pretend()()
	b, addr := register(t)
	s := b.Share(limit)
	x, _ := ExportedAt(addr, 8, limit)
	var i Importer
	limits := cuda.Limits{Entries: 4, Bytes: 1 << 30}
	fetch := func(token uint64) (*Memory, error) {
		fetched := make(chan struct{})
		m := i.Fetch(cuda.Foreign{PID: os.Getpid(), Token: token}, limits, 0, false, func() { close(fetched) })
		return m, ready(t, m, fetched)
	}
	m, err := fetch(x.Token)
	if err != nil {
		t.Fatal(err)
	}
	called := false
	see := func(m *Mapping) error {
		called = m.Size() == x.Size
		return nil
	}
	if !m.Do(see) || !called {
		t.Error("the allocation is not there")
	}
	other, err := fetch(x.Token + 1)
	if err == nil {
		t.Error("an allocation of no token is there")
	}
	other.Drop()
	leave([]*Share{s}, limit)
	if m.Do(see) {
		t.Error("an allocation that was recalled is used")
	}
	m.Drop()

	begun, done := make(chan struct{}), make(chan struct{})
	early := &Memory{}
	go func() {
		<-begun
		early.fetch(&i, cuda.Foreign{PID: os.Getpid(), Token: 1}, limits, 0, false)
		close(done)
	}()
	if is, _ := early.Ready(); is {
		t.Error("ready before it is fetched")
	}
	early.Drop()
	close(begun)
	<-done
	b.Close()
	i.Leave()
	unused(t)
}

// TestAsk asks the own process, which answers as it was said to.
func TestAsk(t *testing.T) {
	Answer(proxy.KindRegion, func(r *proxy.Request) {
		if len(r.Body) == 0 {
			r.Reply(proxy.StatusStale, nil)
			return
		}
		r.Reply(proxy.StatusOK, append(r.Body, '!'))
	})
	if _, err := Ask(os.Getpid(), proxy.KindRegion, nil); err == nil {
		t.Error("a process without descriptor thread answers")
	}
	var i Importer
	if err := i.Enter(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if b, err := Ask(os.Getpid(), proxy.KindRegion, []byte("what")); err != nil || string(b) != "what!" {
			t.Errorf("%q, %v", b, err)
		}
		var s *proxy.StatusError
		if _, err := Ask(os.Getpid(), proxy.KindRegion, nil); !errors.As(err, &s) || s.Status != proxy.StatusStale {
			t.Errorf("%v", err)
		}
	}
	owners.mu.Lock()
	kept := len(owners.list)
	owners.mu.Unlock()
	forgetProcess(os.Getpid())
	if kept != 1 || len(owners.list) != 0 {
		t.Errorf("%d connections, then %d", kept, len(owners.list))
	}
	i.Leave()
	unused(t)
}

// TestAskStopped: a request that its owner does not answer holds up no other, nor the end of what asks owners, and is
// not given up.
func TestAskStopped(t *testing.T) {
	begun := make(chan *proxy.Request, 1)
	Answer(proxy.KindCopy, func(r *proxy.Request) {
		if len(r.Body) == 0 {
			r.Reply(proxy.StatusOK, nil)
			return
		}
		begun <- r
	})
	Answer(proxy.KindRegion, func(r *proxy.Request) { r.Reply(proxy.StatusOK, nil) })
	var i Importer
	if err := i.Enter(); err != nil {
		t.Fatal(err)
	}
	if _, err := Ask(os.Getpid(), proxy.KindCopy, nil); err != nil { // the connection is kept
		t.Fatal(err)
	}
	copied, forgotten := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := Ask(os.Getpid(), proxy.KindCopy, []byte("what"))
		copied <- err
	}()
	r := <-begun
	go func() {
		forgetOwners()
		_, err := Ask(os.Getpid(), proxy.KindRegion, nil)
		forgotten <- err
	}()
	select {
	case err := <-forgotten:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(limit):
		t.Error("the others wait for the owner")
	}
	r.Reply(proxy.StatusOK, nil)
	if err := <-copied; err != nil {
		t.Errorf("the request under way: %v", err)
	}
	if _, err := Ask(os.Getpid(), proxy.KindCopy, nil); err != nil {
		t.Errorf("the next: %v", err)
	}
	i.Leave()
	unused(t)
}

// TestApplyAll performs an operation on plain memory and a device's in one job: operands and results go through the
// pieces in their order. A piece that ends within an element has nothing done, a device that is gone fails.
func TestApplyAll(t *testing.T) {
	defer dmabuf.Pretend()()
	b, device := register(t)
	plain := []uint64{1, 2}
	if err := Store(device, []byte{30, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	operands, results := []uint64{100, 200, 300}, make([]uint64, 3)
	job := func() *atomics.Job {
		return &atomics.Job{
			Op: fi.OpSum, Datatype: fi.Uint64, Operand: unsafe.Pointer(unsafe.SliceData(operands)),
			Result: unsafe.Pointer(unsafe.SliceData(results)),
		}
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(plain)))
	for what, bad := range map[string]fi.IOVec{
		"ends within an element": {Base: uintptr(device), Len: 12},
		"begins within one":      {Base: uintptr(device) + 4, Len: 8},
	} {
		err := ApplyAll(job(), []fi.IOVec{{Base: at, Len: 8}, bad})
		if !errors.Is(err, fi.EINVAL) || plain[0] != 1 {
			t.Errorf("%s: %v, %d", what, err, plain[0])
		}
	}
	pieces := []fi.IOVec{{Base: at, Len: 8}, {Base: uintptr(device), Len: 8}, {Base: at + 8, Len: 8}}
	if err := ApplyAll(job(), pieces); err != nil {
		t.Fatal(err)
	}
	var there [8]byte
	if err := Load(there[:], device); err != nil {
		t.Fatal(err)
	}
	if plain[0] != 101 || binary.LittleEndian.Uint64(there[:]) != 230 || plain[1] != 302 {
		t.Errorf("sums %d, %x and %d", plain[0], there, plain[1])
	}
	if !slices.Equal(results, []uint64{1, 30, 2}) {
		t.Errorf("before: %d", results)
	}
	b.Close()
	if err := ApplyAll(job(), pieces[1:2]); !errors.Is(err, fi.EIO) {
		t.Errorf("on a dma-buf that is closed: %v", err)
	}
}
