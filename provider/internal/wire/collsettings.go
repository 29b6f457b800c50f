package wire

import (
	"fmt"

	"github.com/weft-fabric/weft/internal/config"
)

// AllToAllNames are the values of FI_WEFT_ALLTOALL_ALGORITHM, in the order of their numbers on
// the wire.
var AllToAllNames = []string{"auto", "bruck", "pairwise", "message", "step", "linear", "put", "get"}

// CollSettings is what a member says of itself in its join: its variables, which decide what goes over the wire in an
// all-to-all and have to be alike at all members, and whether it reaches a member over the network.
type CollSettings struct {
	Algorithm uint8 // index in [AllToAllNames]
	Sched     config.Tri
	Spans     bool // it reaches a member over the network
	First     bool // it reaches no member of a lower rank otherwise: it is its host's first
	Relay     bool // through others
	RelaySize uint32
}

// settingsKnown are the bits that [CollSettings.Pack] sets.
const settingsKnown = 0x7ffff

// Pack makes all of it but the size of the relay.
func (s *CollSettings) Pack() uint32 {
	v := uint32(s.Algorithm) | uint32(s.Sched)<<8
	for i, set := range []bool{s.Spans, s.First, s.Relay} {
		if set {
			v |= 1 << (16 + i)
		}
	}
	return v
}

// Unpack refuses values that there are not.
func (s *CollSettings) Unpack(v uint32) bool {
	*s = CollSettings{Algorithm: uint8(v), Sched: config.Tri(v >> 8 & 0xff)}
	s.Spans, s.First, s.Relay = v>>16&1 != 0, v>>17&1 != 0, v>>18&1 != 0
	return v&^settingsKnown == 0 && int(s.Algorithm) < len(AllToAllNames) && s.Sched <= config.No
}

// Differs returns the first variable that is not alike, with both values.
func (s *CollSettings) Differs(o *CollSettings) error {
	if s.Algorithm != o.Algorithm {
		return fmt.Errorf("FI_WEFT_ALLTOALL_ALGORITHM is %s here and %s there",
			AllToAllNames[s.Algorithm], AllToAllNames[o.Algorithm])
	}
	if s.Sched != o.Sched {
		return fmt.Errorf("FI_WEFT_RTT_SCHED_ENABLE is %v here and %v there", s.Sched, o.Sched)
	}
	if s.Relay != o.Relay {
		name := map[bool]string{true: "auto", false: "no"}
		return fmt.Errorf("FI_WEFT_ALLTOALL_RELAY is %s here and %s there", name[s.Relay], name[o.Relay])
	}
	if s.RelaySize != o.RelaySize {
		return fmt.Errorf("FI_WEFT_ALLTOALL_RELAY_SIZE is %d here and %d there", s.RelaySize, o.RelaySize)
	}
	return nil
}
