package hw

import (
	"errors"
	"testing"
)

// TestKeyNumbers reads what was appended, and refuses what cannot be.
func TestKeyNumbers(t *testing.T) {
	for _, n := range []uint8{0, 1, MaxKeys} {
		if got, err := ParseKey(AppendKey(nil, n)); got != n || err != nil {
			t.Errorf("%d: %d, %v", n, got, err)
		}
	}
	for _, b := range [][]byte{{1}, {0, 0, 0, 0}, {255, 0, 0, 0}, {1, 1, 0, 0}, {1, 0, 0, 0, 0}} {
		if _, err := ParseKey(b); !errors.Is(err, ErrInvalid) {
			t.Errorf("% x: %v", b, err)
		}
	}
	for name, keys := range map[string][]Key{
		"number 0":   {{0, []byte("a")}},
		"number 255": {{255, []byte("a")}},
		"twice":      {{1, []byte("a")}, {1, []byte("b")}},
		"empty":      {{1, nil}},
	} {
		if err := CheckKeys(keys); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckKeys([]Key{{1, []byte("a")}, {MaxKeys, []byte("a")}}); err != nil {
		t.Error(err)
	}
}
