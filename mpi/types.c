/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Datatypes: which are plain bytes in their order, and packing of those that are
 * not.
 */
#include <stdlib.h>
#include <string.h>

#include "weftmpi.h"

/* The widest distance between the parts of one buffer that weft takes. */
#define MAX_SPAN (1ull << 40)

/* What one call of MPI_Pack takes: its sizes are ints. */
#define PACK_AT_ONCE (1 << 30)

/* What an empty side has for a buffer. */
static char nothing[1];

int64_t type_size(MPI_Datatype type, int64_t *extent)
{
	MPI_Count size, lb, ex;

	PMPI_Type_size_x(type, &size);
	PMPI_Type_get_extent_x(type, &lb, &ex);
	*extent = ex;
	return size == MPI_UNDEFINED ? -1 : size;
}

/* What the constructor of a type had, by MPI_Type_get_envelope. */
struct made {
	int combiner;
	MPI_Count ints, aints, counts, types;
};

#if MPI_VERSION >= 4
static int made_by(MPI_Datatype type, struct made *m)
{
	return PMPI_Type_get_envelope_c(type, &m->ints, &m->aints, &m->counts, &m->types, &m->combiner);
}

static int contents(MPI_Datatype type, const struct made *m, int i[], MPI_Aint a[], MPI_Count c[], MPI_Datatype t[])
{
	return PMPI_Type_get_contents_c(type, m->ints, m->aints, m->counts, m->types, i, a, c, t);
}
#else
static int made_by(MPI_Datatype type, struct made *m)
{
	int ints = 0, aints = 0, types = 0, rc = PMPI_Type_get_envelope(type, &ints, &aints, &types, &m->combiner);

	m->ints = ints;
	m->aints = aints;
	m->counts = 0;
	m->types = types;
	return rc;
}

static int contents(MPI_Datatype type, const struct made *m, int i[], MPI_Aint a[], MPI_Count c[], MPI_Datatype t[])
{
	(void)c;
	return PMPI_Type_get_contents(type, (int)m->ints, (int)m->aints, (int)m->types, i, a, t);
}
#endif

/* Handles of the MPI's own types are good for ever. */
static bool named(int combiner)
{
	return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
	       combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

static bool type_named(MPI_Datatype type)
{
	struct made m;

	return !made_by(type, &m) && named(m.combiner);
}

/* Whether the elements are bytes without gaps, in the order in which they are sent. */
static bool plain(MPI_Datatype type)
{
	struct made m;
	int i[1];
	MPI_Aint a[1];
	MPI_Count c[1], size, lb, extent;
	MPI_Datatype inner;
	bool yes;

	PMPI_Type_size_x(type, &size);
	PMPI_Type_get_extent_x(type, &lb, &extent);
	if (lb != 0 || size != extent || made_by(type, &m))
		return false;
	if (named(m.combiner))
		return true;
	if ((m.combiner != MPI_COMBINER_DUP && m.combiner != MPI_COMBINER_CONTIGUOUS) || m.ints > 1 || m.aints > 0 ||
	    m.counts > 1 || m.types != 1 || contents(type, &m, i, a, c, &inner))
		return false;
	yes = plain(inner);
	if (!type_named(inner))
		PMPI_Type_free(&inner);
	return yes;
}

static int64_t entries_of(const struct list *l, int i)
{
	if (!l->counts)
		return l->count;
	return l->wide ? ((const MPI_Count *)l->counts)[i] : ((const int *)l->counts)[i];
}

static int64_t displ_of(const struct list *l, int i)
{
	return l->wide ? ((const MPI_Aint *)l->displs)[i] : ((const int *)l->displs)[i];
}

static MPI_Datatype type_of(const struct list *l, int i)
{
	return l->types ? l->types[i] : l->type;
}

bool list_valid(const struct list *l, int n)
{
	for (int i = 0; i < (l->counts || l->types ? n : 1); i++)
		if (entries_of(l, i) < 0 || (entries_of(l, i) && type_of(l, i) == MPI_DATATYPE_NULL))
			return false;
	return true;
}

/* What is known of the last type. */
struct known {
	MPI_Datatype type, kept;
	int64_t size, extent;
	bool plain, fresh; /* fresh: kept was made now */
};

static int learn(struct known *k, MPI_Datatype type, bool keep)
{
	k->fresh = false;
	if (k->type == type)
		return MPI_SUCCESS;
	k->type = k->kept = type;
	k->size = type_size(type, &k->extent);
	k->plain = k->size >= 0 && plain(type);
	if (k->size < 0)
		return MPI_ERR_TYPE;
	k->fresh = keep && !type_named(type);
	return k->fresh ? PMPI_Type_dup(type, &k->kept) : MPI_SUCCESS;
}

/* Fills in parts and counts. Says whether all are plain, and where they lie. */
static int parts_fill(struct side *s, const struct list *l, int n, bool keep, bool *all, uintptr_t *low,
		      uintptr_t *high)
{
	struct known k = { .type = MPI_DATATYPE_NULL };

	*all = true;
	*low = UINTPTR_MAX;
	*high = 0;
	for (int i = 0; i < n; i++) {
		struct part *p = &s->parts[i];
		int64_t bytes;
		int rc;

		p->count = entries_of(l, i);
		p->type = MPI_DATATYPE_NULL;
		if (!p->count) /* it has no type, perhaps */
			continue;
		rc = learn(&k, type_of(l, i), keep);
		if (rc)
			return rc;
		p->type = k.kept;
		p->owned = k.fresh;
		p->addr = (char *)l->buf +
			  (!l->displs ? i * p->count * k.extent : displ_of(l, i) * (l->types ? 1 : k.extent));
		if (__builtin_mul_overflow(p->count, k.size, &bytes) ||
		    __builtin_add_overflow(s->total, bytes, &s->total))
			return MPI_ERR_COUNT;
		s->counts[i] = bytes;
		if (!bytes)
			continue;
		*all &= k.plain;
		if ((uintptr_t)p->addr < *low)
			*low = (uintptr_t)p->addr;
		if ((uintptr_t)p->addr + bytes > *high)
			*high = (uintptr_t)p->addr + bytes;
	}
	return MPI_SUCCESS;
}

int side_build(struct side *s, const struct list *l, int n, bool keep)
{
	uintptr_t low, high;
	bool all;
	int rc;

	memset(s, 0, sizeof(*s));
	s->parts = calloc(n, sizeof(*s->parts) + 2 * sizeof(uint64_t));
	if (!s->parts)
		return MPI_ERR_NO_MEM;
	s->counts = (uint64_t *)(s->parts + n);
	s->displs = s->counts + n;
	rc = parts_fill(s, l, n, keep, &all, &low, &high);
	if (rc)
		return rc;
	if (!s->total) {
		s->base = nothing;
		return MPI_SUCCESS;
	}
	if (all && high - low <= MAX_SPAN) {
		s->base = (char *)low;
		for (int i = 0; i < n; i++)
			s->displs[i] = s->counts[i] ? (uintptr_t)s->parts[i].addr - low : 0;
		return MPI_SUCCESS;
	}
	s->base = s->packed = malloc(s->total);
	for (int i = 1; i < n; i++)
		s->displs[i] = s->displs[i - 1] + s->counts[i - 1];
	return s->packed ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* Packs or unpacks n elements. */
static int move_some(char *addr, int n, MPI_Datatype type, char *packed, int bytes, bool pack)
{
	int position = 0;

	return pack ? PMPI_Pack(addr, n, type, packed, bytes, &position, self_comm())
		    : PMPI_Unpack(packed, bytes, &position, addr, n, type, self_comm());
}

/* The same for one element at MPI_BOTTOM, which MPICH does not take. */
static int move_absolute(MPI_Datatype type, char *packed, int bytes, bool pack)
{
	MPI_Aint back = -(MPI_Aint)nothing;
	MPI_Datatype shifted;
	int rc = PMPI_Type_create_hindexed_block(1, 1, &back, type, &shifted);

	if (rc)
		return rc;
	PMPI_Type_commit(&shifted);
	rc = move_some(nothing, 1, shifted, packed, bytes, pack);
	PMPI_Type_free(&shifted);
	return rc;
}

/* Plain bytes, as many as there are. */
static int bytes_type(int64_t size, MPI_Datatype *type)
{
	MPI_Datatype parts[2] = { MPI_DATATYPE_NULL, MPI_BYTE };
	int lengths[2] = { (int)(size / PACK_AT_ONCE), (int)(size % PACK_AT_ONCE) };
	MPI_Aint displs[2] = { 0, size - lengths[1] };
	int rc = PMPI_Type_contiguous(PACK_AT_ONCE, MPI_BYTE, &parts[0]);

	if (rc)
		return rc;
	rc = PMPI_Type_create_struct(2, lengths, displs, parts, type);
	PMPI_Type_free(&parts[0]);
	return rc ? rc : PMPI_Type_commit(type);
}

/* The same for one element that is too long for MPI_Pack: by a message of this process to itself. */
static int move_whole(char *addr, MPI_Datatype type, char *packed, int64_t size, bool pack)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one message at a time has the tag */
	MPI_Datatype bytes;
	int rc = bytes_type(size, &bytes);

	if (rc)
		return rc;
	pthread_mutex_lock(&lock);
	rc = PMPI_Sendrecv(pack ? addr : packed, 1, pack ? type : bytes, 0, WHOLE_TAG, pack ? packed : addr, 1,
			   pack ? bytes : type, 0, WHOLE_TAG, self_comm(), MPI_STATUS_IGNORE);
	pthread_mutex_unlock(&lock);
	PMPI_Type_free(&bytes);
	return rc;
}

/* Packs or unpacks one part. */
static int move(const struct part *p, char *packed, int64_t bytes, bool pack)
{
	int64_t extent, size, step;

	if (!bytes)
		return MPI_SUCCESS;
	size = type_size(p->type, &extent);
	for (int64_t at = 0; at < p->count; at += step) {
		char *addr = p->addr + at * extent, *here = packed + at * size;
		int rc;

		step = addr ? PACK_AT_ONCE / size : 1;
		if (step < 1)
			step = 1;
		if (step > p->count - at)
			step = p->count - at;
		if (size > INT32_MAX)
			rc = move_whole(addr, p->type, here, size, pack);
		else if (addr)
			rc = move_some(addr, (int)step, p->type, here, (int)(step * size), pack);
		else
			rc = move_absolute(p->type, here, (int)size, pack);
		if (rc)
			return rc;
	}
	return MPI_SUCCESS;
}

static int move_all(struct side *s, int n, bool pack)
{
	int rc = MPI_SUCCESS;

	for (int i = 0; s->packed && i < n && !rc; i++)
		rc = move(&s->parts[i], s->packed + s->displs[i], s->counts[i], pack);
	return rc;
}

int side_pack(struct side *s, int n)
{
	return move_all(s, n, true);
}
int side_unpack(struct side *s, int n)
{
	return move_all(s, n, false);
}

void side_free(struct side *s, int n)
{
	for (int i = 0; s->parts && i < n; i++)
		if (s->parts[i].owned)
			PMPI_Type_free(&s->parts[i].type);
	free(s->packed);
	free(s->parts);
	memset(s, 0, sizeof(*s));
}

bool packs_plainly(void)
{
	struct padded {
		char c;
		double d;
	} in[2] = { { 'a', 1.5 }, { 'b', -2.25 } };
	int lengths[2] = { 1, 1 }, position = 0, rc;
	MPI_Aint displs[2] = { offsetof(struct padded, c), offsetof(struct padded, d) };
	MPI_Datatype types[2] = { MPI_CHAR, MPI_DOUBLE }, made, type;
	char want[2 * (1 + sizeof(double))], got[sizeof(want) + 64];

	for (int i = 0; i < 2; i++) {
		want[i * (1 + sizeof(double))] = in[i].c;
		memcpy(&want[i * (1 + sizeof(double)) + 1], &in[i].d, sizeof(double));
	}
	PMPI_Type_create_struct(2, lengths, displs, types, &made);
	PMPI_Type_create_resized(made, 0, sizeof(struct padded), &type);
	PMPI_Type_commit(&type);
	rc = PMPI_Pack(in, 2, type, got, sizeof(got), &position, self_comm());
	PMPI_Type_free(&made);
	PMPI_Type_free(&type);
	return !rc && position == (int)sizeof(want) && !memcmp(got, want, sizeof(want));
}
