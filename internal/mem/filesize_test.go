package mem

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFileSize(t *testing.T) {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &own); err != nil {
		t.Fatal(err)
	}
	if own.Max < 1<<20 {
		t.Skip("files may not even have 1 MiB here")
	}
	defer unix.Setrlimit(unix.RLIMIT_FSIZE, &own)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 20, Max: own.Max}); err != nil {
		t.Fatal(err)
	}
	if err := FileSize(1 << 20); err != nil {
		t.Errorf("as long as may be: %v", err)
	}
	if err := FileSize(1<<20 + 1); !errors.Is(err, unix.EFBIG) {
		t.Errorf("longer: %v", err)
	}
}
