// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* fi_tostr of fi_info, its attributes and fids, one member per line. */

#include <inttypes.h>
#include <string.h>

#include "direct.h"

static const char *const steps[] = {"", "    ", "        "};

/* line starts a line with indentation and the member's name. */
static void line(struct weft_text *t, int depth, const char *name)
{
	weft_text_add(t, "%s%s: ", steps[depth], name);
}

static void add_enum(struct weft_text *t, int depth, const char *name, uint32_t value,
		     enum fi_type type)
{
	line(t, depth, name);
	weft_tostr_enum(t, &value, type);
	weft_text_add(t, "\n");
}

static void add_flags(struct weft_text *t, int depth, const char *name, uint64_t value,
		      enum fi_type type)
{
	line(t, depth, name);
	weft_text_add(t, "[ ");
	weft_tostr_flags(t, &value, type);
	weft_text_add(t, " ]\n");
}

static void add_number(struct weft_text *t, int depth, const char *name, uint64_t value)
{
	line(t, depth, name);
	weft_text_add(t, "%" PRIu64 "\n", value);
}

/* add_contexts shows a number of contexts or that a shared one is used. */
static void add_contexts(struct weft_text *t, int depth, const char *name, size_t count)
{
	if (count == FI_SHARED_CONTEXT)
		weft_text_add(t, "%s%s: FI_SHARED_CONTEXT\n", steps[depth], name);
	else
		add_number(t, depth, name, count);
}

static void add_hex(struct weft_text *t, int depth, const char *name, uint64_t value, int digits)
{
	line(t, depth, name);
	weft_text_add(t, "0x%0*" PRIx64 "\n", digits, value);
}

static void add_string(struct weft_text *t, int depth, const char *name, const char *value)
{
	line(t, depth, name);
	weft_text_add(t, "%s\n", value ? value : "(null)");
}

static void add_pointer(struct weft_text *t, int depth, const char *name, const void *value)
{
	line(t, depth, name);
	if (value)
		weft_text_add(t, "%p\n", value);
	else
		weft_text_add(t, "(nil)\n");
}

static void add_version(struct weft_text *t, int depth, const char *name, uint32_t value)
{
	line(t, depth, name);
	weft_text_add(t, "%u.%u\n", FI_MAJOR(value), FI_MINOR(value));
}

static void add_comp_order(struct weft_text *t, int depth, uint64_t order)
{
	line(t, depth, "comp_order");
	weft_text_add(t, "[ ");
	weft_tostr_comp_order(t, order);
	weft_text_add(t, " ]\n");
}

/* head starts an attribute; false when there is none. */
static bool head(struct weft_text *t, int depth, const char *name, const void *attr)
{
	if (attr) {
		weft_text_add(t, "%s%s:\n", steps[depth], name);
		return true;
	}
	add_string(t, depth, name, NULL);
	return false;
}

static void add_tx_attr(struct weft_text *t, int depth, const struct fi_tx_attr *a)
{
	if (!head(t, depth++, "fi_tx_attr", a))
		return;
	add_flags(t, depth, "caps", a->caps, FI_TYPE_CAPS);
	add_flags(t, depth, "mode", a->mode, FI_TYPE_MODE);
	add_flags(t, depth, "op_flags", a->op_flags, FI_TYPE_OP_FLAGS);
	add_flags(t, depth, "msg_order", a->msg_order, FI_TYPE_MSG_ORDER);
	add_comp_order(t, depth, a->comp_order);
	add_number(t, depth, "inject_size", a->inject_size);
	add_number(t, depth, "size", a->size);
	add_number(t, depth, "iov_limit", a->iov_limit);
	add_number(t, depth, "rma_iov_limit", a->rma_iov_limit);
	add_hex(t, depth, "tclass", a->tclass, 1);
}

static void add_rx_attr(struct weft_text *t, int depth, const struct fi_rx_attr *a)
{
	if (!head(t, depth++, "fi_rx_attr", a))
		return;
	add_flags(t, depth, "caps", a->caps, FI_TYPE_CAPS);
	add_flags(t, depth, "mode", a->mode, FI_TYPE_MODE);
	add_flags(t, depth, "op_flags", a->op_flags, FI_TYPE_OP_FLAGS);
	add_flags(t, depth, "msg_order", a->msg_order, FI_TYPE_MSG_ORDER);
	add_comp_order(t, depth, a->comp_order);
	add_number(t, depth, "total_buffered_recv", a->total_buffered_recv);
	add_number(t, depth, "size", a->size);
	add_number(t, depth, "iov_limit", a->iov_limit);
}

static void add_ep_attr(struct weft_text *t, int depth, const struct fi_ep_attr *a)
{
	if (!head(t, depth++, "fi_ep_attr", a))
		return;
	add_enum(t, depth, "type", a->type, FI_TYPE_EP_TYPE);
	add_enum(t, depth, "protocol", a->protocol, FI_TYPE_PROTOCOL);
	add_number(t, depth, "protocol_version", a->protocol_version);
	add_number(t, depth, "max_msg_size", a->max_msg_size);
	add_number(t, depth, "msg_prefix_size", a->msg_prefix_size);
	add_number(t, depth, "max_order_raw_size", a->max_order_raw_size);
	add_number(t, depth, "max_order_war_size", a->max_order_war_size);
	add_number(t, depth, "max_order_waw_size", a->max_order_waw_size);
	add_hex(t, depth, "mem_tag_format", a->mem_tag_format, 16);
	add_contexts(t, depth, "tx_ctx_cnt", a->tx_ctx_cnt);
	add_contexts(t, depth, "rx_ctx_cnt", a->rx_ctx_cnt);
	add_number(t, depth, "auth_key_size", a->auth_key_size);
}

static void add_domain_attr(struct weft_text *t, int depth, const struct fi_domain_attr *a)
{
	if (!head(t, depth++, "fi_domain_attr", a))
		return;
	add_hex(t, depth, "domain", (uintptr_t)a->domain, 1);
	add_string(t, depth, "name", a->name);
	add_enum(t, depth, "threading", a->threading, FI_TYPE_THREADING);
	add_enum(t, depth, "control_progress", a->control_progress, FI_TYPE_PROGRESS);
	add_enum(t, depth, "data_progress", a->data_progress, FI_TYPE_PROGRESS);
	add_string(t, depth, "resource_mgmt", weft_tostr_resource_mgmt(a->resource_mgmt));
	add_enum(t, depth, "av_type", a->av_type, FI_TYPE_AV_TYPE);
	add_flags(t, depth, "mr_mode", (uint32_t)a->mr_mode, FI_TYPE_MR_MODE);
	add_number(t, depth, "mr_key_size", a->mr_key_size);
	add_number(t, depth, "cq_data_size", a->cq_data_size);
	add_number(t, depth, "cq_cnt", a->cq_cnt);
	add_number(t, depth, "ep_cnt", a->ep_cnt);
	add_number(t, depth, "tx_ctx_cnt", a->tx_ctx_cnt);
	add_number(t, depth, "rx_ctx_cnt", a->rx_ctx_cnt);
	add_number(t, depth, "max_ep_tx_ctx", a->max_ep_tx_ctx);
	add_number(t, depth, "max_ep_rx_ctx", a->max_ep_rx_ctx);
	add_number(t, depth, "max_ep_stx_ctx", a->max_ep_stx_ctx);
	add_number(t, depth, "max_ep_srx_ctx", a->max_ep_srx_ctx);
	add_number(t, depth, "cntr_cnt", a->cntr_cnt);
	add_number(t, depth, "mr_iov_limit", a->mr_iov_limit);
	add_flags(t, depth, "caps", a->caps, FI_TYPE_CAPS);
	add_flags(t, depth, "mode", a->mode, FI_TYPE_MODE);
	add_number(t, depth, "auth_key_size", a->auth_key_size);
	add_number(t, depth, "max_err_data", a->max_err_data);
	add_number(t, depth, "mr_cnt", a->mr_cnt);
	add_hex(t, depth, "tclass", a->tclass, 1);
}

static void add_fabric_attr(struct weft_text *t, int depth, const struct fi_fabric_attr *a)
{
	if (!head(t, depth++, "fi_fabric_attr", a))
		return;
	add_string(t, depth, "name", a->name);
	add_string(t, depth, "prov_name", a->prov_name);
	add_version(t, depth, "prov_version", a->prov_version);
	add_version(t, depth, "api_version", a->api_version);
}

/* add_fid lets the object describe itself when it can. */
static void add_fid(struct weft_text *t, const struct fid *fid)
{
	if (fid->ops && FI_CHECK_OP(fid->ops, struct fi_ops, tostr)) {
		fid->ops->tostr(fid, t->buf + t->used, t->size - t->used);
		t->buf[t->size - 1] = 0;
		t->used += strlen(t->buf + t->used);
	} else {
		add_pointer(t, 0, "fid", fid);
	}
}

static void add_address(struct weft_text *t, const char *name, uint32_t format, const void *addr,
			size_t len)
{
	line(t, 1, name);
	if (addr)
		weft_tostr_address(t, format, addr, len);
	else
		weft_text_add(t, "(null)");
	weft_text_add(t, "\n");
}

static void add_info(struct weft_text *t, const struct fi_info *info)
{
	weft_text_add(t, "fi_info:\n");
	add_flags(t, 1, "caps", info->caps, FI_TYPE_CAPS);
	add_flags(t, 1, "mode", info->mode, FI_TYPE_MODE);
	add_enum(t, 1, "addr_format", info->addr_format, FI_TYPE_ADDR_FORMAT);
	add_number(t, 1, "src_addrlen", info->src_addrlen);
	add_number(t, 1, "dest_addrlen", info->dest_addrlen);
	add_address(t, "src_addr", info->addr_format, info->src_addr, info->src_addrlen);
	add_address(t, "dest_addr", info->addr_format, info->dest_addr, info->dest_addrlen);
	add_pointer(t, 1, "handle", info->handle);
	add_tx_attr(t, 1, info->tx_attr);
	add_rx_attr(t, 1, info->rx_attr);
	add_ep_attr(t, 1, info->ep_attr);
	add_domain_attr(t, 1, info->domain_attr);
	add_fabric_attr(t, 1, info->fabric_attr);
	if (info->nic)
		add_fid(t, &info->nic->fid);
	else
		add_pointer(t, 1, "nic", NULL);
}

bool weft_tostr_attr(struct weft_text *t, const void *data, enum fi_type type)
{
	switch (type) {
	case FI_TYPE_INFO:
		add_info(t, data);
		return true;
	case FI_TYPE_TX_ATTR:
		add_tx_attr(t, 0, data);
		return true;
	case FI_TYPE_RX_ATTR:
		add_rx_attr(t, 0, data);
		return true;
	case FI_TYPE_EP_ATTR:
		add_ep_attr(t, 0, data);
		return true;
	case FI_TYPE_DOMAIN_ATTR:
		add_domain_attr(t, 0, data);
		return true;
	case FI_TYPE_FABRIC_ATTR:
		add_fabric_attr(t, 0, data);
		return true;
	case FI_TYPE_FID:
		add_fid(t, data);
		return true;
	default:
		return false;
	}
}
