package hot

import "unsafe"

// EpochReaders is how many threads can be epoch readers at once without the runtime.
const EpochReaders = 4096

// epochReaders are the lines of all epoch readers, with room to begin at a cache line.
var epochReaders [(EpochReaders + 1) * unsafe.Sizeof(EpochReader{})]byte

// EpochReaderAt is a line, by its number from 0 to EpochReaders - 1.
func EpochReaderAt(i int) *EpochReader {
	const line = unsafe.Sizeof(EpochReader{})
	begin := (line - uintptr(unsafe.Pointer(&epochReaders))%line) % line
	return (*EpochReader)(unsafe.Pointer(&epochReaders[begin+uintptr(i)*line]))
}
