//go:build profile

package cxi

// profiled says that C drives interfaces also where the data plane is called through the runtime, whose profiler sees
// what the data plane calls (scripts/pgo.sh).
const profiled = true
