package provider

import (
	"slices"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/eq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/backends"
	"github.com/weft-fabric/weft/provider/internal/refs"
)

// Fabric is a network: the objects that are not tied to one interface belong
// to it. Its methods may be called from any thread.
type Fabric struct {
	attr    fi.FabricAttr // immutable
	cfg     *config.Config
	refs    refs.Count // users: domains
	program backends.Program
}

// OpenFabric opens the fabric that attr, from [GetInfo], names. Errors: fi.EINVAL
// for a nil attr, a missing name or a bad configuration, fi.ENODEV for a fabric
// of another provider.
func OpenFabric(attr *fi.FabricAttr) (*Fabric, error) {
	cfg, err := configuration()
	if err != nil {
		return nil, err
	}
	switch {
	case attr == nil:
		return nil, fi.EINVAL
	case attr.Name == "":
		return nil, refuse(log.Fabric, fi.EINVAL, "open fabric: no name")
	case attr.ProvName != "" && !info.IsReported(cfg, attr.ProvName):
		return nil, refuse(log.Fabric, fi.ENODEV, "open fabric %q of provider %q", attr.Name, attr.ProvName)
	}
	f := &Fabric{attr: *attr, cfg: cfg}
	f.attr.Fabric = f
	f.attr.ProvName = info.ReportedName(cfg)
	f.attr.ProvVersion = info.ProvVersion
	opened.mu.Lock()
	defer opened.mu.Unlock()
	opened.fabrics = append(opened.fabrics, f)
	return f, nil
}

// AddNetwork adds a transport of the program's own, by which endpoints that are enabled afterwards reach peers that
// share no memory with them. Errors: fi.EINVAL without a name or Open, and for a name that is there.
func (f *Fabric) AddNetwork(n Network) error { return f.program.Add(n) }

// Close closes the fabric. fi.EBUSY while it has open domains. Event queues and
// wait sets need nothing of the fabric, and go on.
func (f *Fabric) Close() error {
	if err := f.refs.Close(); err != nil {
		return err
	}
	opened.mu.Lock()
	defer opened.mu.Unlock()
	opened.fabrics = slices.DeleteFunc(opened.fabrics, func(g *Fabric) bool { return g == f })
	return nil
}

// OpenEQ opens an event queue. Errors: fi.EINVAL for a nil attr, too large a size,
// an unknown wait object, a missing wait set, and a negative signaling vector if
// fi.Affinity says that it counts; fi.EBADFLAGS for flags other than fi.Write and
// fi.Affinity; or a system error.
func (f *Fabric) OpenEQ(attr *fi.EQAttr) (*eq.Queue, error) {
	if attr == nil {
		return nil, fi.EINVAL
	}
	if attr.Flags&fi.Affinity != 0 && attr.SignalingVector < 0 {
		return nil, refuse(log.EQ, fi.EINVAL, "open event queue: signaling vector %d", attr.SignalingVector)
	}
	var set *cq.WaitSet
	if attr.WaitObj == fi.WaitSet {
		set, _ = attr.WaitSet.(*cq.WaitSet)
	}
	q, err := eq.Open(attr, set)
	if err != nil {
		log.Warnf(log.EQ, "open event queue: %v", err)
	}
	return q, err
}

// OpenWait opens a wait set. Errors: fi.EINVAL for a nil attr, for flags, and for
// a wait object that a set cannot have; or a system error.
func (f *Fabric) OpenWait(attr *fi.WaitAttr) (*cq.WaitSet, error) {
	if attr == nil {
		return nil, fi.EINVAL
	}
	w, err := cq.OpenWaitSet(attr)
	if err != nil {
		log.Warnf(log.Core, "open wait set: %v", err)
	}
	return w, err
}

// FabricName returns the fabric's name.
func (f *Fabric) FabricName() string { return f.attr.Name }

// refuse logs why a call is refused, and returns the text as an error that
// wraps errno.
func refuse(s log.Subsys, errno fi.Errno, format string, args ...any) error {
	return log.Refuse(s, errno, format, args...)
}
