package addrs

import "sync/atomic"

// entryReader reads entries, some at a time, and distinguishes those that change meanwhile. Every field belongs to the
// goroutine that uses it.
type entryReader struct {
	file       *file
	locked     bool   // the goroutine has the lock for changes
	generation uint64 // at which what is read is to be
	// The entries read last, three times: a sequence number is of the first, the name of the second, and the number
	// after it of the third. All three are one where nothing was written between.
	read1, read2, read3 []byte
	room                [3][]byte
	moving              bool // some entry has changed while it was read
}

// quiet reports whether no entry has been written since the generation ended. A change sets dirty before it writes the
// first entry, and adds to the generation after the last, before it clears dirty.
func (r *entryReader) quiet() bool {
	h := r.file.header
	return r.locked || atomic.LoadUint64(&h.dirty) == 0 && atomic.LoadUint64(&h.generation) == r.generation
}

// read reads n entries from first on.
func (r *entryReader) read(first, n uint64) (err error) {
	quiet := r.quiet()
	if r.read1, err = r.once(0, first, n); err != nil {
		return err
	}
	if quiet && r.quiet() {
		r.read2, r.read3 = r.read1, r.read1
		return nil
	}
	if r.read2, err = r.once(1, first, n); err == nil {
		r.read3, err = r.once(2, first, n)
	}
	return err
}

// once reads n entries from first on into one of the rooms.
func (r *entryReader) once(room int, first, n uint64) ([]byte, error) {
	if r.room[room] == nil {
		r.room[room] = make([]byte, n*entryBytes) // no later call reads more
	}
	b := r.room[room][:n*entryBytes]
	return b, preadAll(r.file.fd, b, r.file.entryOffset(first))
}

// entry returns the k-th entry read, false if it has changed meanwhile.
func (r *entryReader) entry(k uint64) (seq uint64, name packed, ok bool) {
	at := k * entryBytes
	seq, _ = decodeEntry(r.read1[at:])
	_, name = decodeEntry(r.read2[at:])
	if after, _ := decodeEntry(r.read3[at:]); after != seq {
		r.moving = true
		return 0, packed{}, false
	}
	return seq, name, true
}
