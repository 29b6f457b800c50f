/* SPDX-License-Identifier: BSD-2-Clause */
/* Byte patterns that show a lost, doubled, shifted or foreign byte, and guarded buffers. */
#include "common.h"

#define GUARD 64
#define GUARD_BYTE 0xe7

/* The word at position i: a multiply-and-shift of both, so that no two messages agree for long. */
static uint64_t word_at(uint64_t seed, uint64_t i)
{
	uint64_t z = (seed + 1) * 0x9e3779b97f4a7c15ull + i * 0xd1b54a32d192ed03ull;

	return (z ^ (z >> 29)) * 0xbf58476d1ce4e5b9ull;
}

void fill(void *buf, size_t len, uint64_t seed)
{
	char *p = buf;
	size_t words = len / 8;

	for (size_t i = 0; i < words; i++) {
		uint64_t w = word_at(seed, i);

		memcpy(p + i * 8, &w, 8);
	}
	if (len % 8) {
		uint64_t w = word_at(seed, words);

		memcpy(p + words * 8, &w, len % 8);
	}
}

static void verify_tail(const char *p, size_t at, size_t len, uint64_t w, uint64_t seed)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char want = (unsigned char)(w >> (8 * i));

		CHECKF((unsigned char)p[i] == want, "seed %llu: byte %zu is %#x, want %#x", (unsigned long long)seed,
		       at + i, (unsigned char)p[i], want);
	}
}

void verify(const void *buf, size_t len, uint64_t seed)
{
	const char *p = buf;
	size_t words = len / 8;

	for (size_t i = 0; i < words; i++) {
		uint64_t w = word_at(seed, i);

		if (memcmp(p + i * 8, &w, 8))
			verify_tail(p + i * 8, i * 8, 8, w, seed);
	}
	if (len % 8)
		verify_tail(p + words * 8, words * 8, len % 8, word_at(seed, words), seed);
}

void *guard_alloc(size_t len)
{
	unsigned char *p = malloc(len + 2 * GUARD);

	CHECK(p != NULL);
	memset(p, GUARD_BYTE, GUARD);
	memset(p + GUARD, 0x5a, len);
	memset(p + GUARD + len, GUARD_BYTE, GUARD);
	return p + GUARD;
}

void guard_free(void *buf, size_t len)
{
	unsigned char *p = (unsigned char *)buf - GUARD;

	for (size_t i = 0; i < GUARD; i++) {
		CHECKF(p[i] == GUARD_BYTE, "byte %zd before the buffer changed", (ssize_t)i - GUARD);
		CHECKF(p[GUARD + len + i] == GUARD_BYTE, "byte %zu after the buffer changed", i);
	}
	free(p);
}
