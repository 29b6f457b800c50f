//go:build !race

package lease

func mustBeTaken(*uint32) {}
