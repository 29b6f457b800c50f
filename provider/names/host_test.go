package names

import (
	"errors"
	"testing"
	"time"
)

// TestHost: interfaces that are new are found when an address is asked for, but not at once again; what fails is said.
func TestHost(t *testing.T) {
	calls, fails := 0, error(nil)
	var h Host
	h.Use(func() ([]Interface, error) {
		calls++
		ifis, err := host()
		if calls == 1 {
			ifis = ifis[1:2]
		}
		return ifis, errors.Join(err, fails)
	})
	lo, eth := nameAt("127.0.0.1"), nameAt("10.0.0.5")
	if !h.Has(lo) || h.Has(eth) || calls != 1 {
		t.Fatalf("after %d calls", calls)
	}
	h.read = time.Now().Add(-hostAge)
	if !h.Has(eth) || calls != 2 {
		t.Fatalf("new address not found, %d calls", calls)
	}
	if list := h.All(); len(list) != 7 || list[0] != nameAt("10.0.0.5").WithPort(0) {
		t.Errorf("%v", list)
	}
	h.read, fails = time.Now().Add(-hostAge), errors.New("no descriptors")
	if is, err := h.Find(nameAt("10.9.9.9")); is || !errors.Is(err, fails) {
		t.Errorf("%v, %v", is, err)
	}
	if is, err := h.Find(eth); !is || err != nil {
		t.Errorf("a known address: %v, %v", is, err)
	}
	if _, err := h.Locals(); !errors.Is(err, fails) {
		t.Errorf("%v", err)
	}
	h.Use(nil)
	if !h.Has(lo) {
		t.Error("the kernel has no 127.0.0.1")
	}
}
