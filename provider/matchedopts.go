package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/matched"
	"github.com/weft-fabric/weft/provider/internal/authkey"
	"github.com/weft-fabric/weft/provider/internal/backends"
)

// matchedOptions are what a matched endpoint's attributes and control operations choose. Under the endpoint's mu.
type matchedOptions struct {
	source []byte      // name that it is to have
	min    uint64      // FI_OPT_MIN_MULTI_RECV, until Enable
	own    authkey.Key // of the endpoint alone: it is of another VNI than the domain; "": it has none; immutable
	apart  bool        // FI_OPT_SHARED_MEMORY_PERMITTED is false
}

// setMinMulti sets fi.OptMinMultiRecv, of an endpoint that is enabled at its transfers, which are nil before.
func (o *matchedOptions) setMinMulti(value uint64, t *matched.Endpoint) error {
	if t != nil {
		return t.SetMinMulti(value)
	}
	attr := backends.MatchAttr()
	if err := matched.CheckMinMulti(value, &attr); err != nil {
		return err
	}
	o.min = value
	return nil
}

// permitShared keeps whether the endpoint may share memory with peers, which changes only while it may.
func (o *matchedOptions) permitShared(permitted, changes bool) error {
	if permitted == o.apart && !changes {
		return refuse(log.EPCtrl, fi.EOPBADSTATE, "FI_OPT_SHARED_MEMORY_PERMITTED: the endpoint is enabled")
	}
	o.apart = !permitted
	return nil
}
