package backend

import (
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/hwtest"
)

func TestConformance(t *testing.T) {
	hub := &Hub{}
	hwtest.Run(t, func(testing.TB) hw.Iface { return hub.Open() })
}
