/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One side of a ring in a file, for the tests of package mpsc.
 *
 *   ringproc produce FILE LOG2 BYTES OWNER COUNT    push messages 0..COUNT-1
 *   ringproc alone   FILE LOG2 BYTES OWNER COUNT    the same, as the only producer there is
 *   ringproc consume FILE LOG2 BYTES COUNT          pop COUNT messages and check them
 *   ringproc claim   FILE LOG2 BYTES OWNER          claim, print the position, wait to be killed
 *   ringproc stale   FILE LOG2 BYTES OWNER          one claim, print the position or "full"
 *   ringproc next    FILE LOG2 BYTES OWNER          the same, as the only producer there is
 *   ringproc layout                                 print what mpsc must agree with
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "weft/ring.h"

#include "ringsteps.h"

static struct weft_ring ring;
static size_t words;

static void map(char **argv)
{
	int fd = open(argv[2], O_RDWR);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		perror(argv[2]);
		exit(2);
	}
	unsigned char *m = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
	ring.tail = (_Atomic uint64_t *)m;
	ring.slots = m + WEFT_CACHE_LINE;
	ring.log2_slots = atoi(argv[3]);
	ring.slot_bytes = atoi(argv[4]);
	words = ring.slot_bytes / 8;
}

static uint64_t message(uint32_t owner, uint64_t n, size_t word)
{
	return (n << 16 | owner) ^ (word - 1) * 0x9e3779b97f4a7c15ull;
}

static void produce(uint32_t owner, uint64_t count, bool alone)
{
	for (uint64_t n = 0; n < count; n++) {
		uint64_t pos;
		_Atomic uint64_t *slot;

		while (!(slot = weft_ring_claim(&ring, owner, alone, &pos)))
			sched_yield();
		for (size_t i = 1; i < words; i++)
			((uint64_t *)slot)[i] = message(owner, n, i);
		weft_ring_publish(&ring, slot, owner, pos);
	}
}

static int consume(uint64_t count)
{
	static uint64_t next[WEFT_SEQ_OWNER_MASK + 1];

	for (uint64_t pos = 0; pos < count; pos++) {
		while (!weft_ring_ready(&ring, pos))
			sched_yield();
		uint64_t *slot = (uint64_t *)weft_ring_slot(&ring, pos);
		uint32_t owner = weft_seq_owner(slot[0]);
		for (size_t i = 1; i < words; i++) {
			if (slot[i] != message(owner, next[owner], i)) {
				fprintf(stderr, "position %" PRIu64 ": owner %u word %zu\n", pos, owner, i);
				return 1;
			}
		}
		next[owner]++;
		weft_ring_release(&ring, pos);
	}
	return weft_ring_ready(&ring, count);
}

static int claim(uint32_t owner, bool wait, bool alone)
{
	uint64_t pos;

	if (!weft_ring_claim(&ring, owner, alone, &pos)) {
		printf("full\n");
		return 0;
	}
	printf("%" PRIu64 "\n", pos);
	fflush(stdout);
	while (wait)
		pause();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "layout")) {
		printf("%d %d %d %d %u %d %zu %zu %zu %zu\n", WEFT_SLOT_FREE, WEFT_SLOT_TAKEN, WEFT_SLOT_READY,
		       WEFT_SEQ_OWNER_SHIFT, WEFT_SEQ_OWNER_MASK, WEFT_SEQ_LAP_SHIFT, sizeof(ring),
		       offsetof(struct weft_ring, tail), offsetof(struct weft_ring, log2_slots),
		       offsetof(struct weft_ring, slot_bytes));
		return 0;
	}
	if (argc < 6)
		return 2;
	map(argv);
	if (argc == 7) {
		produce(atoi(argv[5]), strtoull(argv[6], NULL, 10), !strcmp(argv[1], "alone"));
		return 0;
	}
	if (!strcmp(argv[1], "consume"))
		return consume(strtoull(argv[5], NULL, 10));
	return claim(atoi(argv[5]), !strcmp(argv[1], "claim"), !strcmp(argv[1], "next"));
}
