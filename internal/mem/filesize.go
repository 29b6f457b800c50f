package mem

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// FileSize returns an error that wraps EFBIG where this process may not make a file of size
// bytes (RLIMIT_FSIZE). The kernel does not only refuse it: it ends the process by SIGXFSZ. So
// this is asked before a file is made longer.
func FileSize(size int64) error {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) == nil && uint64(size) > limit.Cur {
		return fmt.Errorf("%d bytes exceed the limit of a file's size, %d (RLIMIT_FSIZE): %w", size, limit.Cur,
			unix.EFBIG)
	}
	return nil
}
