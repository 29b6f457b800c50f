/* SPDX-License-Identifier: BSD-2-Clause
 *
 * MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw, and their forms with requests and with
 * long counts, as far as the MPI has them.
 */
#include "weftmpi.h"

#define COUNT int
#define DISPL int
#define WIDE false
#define NAME(f) MPI_##f
#define NEXT(f) PMPI_##f
#if MPI_VERSION >= 4
#define INIT(f) MPI_##f##_init
#define NEXT_INIT(f) PMPI_##f##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define INIT(f) MPIX_##f##_init
#define NEXT_INIT(f) PMPIX_##f##_init
#endif
#include "forms.h"

#if MPI_VERSION >= 4
#undef COUNT
#undef DISPL
#undef WIDE
#undef NAME
#undef NEXT
#undef INIT
#undef NEXT_INIT
#define COUNT MPI_Count
#define DISPL MPI_Aint
#define WIDE true
#define NAME(f) MPI_##f##_c
#define NEXT(f) PMPI_##f##_c
#define INIT(f) MPI_##f##_init_c
#define NEXT_INIT(f) PMPI_##f##_init_c
#include "forms.h"
#endif
