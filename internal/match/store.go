package match

import (
	"math/bits"

	"github.com/weft-fabric/weft/internal/mem"
)

// store is where all nodes of an engine live, and how their keys are hashed.
type store struct {
	mem.Slab[node]
	secret [2]uint64 // random; immutable
	steps  uint64    // see Engine.Steps
}

// hash hashes what counts of a source and a tag. It multiplies the two, each mixed with a secret, to 128 bits and
// folds them, as wyhash does, and does so again with a constant, because some secrets spread some series of tags
// badly.
func (s *store) hash(k *key, source uint32, tag uint64) uint64 {
	hi, lo := bits.Mul64(tag&^k.ignore^s.secret[0], uint64(source&k.source)^s.secret[1])
	hi, lo = bits.Mul64(hi^lo, 0x9e3779b97f4a7c15) // 2^64 / golden ratio
	return hi ^ lo
}

// append adds a node to the end of a list of nodes with its key, by link l.
func (s *store) append(list *slot, n *node, idx uint32, l uint32) {
	s.At(list.tail).links[l%MaxClasses].next = idx
	n.links[l%MaxClasses].prev = list.tail
	list.tail = idx
}
