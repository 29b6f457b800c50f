package cxi

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/libcxi"
	"github.com/weft-fabric/weft/internal/nic"
)

// defaultVNI is what a service without a VNI of its own is used with.
const defaultVNI = 10

// serviceSource is where services come from: an open device.
type serviceSource interface {
	Services() ([]libcxi.Service, error)
	Service(id uint32) (libcxi.Service, error)
	VNIRange(id uint32) (low, high uint16, err error)
	NetNS(id uint32) (uint32, error)
}

// identity is the asking process's.
type identity struct{ uid, gid, netns uint32 }

// ownIdentity is this process. The number of a network namespace is its inode's.
func ownIdentity() identity {
	id := identity{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/net", &st) == nil {
		id.netns = uint32(st.Ino)
	}
	return id
}

// chooseService picks the service and VNI of a device: what the launcher of the job says in SLINGSHOT_VNIS,
// SLINGSHOT_DEVICES and SLINGSHOT_SVC_IDS, else the best service that admits this process. Errors: hw.ErrPermission,
// when none does; hw.ErrInvalid for what the variables hold.
func chooseService(s serviceSource, device string, asking identity, env func(string) string) (service uint32,
	vni uint16, err error) {
	service, vni, ok, err := nic.Launched(device, env)
	if err != nil {
		return 0, 0, fmt.Errorf("cxi: %w: %w", err, hw.ErrInvalid)
	}
	if ok {
		return service, vni, admits(s, service, vni)
	}
	best, err := bestService(s, device, asking)
	if err != nil {
		return 0, 0, err
	}
	vni, err = vniOf(s, &best)
	return best.ID, vni, err
}

// admits judges whether a service is enabled and has a VNI.
func admits(s serviceSource, id uint32, vni uint16) error {
	v, err := s.Service(id)
	if err != nil {
		return fmt.Errorf("cxi: %w: %w", err, hw.ErrPermission)
	}
	if !v.Enabled {
		return fmt.Errorf("cxi: service %d is not enabled: %w", id, hw.ErrPermission)
	}
	if v.FixedVNIs && !slices.Contains(v.VNIs, vni) {
		return fmt.Errorf("cxi: service %d does not have VNI %d: %w", id, vni, hw.ErrPermission)
	}
	if !v.FixedVNIs {
		low, high, err := s.VNIRange(id)
		if err == nil && (vni < low || vni > high) {
			return fmt.Errorf("cxi: service %d has VNIs %d to %d, not %d: %w", id, low, high, vni, hw.ErrPermission)
		}
	}
	return nil
}

// Admits judges whether a service of the NIC is enabled and has a VNI. Errors: hw.ErrPermission, and what keeps the NIC
// from being opened.
func (d *Device) Admits(service uint32, vni uint16) error {
	h, err := libcxi.Open(d.ID)
	if err != nil {
		return openError(err, d.Name)
	}
	defer h.Close()
	return admits(h, service, vni)
}

// bestService is the one that admits this network namespace, else this user, else this group, else everybody. Of
// several the last one, as for libfabric's own provider.
func bestService(s serviceSource, device string, asking identity) (best libcxi.Service, err error) {
	list, err := s.Services()
	if err != nil {
		return best, limit(err)
	}
	rank := 0
	for _, v := range slices.Backward(list) {
		if !v.Enabled || v.System {
			continue
		}
		if r := fit(s, &v, asking); r > rank {
			best, rank = v, r
		}
	}
	if rank == 0 {
		return best, fmt.Errorf("cxi: none of the %d services of %s admits user %d, group %d: %w", len(list), device,
			asking.uid, asking.gid, hw.ErrPermission)
	}
	return best, nil
}

// fit is how well a service suits, 0: not at all.
func fit(s serviceSource, v *libcxi.Service, asking identity) int {
	if !v.Restricted {
		return 1
	}
	if ns, err := s.NetNS(v.ID); err == nil && ns == asking.netns && ns != 0 {
		return 4
	}
	best := 0
	for _, m := range v.Members {
		switch {
		case m.Kind == libcxi.MemberUID && m.ID == asking.uid:
			best = max(best, 3)
		case m.Kind == libcxi.MemberGID && m.ID == asking.gid:
			best = max(best, 2)
		}
	}
	return best
}

// vniOf is the VNI of a service without a named one.
func vniOf(s serviceSource, v *libcxi.Service) (uint16, error) {
	if v.FixedVNIs {
		if len(v.VNIs) == 0 {
			return 0, fmt.Errorf("cxi: service %d has no VNI: %w", v.ID, hw.ErrPermission)
		}
		return v.VNIs[0], nil
	}
	if low, _, err := s.VNIRange(v.ID); err == nil && low != 0 {
		return low, nil
	}
	return defaultVNI, nil // a service without a range has any
}
