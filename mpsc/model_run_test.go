package mpsc

import "testing"

// TestModel runs the algorithm in every order of its steps: nothing is lost,
// doubled, torn or overtaken, claims are made in the order of positions, and
// no state is a dead end, deaths included.
func TestModel(t *testing.T) {
	for _, r := range []rules{
		{messages: [...]uint8{6, 0, 0}},
		{messages: [...]uint8{6, 0, 0}, deaths: 1},
		{messages: [...]uint8{3, 3, 0}},
		{messages: [...]uint8{3, 3, 0}, deaths: 1},
		{messages: [...]uint8{2, 2, 0}, deaths: 2},
		{messages: [...]uint8{1, 1, 1}, deaths: 2},
		{messages: [...]uint8{2, 2, 1}, deaths: 2},
	} {
		if testing.Short() && r.messages[2] > 0 {
			continue
		}
		n, err := explore(r)
		if err != nil {
			t.Errorf("%+v: %v", r, err)
		}
		t.Logf("%+v: %d states", r, n)
	}
}

// TestModelFindsMutants shows that each of the model's checks can fail.
func TestModelFindsMutants(t *testing.T) {
	for name, r := range map[string]rules{
		"claim without compare-and-swap":   {messages: [...]uint8{1, 1, 0}, plainClaim: true},
		"publish before the body":          {messages: [...]uint8{1, 0, 0}, earlyPublish: true},
		"release before the body was read": {messages: [...]uint8{3, 0, 0}, earlyRelease: true},
		"stale tail walked slot by slot":   {messages: [...]uint8{2, 2, 1}, deaths: 2, noJump: true},
	} {
		if testing.Short() && r.noJump {
			continue
		}
		n, err := explore(r)
		if err == nil {
			t.Errorf("%s: not found in %d states", name, n)
		}
		t.Logf("%s: %v", name, err)
	}
}
