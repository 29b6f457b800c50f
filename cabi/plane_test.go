package main

import "testing"

// TestPlane: each number of a function of the data plane has one.
func TestPlane(t *testing.T) {
	for i, f := range plane {
		if f == nil {
			t.Errorf("no function has number %d", i)
		}
	}
}
