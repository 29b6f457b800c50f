package addrs

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const _ = uint(headerPage - unsafe.Sizeof(fileHeader{})) // fits

// mapIt maps the header and, for the application, the array. The file was
// checked or initialised.
func (s *file) mapIt() error {
	prot := unix.PROT_READ
	if !s.readOnly {
		prot |= unix.PROT_WRITE
	}
	page, err := unix.MmapPtr(s.fd, 0, nil, headerPage, prot, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map header: %w", err)
	}
	s.header = (*fileHeader)(page)
	size := int(entriesOffset(s.capacity) - arrayOffset())
	array, err := unix.MmapPtr(s.fd, arrayOffset(), nil, uintptr(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map array: %w", err)
	}
	s.array = unsafe.Slice((*byte)(array), size)
	return nil
}

// unmap gives back what mapIt mapped.
func (s *file) unmap() {
	if s.header != nil {
		_ = unix.MunmapPtr(unsafe.Pointer(s.header), headerPage)
		s.header = nil
	}
	if s.array != nil {
		_ = unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(s.array)), uintptr(len(s.array)))
		s.array = nil
	}
}

// mapAddr is the address of the array, for fi_av_attr.
func (s *file) mapAddr() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s.array))) }
