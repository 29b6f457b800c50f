//go:build !cgo

package cuda

// Load fails: the library is called through cgo.
func Load() error { return ErrAbsent }

// Register fails with ErrAbsent.
func Register(addr, n uint64, device int) (uint64, error) { return 0, ErrAbsent }

// Allocation fails with ErrAbsent.
func Allocation(addr uint64) (base, size uint64, err error) { return 0, 0, ErrAbsent }

// Buffer fails with ErrAbsent.
func Buffer(addr uint64) (uint64, error) { return 0, ErrAbsent }

// Copy fails with ErrAbsent.
func Copy(dst, src, n uint64) error { return ErrAbsent }

// Batch is a number of copies that are waited for together.
type Batch struct{}

// Copy fails with ErrAbsent.
func (b *Batch) Copy(dst, src, n uint64) error { return ErrAbsent }

// Wait has nothing to wait for.
func (b *Batch) Wait() error { return nil }

// Export fails with ErrAbsent.
func Export(base uint64) (Handle, error) { return Handle{}, ErrAbsent }

// DMABuf fails with ErrAbsent.
func DMABuf(base, size uint64) (fd int, offset uint64, err error) { return -1, 0, ErrAbsent }

// Import fails with ErrAbsent.
func Import(h *Handle, near uint64) (base, size uint64, err error) { return 0, 0, ErrAbsent }

// Unimport fails with ErrAbsent.
func Unimport(base uint64) error { return ErrAbsent }
