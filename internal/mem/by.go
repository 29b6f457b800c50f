package mem

// How [CopyBy] copies: one of the ways, with or without Timed.
const (
	Strings = 0 // string moves, as Stream
	// PastCaches has the bytes go to memory: their lines leave the caches of all processors, and another that reads
	// them has them from memory rather than from the cache of the one that wrote them.
	PastCaches = 1
	Vectors    = 2 // loads and stores of 32 bytes
	Timed      = 4 // CopyBy says how long it took
)
