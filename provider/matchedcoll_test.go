package provider

import (
	"sync/atomic"
	"testing"

	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/coll"
)

// TestCollecting: a reader of a queue that has found an endpoint there asks it whether it is collecting, also when
// another thread has closed the endpoint meanwhile.
func TestCollecting(t *testing.T) {
	d := &Domain{}
	e := &MatchedEndpoint{binder: binder{attributes: attributes{domain: d}}}
	if err := e.allocate(); err != nil {
		t.Fatal(err)
	}
	if e.collecting(true) {
		t.Error("without the capability")
	}
	e.coll, _ = coll.New(nil, nil, coll.Settings{Config: config.Default()})
	atomic.StoreUint32(&e.rx.Attention, hot.AttentionGo)
	if !e.collecting(true) || e.collecting(false) {
		t.Error("something is to be sent, where C drives the interface")
	}
	e.hot = nil // Close
	e.memory.ep.Close()
	e.memory.rx.Close()
	if e.collecting(true) {
		t.Error("closed")
	}
}
