package main

// #include "thread.h"
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/internal/proxy"
)

func init() { proxy.OnSignal = onSignal }

// onSignal has a thread wait for a signal. It takes the signal itself if all of the application's
// block it.
func onSignal(sig int, report func()) error {
	fd, err := C.weft_signal_file(C.int(sig))
	if fd < 0 {
		return fmt.Errorf("catch signal %d: %w", sig, err)
	}
	go func() {
		runtime.LockOSThread()
		var set unix.Sigset_t
		bits := int(unsafe.Sizeof(set.Val[0])) * 8
		set.Val[(sig-1)/bits] |= 1 << ((sig - 1) % bits)
		if unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil) != nil {
			return
		}
		var count [8]byte
		for {
			if _, err := unix.Read(int(fd), count[:]); err == nil {
				report()
			} else if err != unix.EINTR {
				return
			}
		}
	}()
	return nil
}
