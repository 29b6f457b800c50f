package seam

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ringing rings a transport's doorbells beside gates in all states. It prints what is wrong.
const ringing = `
#include <stdio.h>
#include "seam.c"

static int rests;
static uint64_t rung[3];

/* Functions.Rest of two more queues. */
static uintptr_t enter(uintptr_t entry, uintptr_t a, uintptr_t b, uintptr_t from, uintptr_t d)
{
	(void)a, (void)d;
	if (entry != 99 || from != (uintptr_t)rests)
		printf("entry %zu, from %zu\n", (size_t)entry, (size_t)from);
	*(struct weft_bell *)b = (struct weft_bell){ .word = &rung[++rests], .value = 8 };
	return rests < 2 ? (uintptr_t)rests : 0;
}

static void once(struct weft_gate *gate, uint32_t state, bool posts, bool rest, bool word)
{
	struct weft_cxi_transport p = { .enter = enter, .rest = 99 };
	_Atomic uint32_t lock = 1;
	struct weft_bell bell = { .word = word ? rung : NULL, .value = 7, .lock = &lock, .rest = rest };
	uint32_t left = posts && state == WEFT_GATE_ALONE ? WEFT_GATE_OUT : state;

	weft_cxi_transport_init(&p);
	p.match.gate = gate;
	if (gate)
		gate->inside = state;
	rung[0] = rung[1] = rung[2] = 0;
	rests = 0;
	p.match.ring(&p.match, &bell, posts);
	if (gate && gate->inside != left)
		printf("state %u, posts %d: the gate is in state %u\n", state, posts, gate->inside);
	if (rung[0] != 7u * word || lock == word)
		printf("posts %d, word %d: rung with %d, lock %u\n", posts, word, (int)rung[0], lock);
	if (rests != 2 * (posts && rest) || rung[1] != 8u * (posts && rest) || rung[2] != rung[1])
		printf("posts %d, rest %d: %d others\n", posts, rest, rests);
}

int main(void)
{
	static struct weft_gate gate;

	for (int k = 0; k < 8; k++) {
		once(NULL, 0, k & 1, k & 2, k & 4);
		for (uint32_t state = 0; state < 3; state++)
			once(&gate, state, k & 1, k & 2, k & 4);
	}
	return 0;
}
`

// TestRingLeaves: behind the doorbells of a post, its own and those of others before it, C leaves the gate, if a thread
// is alone inside; behind that of a poll it does not.
func TestRingLeaves(t *testing.T) {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "ringing")
	cc := exec.Command("cc", "-std=gnu11", "-Wall", "-Wextra", "-iquote", here, "-x", "c", "-o", program, "-")
	cc.Stdin = strings.NewReader(ringing)
	if out, err := cc.CombinedOutput(); err != nil || len(out) != 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil || len(out) != 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
