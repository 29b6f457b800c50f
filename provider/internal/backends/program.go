package backends

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Network is a transport to other hosts that a program brings itself (docs/adding-a-backend.md).
type Network struct {
	// Name is what logs call the transport. Not empty.
	Name string
	// Open opens the interface of an endpoint that is being enabled. Its address is the one given, by which peers call
	// Connect: the endpoint's socket address in the form of C, behind which contexts of scalable endpoints have a
	// number (4 bytes, little endian). Endpoints to it return the peer's in this form, too. nil without an error says
	// that the endpoint has no interface there. An error fails fi_enable: a fi.Errno or
	// syscall.Errno as it is, hw.ErrPermission as fi.EACCES, others as fi.EIO.
	//
	// Connect returns hw.ErrUnreachable, without hw.ErrNoPath, where the peer may answer here: it is tried again. After
	// every other error the peer is tried over the next transport, and if there is none, that error counts.
	//
	// The interface has CapAMShort, CapAMBcopy and CapOrdered, and room for heads of 96 bytes.
	Open func(address []byte) (hw.Iface, error)
}

// needed are the capabilities that an interface of a program has at least.
const needed = hw.CapAMShort | hw.CapAMBcopy | hw.CapOrdered

// Program are the networks of a program. Its methods may be called from any thread.
type Program struct {
	mu   sync.Mutex // control operations only
	list []Network
}

// Add adds a network. Errors: fi.EINVAL without a name or Open, and for a name that is there.
func (p *Program) Add(n Network) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case n.Name == "" || n.Open == nil:
		return log.Refuse(log.Fabric, fi.EINVAL, "add network %q: it has a name and Open", n.Name)
	case slices.ContainsFunc(p.list, func(o Network) bool { return o.Name == n.Name }):
		return log.Refuse(log.Fabric, fi.EINVAL, "add network %q: it is there", n.Name)
	}
	p.list = append(p.list, n)
	return nil
}

// Networks returns those that were added so far.
func (p *Program) Networks() []Network {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list)
}

// keyed reports whether the endpoint has authorisation keys, of which only shared memory and UDP know.
func (e *Endpoint) keyed() bool { return e.Auth != "" || e.Keys != nil }

// HasNetwork reports whether the endpoint may have a transport besides shared memory.
func (e *Endpoint) HasNetwork() bool {
	switch {
	case e.Config.UDP != config.No:
		return true
	case e.keyed():
		return false
	case len(e.Program) != 0:
		return true
	}
	device, _ := e.Device.Domain()
	return device != nil && !e.Name.IsLoopback()
}

// openProgram opens the endpoint's interfaces on the program's networks and returns them behind others. Those that are
// open are returned with an error, too.
func (e *Endpoint) openProgram(list []hw.Iface) ([]hw.Iface, error) {
	for _, n := range e.Program {
		if e.keyed() {
			log.Infof(log.EPCtrl, "%s has no interface on %s, which knows no authorisation keys", e.Name, n.Name)
			continue
		}
		i, err := n.Open(e.address())
		if err != nil {
			return list, openFailed(n.Name, err)
		}
		if i == nil {
			continue
		}
		if err := checkProgram(i.Attr()); err != nil {
			return list, errors.Join(fmt.Errorf("%s: %w", n.Name, err), i.Close())
		}
		list = append(list, i)
	}
	return list, nil
}

// openFailed is an error of the Open of the network of a name, with the fi.Errno that fi_enable returns.
func openFailed(name string, err error) error {
	errno := fi.EIO
	var system syscall.Errno
	switch {
	case errors.As(err, new(fi.Errno)):
		return fmt.Errorf("open network %s: %w", name, err)
	case errors.As(err, &system):
		errno = fi.ErrnoOf(system)
	case errors.Is(err, hw.ErrPermission):
		errno = fi.EACCES
	}
	return fmt.Errorf("open network %s: %s: %w", name, err.Error(), errno)
}

// checkProgram reports what an interface of a program lacks. Errors wrap fi.EINVAL.
func checkProgram(a hw.Attr) error {
	switch {
	case a.Caps&needed != needed:
		return fmt.Errorf("capabilities %#x, not all of %#x: %w", a.Caps, needed, fi.EINVAL)
	case a.MaxAMShort < wire.HeadMost || a.MaxAMHead < wire.HeadMost:
		return fmt.Errorf("heads of %d and %d bytes at most, not %d: %w",
			a.MaxAMShort, a.MaxAMHead, wire.HeadMost, fi.EINVAL)
	case a.MaxAMBcopy <= 0:
		return fmt.Errorf("payloads of %d bytes at most: %w", a.MaxAMBcopy, fi.EINVAL)
	}
	return nil
}
