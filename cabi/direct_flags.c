// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* fi_tostr of flag words. */

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include "direct.h"

struct flag {
	uint64_t bit;
	const char *name;
};

#define FLAG(constant) {constant, #constant}
#define END {0, NULL}

static const struct flag capabilities[] = {
	FLAG(FI_MSG),
	FLAG(FI_RMA),
	FLAG(FI_TAGGED),
	FLAG(FI_ATOMIC),
	FLAG(FI_MULTICAST),
	FLAG(FI_COLLECTIVE),
	FLAG(FI_READ),
	FLAG(FI_WRITE),
	FLAG(FI_RECV),
	FLAG(FI_SEND),
	FLAG(FI_REMOTE_READ),
	FLAG(FI_REMOTE_WRITE),
	FLAG(FI_MULTI_RECV),
	FLAG(FI_REMOTE_CQ_DATA),
	FLAG(FI_TRIGGER),
	FLAG(FI_FENCE),
	FLAG(FI_VARIABLE_MSG),
	FLAG(FI_RMA_PMEM),
	FLAG(FI_SOURCE_ERR),
	FLAG(FI_LOCAL_COMM),
	FLAG(FI_REMOTE_COMM),
	FLAG(FI_SHARED_AV),
	FLAG(FI_RMA_EVENT),
	FLAG(FI_SOURCE),
	FLAG(FI_NAMED_RX_CTX),
	FLAG(FI_DIRECTED_RECV),
	FLAG(FI_HMEM),
	FLAG(FI_AV_USER_ID),
	FLAG(FI_PEER),
	FLAG(FI_XPU_TRIGGER),
	END,
};

static const struct flag op_flags[] = {
	FLAG(FI_MULTICAST),
	FLAG(FI_MULTI_RECV),
	FLAG(FI_REMOTE_CQ_DATA),
	FLAG(FI_MORE),
	FLAG(FI_PEEK),
	FLAG(FI_TRIGGER),
	FLAG(FI_FENCE),
	FLAG(FI_COMPLETION),
	FLAG(FI_INJECT),
	FLAG(FI_INJECT_COMPLETE),
	FLAG(FI_TRANSMIT_COMPLETE),
	FLAG(FI_DELIVERY_COMPLETE),
	FLAG(FI_MATCH_COMPLETE),
	FLAG(FI_AFFINITY),
	FLAG(FI_CLAIM),
	FLAG(FI_DISCARD),
	FLAG(FI_COMMIT_COMPLETE),
	FLAG(FI_PRIORITY),
	END,
};

static const struct flag message_orders[] = {
	FLAG(FI_ORDER_RAR),
	FLAG(FI_ORDER_RAW),
	FLAG(FI_ORDER_RAS),
	FLAG(FI_ORDER_WAR),
	FLAG(FI_ORDER_WAW),
	FLAG(FI_ORDER_WAS),
	FLAG(FI_ORDER_SAR),
	FLAG(FI_ORDER_SAW),
	FLAG(FI_ORDER_SAS),
	FLAG(FI_ORDER_RMA_RAR),
	FLAG(FI_ORDER_RMA_RAW),
	FLAG(FI_ORDER_RMA_WAR),
	FLAG(FI_ORDER_RMA_WAW),
	FLAG(FI_ORDER_ATOMIC_RAR),
	FLAG(FI_ORDER_ATOMIC_RAW),
	FLAG(FI_ORDER_ATOMIC_WAR),
	FLAG(FI_ORDER_ATOMIC_WAW),
	END,
};

static const struct flag modes[] = {
	FLAG(FI_CONTEXT),
	FLAG(FI_MSG_PREFIX),
	FLAG(FI_ASYNC_IOV),
	FLAG(FI_RX_CQ_DATA),
	FLAG(FI_LOCAL_MR),
	FLAG(FI_NOTIFY_FLAGS_ONLY),
	FLAG(FI_RESTRICTED_COMP),
	FLAG(FI_CONTEXT2),
	FLAG(FI_BUFFERED_RECV),
	FLAG(FI_PEER_TRANSFER),
	END,
};

static const struct flag cq_flags[] = {
	FLAG(FI_SEND),
	FLAG(FI_RECV),
	FLAG(FI_RMA),
	FLAG(FI_ATOMIC),
	FLAG(FI_MSG),
	FLAG(FI_TAGGED),
	FLAG(FI_READ),
	FLAG(FI_WRITE),
	FLAG(FI_REMOTE_READ),
	FLAG(FI_REMOTE_WRITE),
	FLAG(FI_REMOTE_CQ_DATA),
	FLAG(FI_MULTI_RECV),
	FLAG(FI_MORE),
	FLAG(FI_CLAIM),
	END,
};

static const struct flag mr_modes[] = {
	FLAG(FI_MR_BASIC),
	FLAG(FI_MR_SCALABLE),
	FLAG(FI_MR_LOCAL),
	FLAG(FI_MR_RAW),
	FLAG(FI_MR_VIRT_ADDR),
	FLAG(FI_MR_ALLOCATED),
	FLAG(FI_MR_PROV_KEY),
	FLAG(FI_MR_MMU_NOTIFY),
	FLAG(FI_MR_RMA_EVENT),
	FLAG(FI_MR_ENDPOINT),
	FLAG(FI_MR_HMEM),
	FLAG(FI_MR_COLLECTIVE),
	END,
};

/* add_flags adds the names of the bits that are set, in the table's order. */
static void add_flags(struct weft_text *t, uint64_t flags, const struct flag *table)
{
	const char *separator = "";

	for (; table->name; table++) {
		if (!(flags & table->bit))
			continue;
		weft_text_add(t, "%s%s", separator, table->name);
		separator = ", ";
	}
}

bool weft_tostr_flags(struct weft_text *t, const void *data, enum fi_type type)
{
	switch (type) {
	case FI_TYPE_CAPS:
		add_flags(t, *(const uint64_t *)data, capabilities);
		return true;
	case FI_TYPE_OP_FLAGS:
		add_flags(t, *(const uint64_t *)data, op_flags);
		return true;
	case FI_TYPE_MSG_ORDER:
		add_flags(t, *(const uint64_t *)data, message_orders);
		return true;
	case FI_TYPE_MODE:
		add_flags(t, *(const uint64_t *)data, modes);
		return true;
	case FI_TYPE_CQ_EVENT_FLAGS:
		add_flags(t, *(const uint64_t *)data, cq_flags);
		return true;
	case FI_TYPE_MR_MODE:
		add_flags(t, *(const uint32_t *)data, mr_modes);
		return true;
	default:
		return false;
	}
}

void weft_tostr_comp_order(struct weft_text *t, uint64_t order)
{
	uint64_t strict = order & FI_ORDER_STRICT;

	if (!strict)
		weft_text_add(t, "FI_ORDER_NONE");
	else if (strict == FI_ORDER_STRICT)
		weft_text_add(t, "FI_ORDER_STRICT");
	else
		add_flags(t, strict, message_orders);
	if (order & FI_ORDER_DATA)
		weft_text_add(t, ", FI_ORDER_DATA");
}
