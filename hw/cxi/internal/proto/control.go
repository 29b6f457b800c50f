package proto

// IndexControl is where control messages go.
const IndexControl = 117

// Match bits of control messages:
//
//	0:16 | drops:16 | 0:29 | kind:2 | control
const (
	dropsShift   = 16
	dropsMask    = 1<<16 - 1
	controlShift = 61
	controlBit   = 1 << 63
)

// ControlKind says what a control message is.
type ControlKind uint32

const (
	// ControlNotify: the sender's messages were dropped, so many, and none is in flight any more.
	ControlNotify ControlKind = iota
	// ControlResume: the sender takes messages again.
	ControlResume
)

// Control are the match bits of a control message.
func Control(kind ControlKind, drops uint32) uint64 {
	return controlBit | uint64(kind)<<controlShift | uint64(drops&dropsMask)<<dropsShift
}

// ControlOf is what a control message says. False: it is none that concerns messages.
func ControlOf(bits uint64) (kind ControlKind, drops uint32, ok bool) {
	kind = ControlKind(bits >> controlShift & 3)
	return kind, uint32(bits >> dropsShift & dropsMask), bits&controlBit != 0 && kind <= ControlResume
}

// ControlEntry are the match bits of the list entry for control messages, and those to ignore: all others.
func ControlEntry() (bits, ignore uint64) { return controlBit, controlBit - 1 }
