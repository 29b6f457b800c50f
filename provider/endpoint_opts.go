package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/cm"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// options are what an endpoint's attributes and control operations choose. Under the endpoint's mu until Enable,
// immutable from then on, but for what says otherwise.
type options struct {
	lossy     bool // what does not go out may be dropped (package messages)
	minMulti  uint64
	apart     bool // shares no memory with peers
	sourceErr bool
	silent    bool // a receive context enabled without a queue, which readers of others serve (Scalable.join)
	sizes     sizeLimits
	sized     bool         // one of sizes is below the endpoint's own; under mu
	p2p       atomic.Int32 // fi.OptHMEMP2P; set by control operations, read by any thread
}

// GetOpt returns an option of level FI_OPT_ENDPOINT. Errors:
// fi.ENOPROTOOPT for an option that an endpoint of this type does not have.
func (e *Endpoint) GetOpt(name fi.Opt) (uint64, error) {
	switch name {
	case fi.OptCMDataSize:
		if e.base.conn == nil {
			return 0, fi.ENOPROTOOPT
		}
		return cm.MaxData, nil
	case fi.OptHMEMP2P:
		return uint64(e.base.chosen.p2p.Load()), nil
	case fi.OptMinMultiRecv:
		e.base.mu.Lock()
		defer e.base.mu.Unlock()
		return e.base.chosen.minMulti, nil
	}
	if isSize(name) {
		return e.base.size(name), nil
	}
	return 0, fi.ENOPROTOOPT
}

// SetOnly reports whether an option can be set, but not asked for.
func SetOnly(name fi.Opt) bool {
	return name == fi.OptCUDAAPIPermitted || name == fi.OptSharedMemoryPermitted
}

// SetOpt sets an option of level FI_OPT_ENDPOINT. fi.OptMinMultiRecv, in
// bytes, applies to multi-receive buffers from now on. With fi.OptHMEMP2P
// fi.HMEMP2PDisabled messages in device memory are copied by way of the
// process's own. fi.OptCUDAAPIPermitted and fi.OptSharedMemoryPermitted have a value of 0 or 1, and
// are only set. With the latter 0, before Enable, peers on this host are reached as those on other
// hosts. fi.OptMaxMsgSize and its siblings, in bytes, restrict what may be posted. Errors:
// fi.ENOPROTOOPT, fi.EINVAL, also where there is no CUDA; fi.EOPNOTSUPP for what
// copies of device memory need, and where nothing leads to other hosts; fi.EOPBADSTATE.
func (e *Endpoint) SetOpt(name fi.Opt, value uint64) error {
	switch name {
	case fi.OptHMEMP2P:
		return e.base.chosen.setP2P(value)
	case fi.OptCUDAAPIPermitted:
		return permitCUDA(e.base.info.Caps, value)
	case fi.OptSharedMemoryPermitted:
		return e.permitShared(value != 0)
	case fi.OptMinMultiRecv:
	default:
		if isSize(name) {
			return e.base.setSize(name, value)
		}
		return fi.ENOPROTOOPT
	}
	if err := checkMinMulti(value); err != nil {
		return err
	}
	e.base.mu.Lock()
	defer e.base.mu.Unlock()
	e.base.chosen.minMulti = value
	if e.base.state.Load() == stateEnabled && e.base.bound.srx == nil {
		e.base.rx.minMulti.Store(value)
	}
	return nil
}

// checkMinMulti judges a value of fi.OptMinMultiRecv.
func checkMinMulti(value uint64) error {
	if value > wire.MaxMessage {
		return refuse(log.EPCtrl, fi.EINVAL, "FI_OPT_MIN_MULTI_RECV of %d bytes, at most %d", value,
			uint64(wire.MaxMessage))
	}
	return nil
}

// GetOpt is [Endpoint.GetOpt] for the shared context.
func (s *SharedRx) GetOpt(name fi.Opt) (uint64, error) {
	if name != fi.OptMinMultiRecv {
		return 0, fi.ENOPROTOOPT
	}
	return s.rx.minMulti.Load(), nil
}

// SetOpt is [Endpoint.SetOpt] for the shared context.
func (s *SharedRx) SetOpt(name fi.Opt, value uint64) error {
	if name != fi.OptMinMultiRecv {
		return fi.ENOPROTOOPT
	}
	if err := checkMinMulti(value); err != nil {
		return err
	}
	s.rx.minMulti.Store(value)
	return nil
}

// setP2P sets how device memory moves between processes. No transfer needs its
// peer's device, so nothing can be required.
func (e *options) setP2P(value uint64) error {
	switch int32(value) {
	case fi.HMEMP2PEnabled, fi.HMEMP2PPreferred, fi.HMEMP2PDisabled:
		e.p2p.Store(int32(value))
		return nil
	case fi.HMEMP2PRequired:
		return refuse(log.EPCtrl, fi.EOPNOTSUPP,
			"FI_OPT_FI_HMEM_P2P: a transfer may always need copies by way of the process's memory")
	}
	return refuse(log.EPCtrl, fi.EINVAL, "FI_OPT_FI_HMEM_P2P: %d", int32(value))
}

// permitCUDA lets an endpoint with capabilities call CUDA, or forbids what it cannot do without.
func permitCUDA(caps, value uint64) error {
	if err := cuda.Load(); err != nil {
		return refuse(log.EPCtrl, fi.EINVAL, "FI_OPT_CUDA_API_PERMITTED: %v", err)
	}
	if value == 0 && caps&fi.HMEM != 0 {
		return refuse(log.EPCtrl, fi.EOPNOTSUPP, "FI_OPT_CUDA_API_PERMITTED: device memory is copied by CUDA")
	}
	return nil
}

// permitShared sets whether the endpoint shares memory with peers.
func (e *Endpoint) permitShared(permitted bool) error {
	const what = "FI_OPT_SHARED_MEMORY_PERMITTED: "
	e.base.mu.Lock()
	defer e.base.mu.Unlock()
	switch {
	case e.base.scalable != nil:
		return fi.ENOPROTOOPT
	case permitted != e.base.chosen.apart:
		return nil
	case e.base.state.Load() != stateCreated:
		return refuse(log.EPCtrl, fi.EOPBADSTATE, what+"the endpoint is enabled")
	case !permitted && !transportsOf(e).HasNetwork():
		return refuse(log.EPCtrl, fi.EOPNOTSUPP, what+"FI_WEFT_UDP=no, no device: nothing else leads to peers")
	}
	e.base.chosen.apart = !permitted
	return nil
}
