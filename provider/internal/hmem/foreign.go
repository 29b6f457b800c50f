package hmem

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proxy"
)

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

// Mapping is an allocation of another process. Immutable.
type Mapping struct {
	base     uint64          // of a CUDA allocation
	mapping  *dmabuf.Mapping // else
	size     uint64          // bytes
	writable bool
}

// Size is the number of bytes.
func (m *Mapping) Size() uint64 { return m.size }

// Writable reports whether this process may write there.
func (m *Mapping) Writable() bool { return m.writable }

// Close unmaps it.
func (m *Mapping) Close() error {
	if m.mapping != nil {
		return m.mapping.Close()
	}
	return cuda.Unimport(m.base)
}

// Importer maps memory of other processes, for one domain. The zero value has mapped none. Its methods may be called
// from any thread.
type Importer struct{ state int } // under shares

// States of an importer; under shares.
const (
	noImporter = iota
	importer
	formerImporter // left
)

// Enter counts the importer among those that map memory of others. fi.EBADF: it has left; else what keeps the
// descriptor thread from starting.
func (i *Importer) Enter() error {
	shares.Lock()
	defer shares.Unlock()
	switch i.state {
	case formerImporter:
		return fi.EBADF
	case importer:
		return nil
	}
	if err := startDescriptors(); err != nil {
		return err
	}
	i.state = importer
	shares.importers++
	return nil
}

// Leave undoes Enter for good. With the last importer all mappings go.
func (i *Importer) Leave() {
	shares.Lock()
	was := i.state
	i.state = formerImporter
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

// Acquire returns a use of another process's allocation, of which the mapping is a *[Mapping], and maps it if need be,
// within limits for all mappings; near is memory to use the context of, and device reports whether this side may call
// CUDA. It waits for the owner.
func (i *Importer) Acquire(a cuda.Foreign, limits cuda.Limits, near uint64, device bool) (*cuda.Use, error) {
	if err := i.Enter(); err != nil {
		return nil, err
	}
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
		return &Mapping{mapping: mapping, size: uint64(len(mapping.Bytes())), writable: writable}, nil
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
		return &Mapping{base: base, size: size, writable: true}, nil
	}
	return nil, fmt.Errorf("memory of kind %d is not for this side", e.Kind)
}

// CopyTo copies n bytes from offset on, which lie in the allocation, to an address of any kind.
func (m *Mapping) CopyTo(to, offset, n uint64) (err error) {
	if m.mapping != nil {
		if e := m.mapping.Access(false, func() { err = Store(to, m.mapping.Bytes()[offset:offset+n]) }); e != nil {
			return e
		}
		return err
	}
	if isDMABuf(to) {
		return accessDMABuf(to, n, true, func(b []byte) error { return Load(b, m.base+offset) })
	}
	return cuda.Copy(to, m.base+offset, n)
}

// Copy copies n bytes between an address of any kind and the allocation, from at on, where they lie, or begins to in
// the batch. read: from the allocation.
func (m *Mapping) Copy(batch *cuda.Batch, local, at, n uint64, read bool) error {
	if m.mapping == nil {
		if read {
			return Copy(batch, local, m.base+at, n)
		}
		return Copy(batch, m.base+at, local, n)
	}
	var err error
	e := m.mapping.Access(!read, func() {
		if read {
			err = Store(local, m.mapping.Bytes()[at:at+n])
		} else {
			err = Load(m.mapping.Bytes()[at:at+n], local)
		}
	})
	return errors.Join(e, err)
}

// States of a Memory. The fetching goroutine changes fetching to ready or useless, the owner changes it to dropped; the
// second of them cleans up.
const (
	memoryFetching uint32 = iota
	memoryReady
	memoryUseless
	memoryDropped
)

// Memory is an allocation of another process that is fetched for one operation. It belongs to one thread.
type Memory struct {
	state atomic.Uint32 // sequentially consistent
	// Written by the goroutine before it leaves memoryFetching, read after.
	use *cuda.Use // paused but in Do
	err error
}

// Fetch begins to map an allocation; arguments as of Acquire. A goroutine calls then when it is mapped, or cannot be.
func (i *Importer) Fetch(a cuda.Foreign, limits cuda.Limits, near uint64, device bool, then func()) *Memory {
	m := &Memory{}
	go func() {
		m.fetch(i, a, limits, near, device)
		then()
	}()
	return m
}

func (m *Memory) fetch(i *Importer, a cuda.Foreign, limits cuda.Limits, near uint64, device bool) {
	m.use, m.err = i.Acquire(a, limits, near, device)
	outcome := memoryReady
	if m.err != nil {
		outcome = memoryUseless
	} else {
		m.use.Pause()
	}
	if !m.state.CompareAndSwap(memoryFetching, outcome) && m.err == nil {
		m.use.Release()
	}
}

// Ready reports whether the allocation is mapped, or, with an error, cannot be.
func (m *Memory) Ready() (bool, error) {
	switch m.state.Load() {
	case memoryFetching:
		return false, nil
	case memoryReady:
		return true, nil
	}
	return true, m.err
}

// Do calls f with the mapping of an allocation that is ready without error. It reports false if the owner has recalled
// it. After an error of f the mapping is used no more.
func (m *Memory) Do(f func(*Mapping) error) bool {
	if !m.use.Resume() {
		return false
	}
	if f(m.use.Mapping().(*Mapping)) != nil {
		m.use.Fail()
	}
	m.use.Pause()
	return true
}

// Drop gives the memory up, now or when it was fetched.
func (m *Memory) Drop() {
	if !m.state.CompareAndSwap(memoryFetching, memoryDropped) && m.state.Load() == memoryReady {
		m.use.Release()
	}
}
