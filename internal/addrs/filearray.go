package addrs

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
)

// writeArray writes a word of the array.
func (s *file) writeArray(i, value uint64) error {
	return pwriteAll(s.fd, binary.LittleEndian.AppendUint64(nil, value), arrayOffset()+int64(i)*8)
}

// fill makes the first n words of the array, as far as it has them, fi.AddrNotAvail where nothing was written yet. The
// caller has byte 1. Errors are the system's: fi.ENOSPC.
func (s *file) fill(n uint64) error {
	n = min((n+arrayStep-1)/arrayStep*arrayStep, s.capacity)
	for at := atomic.LoadUint64(&s.header.filled); at < n; {
		words := min(arrayStep, n-at)
		if err := pwriteAll(s.fd, bytes.Repeat([]byte{0xff}, int(words)*8), arrayOffset()+int64(at)*8); err != nil {
			return fmt.Errorf("write the array: %w", err)
		}
		at += words
		atomic.StoreUint64(&s.header.filled, at)
	}
	return nil
}

// repair makes the array that of the entries, after a writer has died between writing one and the other. The caller has
// byte 1 and the address vector's lock, and has called sync.
func (s *file) repair() error {
	filled := min(atomic.LoadUint64(&s.header.filled), s.capacity)
	for i := range filled {
		want := uint64(math.MaxUint64)
		if i < uint64(len(s.seen)) && s.seen[i]&1 != 0 {
			want = i
		}
		if binary.LittleEndian.Uint64(s.array[8*i:]) == want {
			continue
		}
		if err := s.writeArray(i, want); err != nil {
			return fmt.Errorf("write the array: %w", err)
		}
	}
	return nil
}
