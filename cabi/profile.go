//go:build profile

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"github.com/weft-fabric/weft/internal/log"
)

// profilePiece is how much time one file covers: processes end without notice.
const profilePiece = 300 * time.Millisecond

// A build with the tag profile writes where each process spends its time into the directory
// that WEFT_PROFILE names. scripts/pgo.sh makes weft.pgo of that, by which the
// compiler chooses what to inline (https://go.dev/doc/pgo).
func init() {
	if dir := os.Getenv("WEFT_PROFILE"); dir != "" {
		go profile(dir)
	}
}

func profile(dir string) {
	for n := 0; ; n++ {
		if err := profileOnce(filepath.Join(dir, fmt.Sprintf("%d-%d.pprof", os.Getpid(), n))); err != nil {
			log.Warnf(log.Core, "profile: %v", err)
			return
		}
	}
}

func profileOnce(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	time.Sleep(profilePiece)
	pprof.StopCPUProfile()
	return f.Close()
}
