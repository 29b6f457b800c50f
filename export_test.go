package weft

import "github.com/weft-fabric/weft/fi"

// Vector describes memory for package provider.
func Vector(b []byte) []fi.IOVec { return []fi.IOVec{vector(b)} }
