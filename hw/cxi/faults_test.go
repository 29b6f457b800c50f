package cxi

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// TestRefusedCommand: whichever command the NIC refuses, while an interface is opened or messages are on their way,
// there is an error with a name, or everything arrives; nothing waits for ever.
func TestRefusedCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("a process for each case, of one thread")
	}
	commands := []int{1, 2, 3, 11, 12, 13, 14, 15, 16, 20, 25, 30}
	for k, n := range commands {
		code := []int{wire.RcUndeliverable, wire.RcCmdInvalidArg, wire.RcIllegalOp}[k%3]
		settings := fmt.Sprintf("fault_at=%d fault_rc=%d", n, code)
		t.Run(settings, func(t *testing.T) {
			if os.Getenv("WEFT_TEST_CXI_CHILD") != "" {
				refusedCommand(t)
				return
			}
			for line := range strings.Lines(alone(t, settings)) {
				if strings.Contains(line, "outcome: ") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

// named reports whether an error says what a program can act on.
func named(err error) bool {
	for _, want := range []error{unix.EIO, hw.ErrNoResource, hw.ErrPeerDead, hw.ErrUnreachable, hw.ErrPermission, hw.ErrInvalid} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

func refusedCommand(t *testing.T) {
	began := time.Now()
	i, err := domain(t).Open(Config{RxBuffers: 8, RxBytes: 1 << 16, BounceBytes: 1024, ConnectWait: time.Second, PathTimeout: 100 * time.Millisecond})
	if err != nil {
		if !named(err) || time.Since(began) > answerTime {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		t.Logf("outcome: %v", err)
		return
	}
	const count = 30
	got, lost := 0, error(nil)
	i.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
	i.OnPeerEvent(func(e hw.PeerEvent) { lost = e.Err })
	ep, err := i.Connect(i.Address())
	for sent := 0; err == nil && got < count && lost == nil; {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d of %d messages arrived, and no error", got, count)
		}
		if sent < count {
			if err = ep.AMShort(1, uint64(sent), nil, make([]byte, 8*(sent%3))); err == nil {
				sent++
			} else if errors.Is(err, hw.ErrNoResource) {
				err = nil
			}
		}
		i.Progress(8)
		i.CheckPeers()
	}
	if err == nil {
		err = lost
	}
	if err != nil && !named(err) {
		t.Errorf("%v", err)
	}
	t.Logf("outcome: %d messages, %v", got, err)
	if err := i.Close(); err != nil {
		t.Error(err)
	}
}
