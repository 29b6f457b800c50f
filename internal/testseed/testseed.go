// Package testseed chooses the seeds of tests that are random programs.
package testseed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// New is the seed of a random program: WEFT_TEST_SEED, or any. It is in the output of a test that fails.
func New(t testing.TB) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("WEFT_TEST_SEED"), 0, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("WEFT_TEST_SEED=%d", seed)
	return seed
}

// Count is how many random programs a test runs: WEFT_TEST_SEEDS, or otherwise.
func Count(otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv("WEFT_TEST_SEEDS")); err == nil && n > 0 {
		return n
	}
	return otherwise
}
