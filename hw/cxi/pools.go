package cxi

// bounceBuffer is the memory of a bounce buffer, and where it begins.
func (i *Iface) bounceBuffer(n int32) (b []byte, off int) {
	off = int(n) * i.stride
	return i.bounce.memory[off : off+i.stride : off+i.stride], off
}
