package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/cm"
)

// GetOpt returns an option of level FI_OPT_ENDPOINT. Errors:
// fi.ENOPROTOOPT for an option that an endpoint of this type does not have.
func (e *Endpoint) GetOpt(name fi.Opt) (uint64, error) {
	if name == fi.OptCMDataSize && e.conn != nil {
		return cm.MaxData, nil
	}
	if name != fi.OptMinMultiRecv {
		return 0, fi.ENOPROTOOPT
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.minMulti, nil
}

// SetOpt sets an option of level FI_OPT_ENDPOINT. fi.OptMinMultiRecv, in
// bytes, applies to multi-receive buffers from now on. Errors:
// fi.ENOPROTOOPT, fi.EINVAL.
func (e *Endpoint) SetOpt(name fi.Opt, value uint64) error {
	if name != fi.OptMinMultiRecv {
		return fi.ENOPROTOOPT
	}
	if value > maxMessage {
		log.Warnf(log.EPCtrl, "FI_OPT_MIN_MULTI_RECV of %d bytes, at most %d", value, uint64(maxMessage))
		return fi.EINVAL
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.minMulti = value
	if e.state.Load() == stateEnabled && e.srx == nil {
		e.rx.minMulti.Store(value)
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
	if value > maxMessage {
		return fi.EINVAL
	}
	s.rx.minMulti.Store(value)
	return nil
}
