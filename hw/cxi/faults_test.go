package cxi

import (
	"bytes"
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
	seen := 0
	for k, n := range commands {
		code := []int{wire.RcUndeliverable, wire.RcCmdInvalidArg, wire.RcIllegalOp}[k%3]
		settings := fmt.Sprintf("fault_at=%d fault_rc=%d", n, code)
		t.Run(settings, func(t *testing.T) {
			if os.Getenv("WEFT_TEST_CXI_CHILD") != "" {
				refusedCommand(t)
				return
			}
			for line := range strings.Lines(alone(t, settings)) {
				if _, outcome, ok := strings.Cut(strings.TrimSpace(line), "outcome: "); ok {
					t.Log(outcome)
					if outcome != allArrived {
						seen++
					}
				}
			}
		})
	}
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" && seen < len(commands)*3/4 {
		t.Errorf("%d of %d refused commands were seen", seen, len(commands))
	}
}

// refusedMessages are how many are sent while a command is refused.
const refusedMessages = 30

// allArrived is the outcome where nothing was seen of it.
var allArrived = fmt.Sprintf("%d messages, <nil>", refusedMessages)

// named reports whether an error says what a program can act on.
func named(err error) bool {
	for _, want := range []error{unix.EIO, hw.ErrNoResource, hw.ErrPeerDead, hw.ErrUnreachable, hw.ErrPermission,
		hw.ErrInvalid} {
		if errors.Is(err, want) {
			return true
		}
	}
	return false
}

// refusedData are the bytes of a message.
func refusedData(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 8*(n%3)) }

func refusedCommand(t *testing.T) {
	began := time.Now()
	i, err := domain(t).Open(Config{RxBuffers: 8, RxBytes: 1 << 16, BounceBytes: 1024, ConnectWait: time.Second,
		PathTimeout: 100 * time.Millisecond})
	if err != nil {
		if !named(err) || time.Since(began) > answerTime {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		t.Logf("outcome: %v", err)
		return
	}
	got, lost := 0, error(nil)
	i.SetHandler(1, func(_ hw.Source, header uint64, _, data []byte) {
		if header != uint64(got) || !bytes.Equal(data, refusedData(got)) {
			t.Errorf("message %d is %d with %d bytes", got, header, len(data))
		}
		got++
	})
	i.OnPeerEvent(func(e hw.PeerEvent) { lost = e.Err })
	ep, err := i.Connect(i.Address())
	for sent := 0; err == nil && got < refusedMessages && lost == nil; {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d of %d messages arrived, and no error", got, refusedMessages)
		}
		if sent < refusedMessages {
			if err = ep.AMShort(1, uint64(sent), nil, refusedData(sent)); err == nil {
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
