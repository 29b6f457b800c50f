package provider

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proxy"
	"github.com/weft-fabric/weft/provider/wire"
)

// Memory of devices that other processes have registered (device_share.go), mapped by this one. The receiver of a large
// message copies from there once, where it would otherwise ask for fragments, each of which is copied
// from the device, through a bounce buffer, and to its place.

// mappings are those of the process. Each is opened once, and kept (cuda.Mappings).
var mappings = newMappings()

func newMappings() *cuda.Mappings {
	m := &cuda.Mappings{}
	m.SetClosed(func(a cuda.Foreign, err error) {
		if err != nil {
			log.Warnf(log.EPData, "unmap device memory of process %d: %v", a.PID, err)
		}
	})
	return m
}

// watched are the processes whose end drops the mappings of their memory. Under shares.
var watched map[int]bool

// foreignMapping is an allocation of another process. Immutable.
type foreignMapping struct {
	base     uint64          // of a CUDA allocation
	mapping  *dmabuf.Mapping // else
	size     uint64          // bytes
	writable bool
}

// Size is the number of bytes.
func (m *foreignMapping) Size() uint64 { return m.size }

// Close unmaps it.
func (m *foreignMapping) Close() error {
	if m.mapping != nil {
		return m.mapping.Close()
	}
	return cuda.Unimport(m.base)
}

// States of a domain as to memory of other processes; under shares.
const (
	noImporter = iota
	importer
	formerImporter // closed
)

// enterImporter counts the domain among those that map memory of others. fi.EBADF: it is closed.
func (d *Domain) enterImporter() error {
	shares.Lock()
	defer shares.Unlock()
	switch d.imports {
	case formerImporter:
		return fi.EBADF
	case importer:
		return nil
	}
	if err := startDescriptors(); err != nil {
		return err
	}
	d.imports = importer
	shares.importers++
	return nil
}

// leaveImporter undoes enterImporter for good. With the last domain all mappings go.
func (d *Domain) leaveImporter() {
	shares.Lock()
	was := d.imports
	d.imports = formerImporter
	last := was == importer && shares.importers == 1
	shares.Unlock()
	if was != importer {
		return
	}
	if last {
		forgetOwners()
		select {
		case <-mappings.Drop():
		case <-time.After(stopTime):
		}
	}
	shares.Lock()
	defer shares.Unlock()
	shares.importers--
	endDescriptors()
}

// fetchTime bounds what asking the owner takes, once for each step.
const fetchTime = 2 * time.Second

// acquire returns a use of the allocation that a process calls token, which it maps if need be; near is memory whose
// context is to be used, and device reports whether this side may call CUDA.
func (d *Domain) acquire(a cuda.Foreign, near uint64, device bool) (*cuda.Use, error) {
	if err := d.enterImporter(); err != nil {
		return nil, err
	}
	limits := cuda.Limits{Entries: d.cfg.IPCCache, Bytes: uint64(d.cfg.IPCCacheSize)}
	return mappings.Acquire(a, limits, func(claim func(string) error) (cuda.Mapping, error) {
		if err := watchOwner(a.PID); err != nil {
			return nil, err
		}
		return fetchForeign(a, near, device, claim)
	})
}

// watchOwner has the mappings of a process's memory dropped when it ends.
func watchOwner(pid int) error {
	shares.Lock()
	defer shares.Unlock()
	if watched[pid] || pid == os.Getpid() || shares.thread == nil {
		return nil
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return nil // an old kernel, or a filter of system calls: the cache's limits remain
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	err = shares.thread.Watch(fd, func() {
		go func() { // on the thread this was found on nothing is closed
			shares.Lock()
			delete(watched, pid)
			shares.Unlock()
			forgetProcess(pid)
			<-mappings.Gone(pid)
		}()
	})
	if err == nil {
		watched[pid] = true
	}
	return err
}

// fetchForeign asks the owner for an allocation and maps it.
func fetchForeign(a cuda.Foreign, near uint64, device bool, claim func(string) error) (cuda.Mapping, error) {
	c, err := proxy.Dial(proxy.PeerAddress("fd", a.PID), fetchTime)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if c.PID() != a.PID {
		return nil, fmt.Errorf("process %d answers for process %d", c.PID(), a.PID)
	}
	e, err := c.Fetch(a.Token)
	if err != nil {
		return nil, err
	}
	if e.FD >= 0 {
		defer unix.Close(e.FD)
	}
	switch {
	case e.Kind == proxy.DescriptorDMABuf && e.FD >= 0:
		mapping, err := dmabuf.Map(e.FD, true)
		writable := err == nil
		if err != nil {
			mapping, err = dmabuf.Map(e.FD, false)
		}
		if err != nil {
			return nil, err
		}
		return &foreignMapping{mapping: mapping, size: uint64(len(mapping.Bytes())), writable: writable}, nil
	case a.PID == os.Getpid():
		return nil, errors.New("CUDA maps no memory of the process's own")
	case e.Kind == proxy.DescriptorDevice && len(e.Handle) == cuda.HandleBytes && device:
		if err := claim(e.Handle); err != nil {
			return nil, err
		}
		h := cuda.Handle([]byte(e.Handle))
		base, size, err := cuda.Import(&h, near)
		if err != nil {
			return nil, err
		}
		return &foreignMapping{base: base, size: size, writable: true}, nil
	}
	return nil, fmt.Errorf("memory of kind %d is not for this side", e.Kind)
}

// copyTo copies n bytes from offset on to an address of any kind.
func (m *foreignMapping) copyTo(to, offset, n uint64) (err error) {
	if m.mapping != nil {
		if e := m.mapping.Access(false, func() { err = store(to, m.mapping.Bytes()[offset:offset+n]) }); e != nil {
			return e
		}
		return err
	}
	if isDMABuf(to) {
		return accessDMABuf(to, n, true, func(b []byte) error { return load(b, m.base+offset) })
	}
	return cuda.Copy(to, m.base+offset, n)
}

// States of a foreignMemory. The fetching goroutine changes fetching to ready or
// useless, the lease holder changes it to dropped; the second of them cleans up.
const (
	foreignFetching uint32 = iota
	foreignReady
	foreignUseless
	foreignDropped
)

// foreignMemory is an allocation of another process that one message is read from.
type foreignMemory struct {
	state atomic.Uint32 // sequentially consistent
	// Written by the goroutine before it leaves foreignFetching, read after.
	use *cuda.Use // paused but for the pieces that are copied
	err error
}

// fetch maps the allocation; arguments as of acquire.
func (m *foreignMemory) fetch(d *Domain, a cuda.Foreign, near uint64, device bool) {
	m.use, m.err = d.acquire(a, near, device)
	outcome := foreignReady
	if m.err != nil {
		outcome = foreignUseless
	} else {
		m.use.Pause()
	}
	if !m.state.CompareAndSwap(foreignFetching, outcome) && m.err == nil {
		m.use.Release()
	}
}

// drop gives the memory up, now or when it was fetched.
func (m *foreignMemory) drop() {
	if !m.state.CompareAndSwap(foreignFetching, foreignDropped) && m.state.Load() == foreignReady {
		m.use.Release()
	}
}

// mayMap reports whether an announced message is to be read from a mapping of the
// sender's memory.
func (e *peering) mayMap(src hw.Source, announced *wire.RTS) bool {
	least := uint64(e.domain.cfg.HMEMMapSize)
	return announced.Flags&wire.FlagShared != 0 && least != 0 && announced.Length >= least &&
		e.reads(src) && e.p2p.Load() != fi.HMEMP2PDisabled
}

// startForeign begins to fetch the memory of an announced message.
func (r *leasedRx) startForeign(e *Endpoint, op *recvOp, announced *wire.RTS) {
	m := &foreignMemory{}
	op.foreign = true
	r.foreign[op.id()] = m
	d, a := e.domain, cuda.Foreign{PID: int(announced.PID), Token: announced.Token}
	near, device := op.t.first(), e.info.Caps&fi.HMEM != 0 && cuda.Load() == nil
	go func() {
		m.fetch(d, a, near, device)
		r.ring()
	}()
	r.activate(op)
}

// stepForeign reads the next piece of an operation and reports whether progress is
// done with it.
func (r *leasedRx) stepForeign(e *leasedEP, op *recvOp) bool {
	m := r.foreign[op.id()]
	switch m.state.Load() {
	case foreignFetching:
		return false
	case foreignReady:
		if !m.use.Resume() {
			r.dropForeign(op)
			op.done = 0
			r.pull(e, op) // the owner says what has become of it
			return true
		}
		r.copyForeign(op, m.use.Mapping().(*foreignMapping))
		m.use.Pause()
	default:
		log.Infof(log.EPData, "device memory of %s is asked for in fragments: %v", r.addressOf(op.sender()), m.err)
		r.dropForeign(op)
		r.pull(e, op)
		return true
	}
	if op.status == fi.Success && op.done < op.want {
		return false
	}
	r.finishOp(e, op)
	return true
}

// copyForeign copies the next piece of an operation.
func (r *leasedRx) copyForeign(op *recvOp, m *foreignMapping) {
	offset := op.iov[0].Addr
	if offset > m.size || op.want > m.size-offset {
		log.Warnf(log.EPData, "%s announces %d bytes at %d of %d", r.addressOf(op.sender()), op.want, offset, m.size)
		op.status = fi.EIO
		return
	}
	n := min(op.want-op.done, getChunk)
	for _, s := range op.t.segments(r.local[:0], op.done, n) {
		if err := m.copyTo(uint64(uintptr(s.Addr)), offset+op.done, uint64(s.Len)); err != nil {
			log.Warnf(log.EPData, "copy device memory of %s: %v", r.addressOf(op.sender()), err)
			op.status = fi.EIO
			return
		}
		op.done += uint64(s.Len)
	}
}

// dropForeign gives up what an operation has of the sender's memory.
func (r *leasedRx) dropForeign(op *recvOp) {
	if op.foreign {
		r.foreign[op.id()].drop()
		delete(r.foreign, op.id())
		op.foreign = false
	}
}
