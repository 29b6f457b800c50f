package mem

import "unsafe"

const page = 4096

// Touch reads a byte of each page of n bytes at an address, of which it returns a sum: memory that is not there faults
// here, where the caller has taken nothing, and not in the middle of a copy.
func Touch(addr uintptr, n uint64) byte {
	if n-1 < page { // and is not 0
		return ends(addr, uintptr(n-1))
	}
	return touch(addr, n)
}

// ends reads the first and the last byte. It is a call, whose result is used for nothing, so that the reads stay.
//
//go:norace
//go:noinline
func ends(addr, last uintptr) byte {
	at := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	return *(*byte)(at) + *(*byte)(unsafe.Add(at, last))
}

//go:norace
//go:noinline
func touch(addr uintptr, n uint64) (sum byte) {
	if n == 0 {
		return 0
	}
	at, last := *(*unsafe.Pointer)(unsafe.Pointer(&addr)), n-1
	for done := uint64(0); done < last; done += page {
		sum += *(*byte)(unsafe.Add(at, done))
	}
	return sum + *(*byte)(unsafe.Add(at, last))
}
