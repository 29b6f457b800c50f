/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Fields of the formats of layout.h, which are little endian as the machines that the model runs on.
 */
#ifndef CASSINI_BITS_H
#define CASSINI_BITS_H

#include <stdint.h>
#include <string.h>

/* get and put take a field as layout.h writes it: its first bit and its width. */
static inline uint64_t get(const void *p, unsigned bit, unsigned width)
{
	uint64_t w;

	memcpy(&w, (const uint8_t *)p + bit / 64 * 8, 8);
	w >>= bit % 64;
	return width == 64 ? w : w & ((1ull << width) - 1);
}

static inline void put(void *p, unsigned bit, unsigned width, uint64_t value)
{
	uint8_t *at = (uint8_t *)p + bit / 64 * 8;
	uint64_t mask = (width == 64 ? ~0ull : (1ull << width) - 1) << bit % 64, w;

	memcpy(&w, at, 8);
	w = (w & ~mask) | (value << bit % 64 & mask);
	memcpy(at, &w, 8);
}

/* get_small reads a field of a structure that is shorter than 8 bytes. */
static inline uint64_t get_small(uint64_t word, unsigned bit, unsigned width)
{
	return get(&word, bit, width);
}

/* put_packet writes a field of a packet header, which may lie anywhere; the header is zero before. */
static inline void put_packet(uint8_t *p, unsigned bit, unsigned width, uint64_t value)
{
	for (unsigned i = 0; i < width; i++)
		if (value >> i & 1)
			p[(bit + i) / 8] |= 1u << (bit + i) % 8;
}

#endif
