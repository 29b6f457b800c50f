package match

import (
	"math/bits"

	"github.com/weft-fabric/weft/internal/mem"
)

// store is where all nodes of an engine live, and how their keys are hashed.
type store struct {
	mem.Slab[node]
	secret [2]uint64 // random; immutable
}

// hash hashes what counts of a source and a tag. It multiplies the two, each mixed with a secret, to 128 bits and
// folds them, as wyhash does.
func (s *store) hash(k *key, source uint32, tag uint64) uint64 {
	hi, lo := bits.Mul64(tag&^k.ignore^s.secret[0], uint64(source&k.source)^s.secret[1])
	return hi ^ lo
}
