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
	"github.com/weft-fabric/weft/hw/cxi/internal/step"
)

// TestForbidden: a NIC whose file may not be opened, and services that do not admit this process, by a named error
// that says which.
func TestForbidden(t *testing.T) {
	if testing.Short() {
		t.Skip("a process for each case, of one thread")
	}
	launcher := []string{"SLINGSHOT_VNIS=1", "SLINGSHOT_DEVICES=cxi0", "SLINGSHOT_SVC_IDS=1"}
	for _, c := range []struct {
		name, settings string
		env            []string
		want           error
		text           string
	}{
		{"no permission", "open_rc=13", nil, hw.ErrPermission, "no permission for /dev/cxi0"},
		{"no file", "open_rc=2", nil, hw.ErrUnreachable, "no file /dev/cxi0"},
		{"no device", "open_rc=19", nil, hw.ErrUnreachable, "no file /dev/cxi0"},
		{"broken", "open_rc=5", nil, hw.ErrUnreachable, "open device 0"},
		{"none", "devices=0", nil, hw.ErrUnreachable, "no NIC on this host"},
		{"another user", "member=12345", nil, hw.ErrPermission, "none of the 1 services of cxi0 admits user"},
		{"another user, launched", "member=12345", launcher, hw.ErrPermission, "use service 1"},
		{"disabled", "enable=0", nil, hw.ErrPermission, "none of the 1 services of cxi0 admits user"},
		{"disabled, launched", "enable=0", launcher, hw.ErrPermission, "service 1 is not enabled"},
		{"no profile", "lcids=0", nil, hw.ErrNoResource, "communication profile for VNI 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
				alone(t, c.settings, c.env...)
				return
			}
			d, err := OpenDomain(DomainConfig{Library: library(t)})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("%v, want \"%s\"", err, c.text)
			}
			if d != nil {
				t.Error("a domain beside an error")
			}
		})
	}
}

// exact is a NIC that has what one domain, one interface on it and one region need, and nothing more; exactMatching is
// one for an interface that has it match messages.
const (
	exact         = "pids=2 eqs=4 txqs=1 tgqs=2 ptes=4"
	exactMatching = "pids=2 eqs=7 txqs=2 tgqs=3 ptes=7"
)

// TestFailedCall fails every call of the library, one at a time, with several errors: what is opened works or is
// refused by a named error, and nothing of it stays behind, so that it can be opened again.
func TestFailedCall(t *testing.T) {
	t.Run("messages", func(t *testing.T) { failCalls(t, exact, nil) })
	t.Run("matching", func(t *testing.T) {
		failCalls(t, exactMatching, &MatchConfig{Buffers: 2, BufferBytes: 1 << 16, Events: 64, Sends: 8, Receives: 8})
	})
}

func failCalls(t *testing.T, nic string, match *MatchConfig) {
	if os.Getenv("WEFT_TEST_CXI_CHILD") == "" {
		t.Log(alone(t, nic))
		return
	}
	if err := useNIC(t, match); err != nil {
		t.Fatal(err)
	}
	file := library(t)
	set := func(name string, value int) bool { return step.Set(file, name, value) == nil }
	const calls = 50 // more than there are
	for _, code := range []unix.Errno{unix.EIO, unix.ENOSPC, unix.ENOMEM, unix.EPERM, unix.EINVAL, unix.ENODEV} {
		refused := 0
		for n := 1; n <= calls; n++ {
			if !set("call_rc", int(code)) || !set("call_at", n) {
				t.Fatal("the model has no such setting")
			}
			began := time.Now()
			err := useNIC(t, match)
			if err != nil {
				refused++
				if !named(err) || time.Since(began) > answerTime {
					t.Errorf("call %d, %d (%v): after %v: %v", n, code, code, time.Since(began), err)
				}
			}
			set("call_at", 0)
			if err := useNIC(t, match); err != nil {
				t.Fatalf("after call %d failed with %v: %v", n, code, err)
			}
			if n == calls && err != nil {
				t.Errorf("there are more than %d calls: %v", calls, err)
			}
		}
		if refused < 15 {
			t.Errorf("%v: %d calls failed", code, refused)
		}
		fmt.Printf("%v: %d of %d calls refuse\n", code, refused, calls)
	}
}

// useNIC opens a domain, an interface and a region, sends a message and closes all.
func useNIC(t *testing.T, match *MatchConfig) (err error) {
	t.Helper()
	d, err := OpenDomain(DomainConfig{Library: library(t)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	i, err := d.Open(Config{RxBuffers: 4, RxBytes: 1 << 16, RxEvents: 64, BounceBytes: 256, BounceCount: 4, Posted: 32,
		ConnectWait: 10 * time.Second, Match: match})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	m, err := d.Alloc(hw.Region{Len: 4096, Access: hw.RemoteWrite})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	got := 0
	i.SetHandler(1, func(hw.Source, uint64, []byte, []byte) { got++ })
	ep, err := i.Connect(i.Address())
	if err == nil {
		err = ep.AMShort(1, 0, nil, nil)
	}
	for end := time.Now().Add(answerTime); err == nil && got == 0; i.Progress(1) {
		if time.Now().After(end) {
			t.Fatal("the message has not arrived")
		}
	}
	if err == nil && match != nil {
		err = useMatcher(t, i)
	}
	return err
}

// useMatcher sends a message that the NIC matches.
func useMatcher(t *testing.T, i *Iface) error {
	t.Helper()
	m, got := i.Matcher(), 0
	m.OnMatch(func(*hw.MatchEvent) { got++ })
	self, err := m.ParseMatchName(m.MatchName())
	if err == nil {
		_, err = m.PostReceive(&hw.MatchReceive{From: self})
	}
	if err == nil {
		err = m.PostMatched(&hw.MatchSend{To: self})
	}
	for end := time.Now().Add(answerTime); err == nil && got < 2; i.Progress(1) {
		if time.Now().After(end) {
			t.Fatal("the matched message has not arrived")
		}
	}
	return err
}
