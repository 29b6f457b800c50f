package verbs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
)

// eventWatch waits for a device's asynchronous events in a goroutine that
// sleeps in the runtime's poller.
type eventWatch struct {
	file *os.File // a duplicate of the device's descriptor
	done chan struct{}
}

// watchEvents starts the watch of a domain's device.
func watchEvents(d *MemoryDomain) (*eventWatch, error) {
	f, err := pollable(d.ctx.AsyncFD(), "events of "+d.dev.Name)
	if err != nil {
		return nil, err
	}
	w := &eventWatch{f, make(chan struct{})}
	go func() {
		defer close(w.done)
		waitReadable(f, func() {
			for {
				e, err := d.ctx.AsyncEvent()
				if err != nil {
					return
				}
				d.event(e)
			}
		})
	}()
	return w, nil
}

func (w *eventWatch) close() {
	_ = w.file.Close()
	<-w.done
}

// event passes what happened to the device on to the domain's interfaces.
func (d *MemoryDomain) event(e ibv.Event) {
	d.logf("verbs: device %s port %d: %v", d.dev.Name, e.Port, e)
	switch e.Type {
	case ibv.EventDeviceFatal:
		err := fmt.Errorf("verbs: device %s: %v", d.dev.Name, e)
		d.each(func(i *Iface) { i.deviceLost(err) })
	case ibv.EventPortActive:
		if e.Port == d.port {
			d.each(func(i *Iface) { i.portUp() })
		}
	}
}

// pollable duplicates a non-blocking descriptor for the runtime's poller.
func pollable(fd int, name string) (*os.File, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("verbs: duplicate descriptor for %s: %w", name, err)
	}
	f := os.NewFile(uintptr(dup), name)
	if err := f.SetReadDeadline(noDeadline); err != nil {
		return nil, errors.Join(fmt.Errorf("verbs: poll %s: %w", name, err), f.Close())
	}
	return f, nil
}

// waitReadable calls ready whenever f may be read, until f is closed.
func waitReadable(f *os.File, ready func()) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(uintptr) bool {
		ready()
		return false // wait for more
	})
}
