package fi

// Flags of fi_av_set (fi_av_set(3)) beside Universe: what its
// groups are to support. Without one of the latter they support everything.
const (
	BarrierSet       uint64 = 1 << 40
	BroadcastSet     uint64 = 1 << 41
	AllToAllSet      uint64 = 1 << 42
	AllReduceSet     uint64 = 1 << 43
	AllGatherSet     uint64 = 1 << 44
	ReduceScatterSet uint64 = 1 << 45
	ReduceSet        uint64 = 1 << 46
	ScatterSet       uint64 = 1 << 47
	GatherSet        uint64 = 1 << 48
)

// AVSetAttr is struct fi_av_set_attr.
type AVSetAttr struct {
	Count   uint64 // members expected, 0: unknown
	Start   Addr   // first address, AddrNotAvail: none
	End     Addr   // last address, inclusive
	Stride  uint64 // addresses from one member to the next, 0 without Start
	CommKey []byte // of a membership that the fabric's manager knows
	Flags   uint64
}
