package cq

import (
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// newCntr returns a counter's table off the Go heap and the memory it is in.
func newCntr() (*hot.Cntr, []byte, error) {
	memory, err := mem.Map(int(unsafe.Sizeof(hot.Cntr{})), 0)
	if err != nil {
		return nil, nil, err
	}
	return (*hot.Cntr)(unsafe.Pointer(unsafe.SliceData(memory))), memory, nil
}
