//go:build !profile

package cxi

// profiled is of builds with the tag profile.
const profiled = false
