// Package logtest reads the log in tests.
package logtest

import (
	"sync"
	"testing"

	"github.com/weft-fabric/weft/internal/log"
)

// Capture has the log write messages down to a level until the test ends, and returns a function that returns those
// since it was called last, each as "level subsystem text". Messages may come from any goroutine. Tests that capture do
// not run side by side: there is one log.
func Capture(t testing.TB, least log.Level) func() []string {
	t.Helper()
	var mu sync.Mutex
	var lines []string
	log.SetSink(func(l log.Level, s log.Subsys, text string) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, l.String()+" "+s.String()+" "+text)
	})
	log.SetEnabled(func(l log.Level, _ log.Subsys) bool { return l <= least })
	t.Cleanup(func() {
		log.SetSink(nil)
		log.SetEnabled(func(log.Level, log.Subsys) bool { return false })
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		list := lines
		lines = nil
		return list
	}
}
