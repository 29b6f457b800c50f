/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tables of the calls that an endpoint does not offer. No slot of a table is
 * ever NULL: libfabric's inline functions call through most of them unchecked.
 */
#include "objects.h"

#define REFUSE(table) weft_nosys_##table
#define REFUSE_LINKAGE
#define REFUSAL (-FI_ENOSYS)

#include "refuse.h"
