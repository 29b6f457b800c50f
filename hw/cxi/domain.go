package cxi

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// DomainConfig says which NIC a memory domain uses, and where it is found.
type DomainConfig struct {
	Device  string // default: the first whose link is up, else the first
	Sysfs   string // default: DefaultSysfs
	Library string // default: libcxi.DefaultLibrary
	// Getenv reads the launcher's variables. Default: os.Getenv.
	Getenv func(string) string
	// Logf takes one line of text about the device, without a newline. Default: dropped.
	Logf func(format string, args ...any)
}

// MemoryDomain is an open NIC under one service and VNI. It implements hw.MemoryDomain.
type MemoryDomain struct {
	dev     Device
	handle  *libcxi.Device
	lni     *libcxi.LNI
	profile *libcxi.Profile
	// restricted is the profile of restricted commands.
	restricted restrictedProfile
	service    uint32
	vni        uint16
	logf       func(format string, args ...any)
	exposed    exposure
}

// OpenDomain opens a NIC. Errors: libcxi.ErrAbsent without libcxi and hw.ErrUnreachable without a NIC; hw.ErrPermission
// without permission for its file or without a service that admits this process; hw.ErrNoResource when the service has
// no communication profile left.
func OpenDomain(c DomainConfig) (*MemoryDomain, error) {
	if c.Sysfs == "" {
		c.Sysfs = DefaultSysfs
	}
	if c.Library == "" {
		c.Library = libcxi.DefaultLibrary
	}
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	if c.Logf == nil {
		c.Logf = func(string, ...any) {}
	}
	list, err := Devices(c.Sysfs, c.Library)
	if err != nil {
		return nil, err
	}
	d := &MemoryDomain{logf: c.Logf}
	d.exposed.d = d
	if d.dev, err = choose(list, c.Device); err != nil {
		return nil, err
	}
	if !d.dev.Up {
		return nil, fmt.Errorf("cxi: the link of %s is down: %w", d.dev.Name,
			errors.Join(hw.ErrUnreachable, unix.ENETDOWN))
	}
	if d.handle, err = libcxi.Open(d.dev.ID); err != nil {
		return nil, openError(err, d.dev.Name)
	}
	if err := d.setUp(c.Getenv); err != nil {
		return nil, errors.Join(err, d.release())
	}
	c.Logf("cxi: %s, %v, service %d, VNI %d", d.dev.Name, d.dev.PCI(), d.service, d.vni)
	return d, nil
}

// setUp takes the process's share of an open NIC.
func (d *MemoryDomain) setUp(env func(string) string) (err error) {
	if d.service, d.vni, err = chooseService(d.handle, d.dev.Name, ownIdentity(), env); err != nil {
		return err
	}
	if d.lni, err = d.handle.NewLNI(d.service); err != nil {
		return limit(err)
	}
	if d.profile, err = d.newProfile(d.vni, libcxi.TypeDefault); err != nil {
		d.profile = nil
		return limit(err)
	}
	return nil
}

// newProfile makes a communication profile of a VNI and type, in the first class of traffic that the service has.
func (d *MemoryDomain) newProfile(vni uint16, kind uint32) (*libcxi.Profile, error) {
	var errs []error
	for _, class := range []uint32{libcxi.TCBestEffort, libcxi.TCLowLatency, libcxi.TCBulk, libcxi.TCDedicated} {
		p, err := d.lni.NewProfile(vni, class, kind)
		if err == nil {
			return p, nil
		}
		errs = append(errs, err)
	}
	return nil, errs[0]
}

// limit marks an error of making an object.
func limit(err error) error { return fmt.Errorf("cxi: %w: %w", err, reason(err)) }

// reason is what an error of the library means: no permission, a NIC that does not work, or no room.
func reason(err error) error {
	switch {
	case is(err, unix.EPERM, unix.EACCES, unix.EKEYREVOKED):
		return hw.ErrPermission
	case is(err, unix.EIO, unix.ENODEV, unix.ENOENT, unix.ENXIO, unix.ESHUTDOWN, unix.ENETDOWN):
		return hw.ErrUnreachable
	}
	return hw.ErrNoResource
}

// is reports whether an error is one of codes.
func is(err error, codes ...unix.Errno) bool {
	return slices.ContainsFunc(codes, func(c unix.Errno) bool { return errors.Is(err, c) })
}

// Device is the NIC.
func (d *MemoryDomain) Device() Device { return d.dev }

// Service is the service and the VNI under which it is used.
func (d *MemoryDomain) Service() (id uint32, vni uint16) { return d.service, d.vni }

// Attr describes the domain.
func (d *MemoryDomain) Attr() hw.MDAttr {
	return hw.MDAttr{
		Caps:   hw.MDLocal | hw.MDCost | hw.MDAlloc,
		MaxLen: 1 << 47,
		MaxKey: keyBytes,
		Device: d.dev.Name,
	}
}

// Close closes the NIC.
func (d *MemoryDomain) Close() error { return d.release() }

// release gives back what OpenDomain has made, in reverse.
func (d *MemoryDomain) release() error {
	err := d.exposed.close()
	err = errors.Join(err, d.restricted.close())
	if d.profile != nil {
		err = errors.Join(err, d.profile.Close())
	}
	if d.lni != nil {
		err = errors.Join(err, d.lni.Close())
	}
	d.handle.Close()
	return err
}

// pidBits is the length of a PID.
func (d *MemoryDomain) pidBits() uint32 { return d.dev.PIDBits }
