package mpsc

import (
	"testing"
	"time"
)

// TestModel runs the algorithm in every order of its steps, with store buffers
// and deaths: nothing is lost, doubled, torn or overtaken, and there is no dead
// end.
func TestModel(t *testing.T) {
	for _, r := range []rules{
		{messages: [...]uint64{4, 0, 0}, tso: true, deaths: 1},
		{messages: [...]uint64{2, 1, 0}, tso: true},
		{messages: [...]uint64{1, 1, 0}, tso: true, deaths: 2},
		{messages: [...]uint64{2, 2, 0}, deaths: 1},
		{messages: [...]uint64{2, 1, 0}, deaths: 1, laps: 3},
		{messages: [...]uint64{1, 1, 0}, deaths: 2},
		{messages: [...]uint64{1, 1, 1}},
	} {
		if testing.Short() && (r.messages[2] > 0 || r.tso) {
			continue
		}
		began := time.Now()
		n, err := explore(r)
		if err != nil {
			t.Errorf("%+v: %v", r, err)
		}
		t.Logf("%+v: %+v in %v", r, n, time.Since(began).Round(time.Millisecond))
	}
}

// TestModelFindsMutants shows that each of the model's checks can fail.
func TestModelFindsMutants(t *testing.T) {
	for name, r := range map[string]rules{
		"claim without compare-and-swap":   {messages: [...]uint64{1, 1, 0}, plainClaim: true},
		"publish before the body":          {messages: [...]uint64{1, 0, 0}, earlyPublish: true},
		"release before the body was read": {messages: [...]uint64{3, 0, 0}, earlyRelease: true},
		"stale tail walked slot by slot":   {messages: [...]uint64{1, 0, 0}, laps: 3, noJump: true},
		"slots of the dead left alone":     {messages: [...]uint64{1, 3, 0}, deaths: 1, noReclaim: true},
	} {
		n, err := explore(r)
		if err == nil {
			t.Errorf("%s: not found in %+v", name, n)
		}
		t.Logf("%s: %v", name, err)
	}
}
