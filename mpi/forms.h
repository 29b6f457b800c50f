/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The all-to-all functions with counts of one width. Included by calls.c with
 *	COUNT, DISPL	the types of counts and displacements
 *	WIDE		whether they are MPI_Count and MPI_Aint
 *	NAME(f), NEXT(f)	the name of a function here, and of the MPI's
 *	INIT(f), NEXT_INIT(f)	the same of those that make persistent requests, if there are any
 */

#define ONE(buffer, n, t) \
	{ \
		.buf = buffer, .count = n, .type = t, .wide = WIDE \
	}
#define VECTOR(buffer, n, d, t) \
	{ \
		.buf = buffer, .counts = n, .displs = d, .type = t, .wide = WIDE \
	}
#define TYPES(buffer, n, d, t) \
	{ \
		.buf = buffer, .counts = n, .displs = d, .types = t, .wide = WIDE \
	}

#define ONE_ARGS \
	const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype, void *recvbuf, COUNT recvcount, \
		MPI_Datatype recvtype, MPI_Comm comm
#define ONE_PASS sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm
#define ONE_CALL(text) \
	const struct call c = { .name = text, \
				.send = ONE(sendbuf, sendcount, sendtype), \
				.recv = ONE(recvbuf, recvcount, recvtype), \
				.uniform = true, \
				.comm = comm }

#define VECTOR_ARGS \
	const void *sendbuf, const COUNT sendcounts[], const DISPL sdispls[], MPI_Datatype sendtype, void *recvbuf, \
		const COUNT recvcounts[], const DISPL rdispls[], MPI_Datatype recvtype, MPI_Comm comm
#define VECTOR_PASS sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm
#define VECTOR_CALL(text) \
	const struct call c = { .name = text, \
				.send = VECTOR(sendbuf, sendcounts, sdispls, sendtype), \
				.recv = VECTOR(recvbuf, recvcounts, rdispls, recvtype), \
				.comm = comm }

#define TYPES_ARGS \
	const void *sendbuf, const COUNT sendcounts[], const DISPL sdispls[], const MPI_Datatype sendtypes[], \
		void *recvbuf, const COUNT recvcounts[], const DISPL rdispls[], const MPI_Datatype recvtypes[], \
		MPI_Comm comm
#define TYPES_PASS sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm
#define TYPES_CALL(text) \
	const struct call c = { .name = text, \
				.send = TYPES(sendbuf, sendcounts, sdispls, sendtypes), \
				.recv = TYPES(recvbuf, recvcounts, rdispls, recvtypes), \
				.comm = comm }

#define FORMS(f, i, args, pass, call) \
	int NAME(f)(args) \
	{ \
		call(#f); \
		int rc; \
\
		return op_call(&c, FORM_BLOCKING, NULL, &rc) ? rc : NEXT(f)(pass); \
	} \
\
	int NAME(i)(args, MPI_Request * request) \
	{ \
		call(#i); \
		int rc; \
\
		return op_call(&c, FORM_REQUEST, request, &rc) ? rc : NEXT(i)(pass, request); \
	}

#define PERSISTENT(f, args, pass, call) \
	int INIT(f)(args, MPI_Info inf, MPI_Request * request) \
	{ \
		call(#f); \
		int rc; \
\
		return op_call(&c, FORM_PERSISTENT, request, &rc) ? rc : NEXT_INIT(f)(pass, inf, request); \
	}

FORMS(Alltoall, Ialltoall, ONE_ARGS, ONE_PASS, ONE_CALL)
FORMS(Alltoallv, Ialltoallv, VECTOR_ARGS, VECTOR_PASS, VECTOR_CALL)
FORMS(Alltoallw, Ialltoallw, TYPES_ARGS, TYPES_PASS, TYPES_CALL)
#ifdef INIT
PERSISTENT(Alltoall, ONE_ARGS, ONE_PASS, ONE_CALL)
PERSISTENT(Alltoallv, VECTOR_ARGS, VECTOR_PASS, VECTOR_CALL)
PERSISTENT(Alltoallw, TYPES_ARGS, TYPES_PASS, TYPES_CALL)
#endif

#undef ONE
#undef VECTOR
#undef TYPES
#undef ONE_ARGS
#undef ONE_PASS
#undef ONE_CALL
#undef VECTOR_ARGS
#undef VECTOR_PASS
#undef VECTOR_CALL
#undef TYPES_ARGS
#undef TYPES_PASS
#undef TYPES_CALL
#undef FORMS
#undef PERSISTENT
