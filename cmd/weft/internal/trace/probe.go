package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// Bounds of what the kernel keeps.
const (
	maxThreads    = 4096
	maxOperations = 1 << 17
	maxPairs      = 1 << 13 // of thread and slot
	commBytes     = 16
)

// probe is what was put into the kernel. All of it hangs on file descriptors of
// this process: when it ends, however it ends, the kernel takes the probes out of
// the traced process.
type probe struct {
	lib   *library
	kinds []string // of operations; a point's is the place of its name here

	calls, operations, buckets, sums, lost, threads *ebpf.Map

	links   []link.Link
	closers []io.Closer
}

// slots is how many histograms there are: one for each call and result, one for
// each kind of operation.
func (p *probe) slots() int { return len(p.lib.points)*results + len(p.kinds) }

func (p *probe) firstKind() int { return len(p.lib.points) * results }

// attach puts probes on all functions of the library in one process. threads
// has the time of each thread kept.
func attach(lib *library, pid int, threads bool) (_ *probe, err error) {
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("lift the limit of locked memory: %w", err)
	}
	p := &probe{lib: lib}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	for i := range lib.points {
		if k := lib.points[i].operation; k != "" && !slices.Contains(p.kinds, k) {
			p.kinds = append(p.kinds, k)
		}
	}
	if len(p.kinds) > maxOps {
		return nil, fmt.Errorf("%s has %d kinds of operations", lib.mapped, len(p.kinds))
	}
	if err := p.makeMaps(threads); err != nil {
		return nil, err
	}
	executable, err := link.OpenExecutable(lib.path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lib.path, err)
	}
	var settings []setting
	for i := range lib.points {
		in, back, err := p.programs(i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", lib.points[i].name, err)
		}
		// the probe on the return first: a call that has one only is not counted
		settings = append(settings, setting{executable.Uretprobe, &lib.points[i], back},
			setting{executable.Uprobe, &lib.points[i], in})
	}
	if err := p.set(settings, pid); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *probe) makeMaps(threads bool) error {
	slots := uint32(p.slots())
	for _, m := range []struct {
		at   **ebpf.Map
		spec ebpf.MapSpec
	}{
		{&p.calls, ebpf.MapSpec{Name: "weft_calls", Type: ebpf.LRUHash, KeySize: 8, ValueSize: callBytes,
			MaxEntries: maxThreads}},
		{&p.operations, ebpf.MapSpec{Name: "weft_ops", Type: ebpf.Hash, KeySize: 8, ValueSize: 16,
			MaxEntries: maxOperations}},
		{&p.buckets, ebpf.MapSpec{Name: "weft_buckets", Type: ebpf.Array, KeySize: 4, ValueSize: 8,
			MaxEntries: slots * histogram, Flags: unix.BPF_F_MMAPABLE}},
		{&p.sums, ebpf.MapSpec{Name: "weft_sums", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: slots,
			Flags: unix.BPF_F_MMAPABLE}},
		{&p.lost, ebpf.MapSpec{Name: "weft_lost", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: lostKinds,
			Flags: unix.BPF_F_MMAPABLE}},
		{&p.threads, ebpf.MapSpec{Name: "weft_threads", Type: ebpf.LRUHash, KeySize: 16, ValueSize: 8 + commBytes,
			MaxEntries: maxPairs}},
	} {
		if m.at == &p.threads && !threads {
			continue
		}
		made, err := ebpf.NewMap(&m.spec)
		if err != nil {
			return fmt.Errorf("map %s: %w", m.spec.Name, err)
		}
		*m.at = made
		p.closers = append(p.closers, made)
	}
	return nil
}

// programs loads the programs of a point.
func (p *probe) programs(i int) (in, back *ebpf.Program, err error) {
	pt := &p.lib.points[i]
	k := kernel{p.calls.FD(), p.operations.FD(), p.buckets.FD(), p.sums.FD(), p.lost.FD(), -1}
	if p.threads != nil {
		k.threads = p.threads.FD()
	}
	if back, err = p.program(&ebpf.ProgramSpec{Name: "weft_leave",
		Instructions: leave(k, i, pt, p.firstKind())}); err != nil {
		return nil, nil, err
	}
	kind := slices.Index(p.kinds, pt.operation)
	in, err = p.program(&ebpf.ProgramSpec{Name: "weft_enter", Instructions: entry(k, p.lib, i, pt, kind)})
	return in, back, err
}

// setting is a probe to set.
type setting struct {
	kind    func(symbol string, prog *ebpf.Program, opts *link.UprobeOptions) (link.Link, error)
	point   *point
	program *ebpf.Program
}

// set sets probes, several at a time: for each the kernel waits until all
// processors have passed a point of quiet, and it waits once for those that come
// together.
func (p *probe) set(settings []setting, pid int) error {
	var wait sync.WaitGroup
	links, errs := make([]link.Link, len(settings)), make([]error, len(settings))
	for i, s := range settings {
		wait.Go(func() {
			links[i], errs[i] = s.kind(s.point.name, s.program, &link.UprobeOptions{Address: s.point.offset, PID: pid})
		})
	}
	wait.Wait()
	for i, l := range links {
		if errs[i] == nil {
			p.links = append(p.links, l)
		} else {
			errs[i] = fmt.Errorf("%s: %w", settings[i].point.name, errs[i])
		}
	}
	return errors.Join(errs...)
}

func (p *probe) program(spec *ebpf.ProgramSpec) (*ebpf.Program, error) {
	spec.Type, spec.License = ebpf.Kprobe, "Dual BSD/GPL" // the kernel gives some helpers to the GPL only
	prog, err := ebpf.NewProgram(spec)
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", spec.Name, err)
	}
	p.closers = append(p.closers, prog)
	return prog, nil
}

// close takes everything out of the kernel, probes first. What cannot be closed
// goes when this process ends.
func (p *probe) close() {
	var wait sync.WaitGroup
	for _, l := range p.links {
		wait.Go(func() { _ = l.Close() })
	}
	wait.Wait()
	for _, c := range slices.Backward(p.closers) {
		_ = c.Close()
	}
	p.links, p.closers = nil, nil
}

// words reads an array of the kernel's.
func words(m *ebpf.Map, n int) ([]uint64, error) {
	memory, err := m.Memory()
	if err != nil {
		return nil, fmt.Errorf("read %v: %w", m, err)
	}
	b := make([]byte, 8*n)
	if _, err := memory.ReadAt(b, 0); err != nil {
		return nil, fmt.Errorf("read %v: %w", m, err)
	}
	list := make([]uint64, n)
	for i := range list {
		list[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	return list, nil
}

// threadTime is what one thread spent in calls that ended in one way.
type threadTime struct {
	tid  uint32
	name string
	slot uint64
	ns   uint64
}

func (p *probe) threadTimes() ([]threadTime, error) {
	var list []threadTime
	var key, value []byte
	entries := p.threads.Iterate()
	for entries.Next(&key, &value) {
		list = append(list, threadTime{
			tid: uint32(binary.NativeEndian.Uint64(key)), slot: binary.NativeEndian.Uint64(key[8:]),
			ns: binary.NativeEndian.Uint64(value), name: cString(value[8:]),
		})
	}
	// where threads come and go faster than they are read, some are missing
	if err := entries.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return nil, fmt.Errorf("read the threads: %w", err)
	}
	return list, nil
}
