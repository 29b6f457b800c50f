//go:build !race

package lease

func mustBeTaken(*uint32) {}

func taken[T any](*T) {}
func given[T any](*T) {}
