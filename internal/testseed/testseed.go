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

// Count is how many random programs a test runs: WEFT_TEST_SEEDS, or n. A value that is no number, or 0, fails
// the test.
func Count(t testing.TB, n uint64) uint64 {
	t.Helper()
	if env := os.Getenv("WEFT_TEST_SEEDS"); env != "" {
		var err error
		if n, err = strconv.ParseUint(env, 10, 32); err != nil {
			t.Fatalf("WEFT_TEST_SEEDS: %v", err)
		}
		if n == 0 {
			t.Fatal("WEFT_TEST_SEEDS: 0, at least 1")
		}
	}
	return n
}
