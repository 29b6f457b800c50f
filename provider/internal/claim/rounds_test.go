package claim

import "testing"

// begin begins a round that has to begin.
func begin(t *testing.T, r *Rounds, w *Words, n uint64) uint64 {
	t.Helper()
	round, ok := r.Begin(w, n)
	if !ok {
		t.Fatalf("no round: %+v", r)
	}
	return round
}

// TestRounds goes through two rounds with a helper that has counted before: the second begins when all chunks of the
// first are taken, a third when the helper has completed those of the first.
func TestRounds(t *testing.T) {
	var r Rounds
	w := Words{0, 1<<32 - 1}
	one := begin(t, &r, &w, 3)
	if _, ok := r.Begin(&w, 3); ok || r.Ready() {
		t.Fatal("a round begins while one is open")
	}
	if i, ok := w.TakeBack(one, 3); !ok || i != 2 {
		t.Fatalf("chunk %d, %v", i, ok)
	}
	needs := r.Taken(3 - w.Stop(one, 3))
	if needs != 0 {
		t.Errorf("the first round needs the count %d, want 0", needs)
	}
	two := begin(t, &r, &w, 1)
	if two == one {
		t.Error("two rounds have one number")
	}
	if next := r.Taken(1 - w.Stop(two, 1)); next != needs {
		t.Errorf("a round without the helper needs the count %d, want %d", next, needs)
	}
	if r.Ready() {
		t.Error("a third round may begin while two are incomplete")
	}
	w.Count(false)
	if done, failed := w.Wait(needs, 1); !done || failed {
		t.Errorf("done %v, failed %v", done, failed)
	}
	r.End()
	if begin(t, &r, &w, 1); r.Offers() != 3 {
		t.Errorf("%d offers", r.Offers())
	}
}

// TestRefused: after a chunk at which the helper failed, or Refuse, no round begins.
func TestRefused(t *testing.T) {
	var asked, failed Rounds
	var w Words
	asked.Refuse()
	if _, ok := asked.Begin(&w, 1); ok {
		t.Error("a round begins after Refuse")
	}
	w.Count(true)
	if _, ok := failed.Begin(&w, 1); ok || !failed.Refused() || w[0] != 0 {
		t.Errorf("a round begins, %v, after a failure: %+v", ok, failed)
	}
}

// TestUnseen: offers count until the helper polls them, those that are canceled do not.
func TestUnseen(t *testing.T) {
	var r Rounds
	var w Words
	for range MaxRounds {
		begin(t, &r, &w, 1)
		r.Cancel()
		round := begin(t, &r, &w, 1)
		r.Taken(1 - w.Stop(round, 1))
		r.End()
	}
	if n := r.Unseen(&w); n != MaxRounds {
		t.Errorf("%d offers are not seen, want %d", n, MaxRounds)
	}
	w.See()
	if n := r.Unseen(&w); n != MaxRounds-1 {
		t.Errorf("%d offers are not seen after one is polled", n)
	}
}

// TestDelegate delegates rounds of one chunk: a reclaimed one needs nothing of the helper, one that it takes does.
func TestDelegate(t *testing.T) {
	var r Rounds
	var w Words
	round := begin(t, &r, &w, 1)
	if needs := r.Delegate(); needs != 1 || r.Ready() {
		t.Errorf("needs the count %d, ready %v", needs, r.Ready())
	}
	if _, ok := w.TakeFront(round, 1); !ok {
		t.Fatal("not reclaimed")
	}
	r.Reclaim()
	round = begin(t, &r, &w, 1)
	needs := r.Delegate()
	if _, ok := w.TakeBack(round, 1); !ok || needs != 1 {
		t.Fatalf("taken %v, needs the count %d", ok, needs)
	}
	if r.Close(); !r.Ready() {
		t.Error("no other round while the helper is at its chunk")
	}
	begin(t, &r, &w, 1)
	if other := r.Delegate(); other != 2 {
		t.Errorf("the next needs the count %d, want 2", other)
	}
}

// TestRoundNumbers: no round has number 0, which is what words of no round hold.
func TestRoundNumbers(t *testing.T) {
	r := Rounds{round: 1<<16 - 1}
	var w Words
	if round := begin(t, &r, &w, 1); round != 1 {
		t.Errorf("round %d, want 1", round)
	}
}
