package mem

// Buffers are buffers of one length. Those that were not used take address space only. The zero Buffers has none.
type Buffers struct {
	memory []byte
	size   int
}

// Open makes n buffers of size bytes each, which may be 0.
func (b *Buffers) Open(n, size int) (err error) {
	if b.size = size; n*size == 0 {
		return nil
	}
	b.memory, err = Map(n*size, NoReserve)
	return err
}

// At is the i-th buffer.
func (b *Buffers) At(i int) []byte { return b.memory[i*b.size:][:b.size] }

// Close gives the memory back.
func (b *Buffers) Close() {
	if b.memory != nil {
		_ = Unmap(b.memory)
		b.memory = nil
	}
}
