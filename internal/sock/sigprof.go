package sock

import (
	_ "unsafe" // for go:linkname

	_ "github.com/cilium/ebpf" // which fills the set before init empties it
	"golang.org/x/sys/unix"
)

// profSet is what package ebpf blocks while it loads a program, and unblocks
// then, whether or not it was blocked before: SIGPROF. The thread may be the
// application's, which has blocked the signal to wait for it. Empty, it changes
// no mask; a load that a signal interrupts is repeated in either case.
//
//go:linkname profSet github.com/cilium/ebpf/internal/sys.profSet
var profSet unix.Sigset_t

func init() { profSet = unix.Sigset_t{} }
