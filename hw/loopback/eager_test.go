package loopback

import (
	"testing"
	"time"
)

// TestEagerLimit has eager messages be as long as their copies are faster than the kernel's.
func TestEagerLimit(t *testing.T) {
	wait := func(d time.Duration) {
		for start := time.Now(); time.Since(start) < d; {
		}
	}
	const slow, fast = 200 * time.Microsecond, 20 * time.Microsecond
	for name, c := range map[string]struct {
		from int // bytes from which on the kernel is faster
		want int
	}{
		"never": {1 << 20, 64 << 10}, "at 64 KiB": {64 << 10, 32 << 10}, "at 32 KiB": {32 << 10, 16 << 10},
		"always": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := eagerLimit(64<<10, func(int) { wait((slow + fast) / 2) }, func(n int) bool {
				if n >= c.from {
					wait(fast)
				} else {
					wait(slow)
				}
				return true
			})
			if got != c.want {
				t.Errorf("%d bytes, want %d", got, c.want)
			}
		})
	}
}

// TestEagerLimitRefused has all messages go with their payload where the kernel copies nothing.
func TestEagerLimitRefused(t *testing.T) {
	if got := eagerLimit(64<<10, func(int) {}, func(int) bool { return false }); got != 64<<10 {
		t.Errorf("%d bytes", got)
	}
}

// TestEagerLimitHere measures this host.
func TestEagerLimitHere(t *testing.T) {
	got := EagerLimit(64 << 10)
	t.Logf("%d bytes", got)
	if got != 0 && got != 16<<10 && got != 32<<10 && got != 64<<10 {
		t.Errorf("%d bytes", got)
	}
}
