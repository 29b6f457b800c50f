package nettest

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Clock returns a function that sets the machine's wall clock by a step. It skips a test on a machine that is not the
// test's own: WEFT_TEST_SET_CLOCK=1 says that it is.
func Clock(t testing.TB) func(step time.Duration) {
	t.Helper()
	if os.Getenv("WEFT_TEST_SET_CLOCK") != "1" {
		t.Skip("sets the machine's clock: WEFT_TEST_SET_CLOCK=1, in a virtual machine (make test-rdma)")
	}
	return func(step time.Duration) {
		t.Helper()
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
			t.Fatal(err)
		}
		to := unix.NsecToTimespec(now.Nano() + int64(step))
		if err := unix.ClockSettime(unix.CLOCK_REALTIME, &to); err != nil {
			t.Fatal(err)
		}
	}
}
