package wire

import "github.com/weft-fabric/weft/internal/hot"

// Bits of the flags of [RTS] and [Sync].
const (
	FlagTagged uint32 = hot.RTSTagged
	FlagData   uint32 = hot.RTSData // the remote CQ data is valid
	FlagNoGet  uint32 = 1 << 2      // the sender's memory cannot be read: ask for fragments
	FlagKeyed  uint32 = 1 << 3      // in place of its address an element has the key of a region that is it
)

// FlagPacked, with FlagKeyed: the keys are the payload, and elements have addresses.
const FlagPacked uint32 = 1 << 4

// FlagShared: the payload lies in one piece in an allocation that the receiver may map by its token from process pid;
// Addr is an offset there. FlagNoGet is always set with it: a receiver that does not map asks for fragments.
const FlagShared uint32 = 1 << 5

// FlagMatch: the acknowledgement waits until a receive has matched. Of a rendezvous it always does.
const FlagMatch uint32 = hot.RTSMatch

// Flags are the known ones of [RTS].
const Flags = FlagMatch | FlagTagged | FlagData | FlagNoGet | FlagKeyed | FlagPacked | FlagShared
