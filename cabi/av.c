/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Address vectors: struct fi_ops_av.
 */
#include <stdlib.h>

#include "collective.h"
#include "goapi.h"
#include "peer.h"
#include "trace.h"

static inline uint64_t handle_of(struct fid_av *av)
{
	return WEFT_OBJ(av, struct weft_av_obj)->handle;
}

static int av_close(struct fid *fid)
{
	struct weft_av_obj *o = WEFT_OBJ(fid, struct weft_av_obj);

	return weft_close(o->handle, &o->link, o);
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	uint64_t eq = weft_handle_of(bfid);

	if (!eq || bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	return weftGoAVBind(WEFT_OBJ(fid, struct weft_av_obj)->handle, eq, flags);
}

struct fi_ops weft_av_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
	.control = weft_no_control,
	.ops_open = weft_no_ops_open,
	.tostr = weft_tostr,
	.ops_set = weft_no_ops_set,
};

/* What an insert returns, after the owners of imported receive contexts know. */
static int inserted(int rc)
{
	if (rc > 0)
		weft_peer_addresses_changed();
	return rc;
}

static int av_insert(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr,
		     uint64_t flags, void *context)
{
	if (!count)
		return 0;
	if (!addr)
		return -FI_EINVAL;
	return inserted(weftGoAVInsert(handle_of(av), (void *)addr, count, fi_addr, flags, context));
}

static int av_insertsvc(struct fid_av *av, const char *node, const char *service,
			fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return inserted(weftGoAVInsertSvc(handle_of(av), (char *)node, (char *)service, fi_addr,
					  flags, context));
}

static int av_insertsym(struct fid_av *av, const char *node, size_t nodecnt, const char *service,
			size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return inserted(weftGoAVInsertSym(handle_of(av), (char *)node, nodecnt, (char *)service,
					  svccnt, fi_addr, flags, context));
}

static int av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	if (!count)
		return 0;
	if (!fi_addr)
		return -FI_EINVAL;
	return weftGoAVRemove(handle_of(av), fi_addr, count, flags);
}

static int av_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	if (!addrlen || (!addr && *addrlen))
		return -FI_EINVAL;
	return weftGoAVLookup(handle_of(av), fi_addr, addr, addrlen);
}

/* Flags ask for what an XPU has of an address. */
static int av_lookup2(struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen,
		      uint64_t flags, void *)
{
	return flags ? -FI_ENOSYS : av_lookup(av, fi_addr, addr, addrlen);
}

static const char *av_straddr(struct fid_av *av, const void *addr, char *buf, size_t *len)
{
	if (!addr || !len || (!buf && *len))
		return NULL;
	return weftGoAVStrAddr(handle_of(av), (void *)addr, buf, len) ? NULL : buf;
}

static int av_set_user_id(struct fid_av *av, fi_addr_t addr, fi_addr_t id, uint64_t flags)
{
	return weftGoAVSetUserID(handle_of(av), addr, id, flags);
}

static int av_insert_auth_key(struct fid_av *av, const void *key, size_t len, fi_addr_t *addr,
			      uint64_t flags)
{
	if (!key || !addr)
		return -FI_EINVAL;
	return weftGoAVInsertAuthKey(handle_of(av), (void *)key, len, addr, flags);
}

static int av_lookup_auth_key(struct fid_av *av, fi_addr_t addr, void *key, size_t *len)
{
	if (!len || (!key && *len))
		return -FI_EINVAL;
	return weftGoAVLookupAuthKey(handle_of(av), addr, key, len);
}

WEFT_TRACED(av_insert); WEFT_TRACED(av_insertsvc); WEFT_TRACED(av_insertsym);
WEFT_TRACED(av_remove); WEFT_TRACED(av_lookup);

struct weft_ops_av weft_ops_av = {
	.base = {
		.size = sizeof(struct weft_ops_av),
		.insert = av_insert,
		.insertsvc = av_insertsvc,
		.insertsym = av_insertsym,
		.remove = av_remove,
		.lookup = av_lookup,
		.straddr = av_straddr,
		.av_set = weft_av_set,
	},
	.insert_auth_key = av_insert_auth_key,
	.lookup_auth_key = av_lookup_auth_key,
	.set_user_id = av_set_user_id,
	.lookup2 = av_lookup2,
};

int weft_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		 void *context)
{
	struct weft_av_obj *o;
	struct weft_opened opened = { 0 };
	struct fi_av_attr own;
	int rc;

	if (!attr || !av)
		return -FI_EINVAL;
	if (attr->flags & FI_PEER) {
		own = *attr;
		own.flags &= ~FI_PEER;
		rc = weft_peer_av_import(&own, context);
		if (rc)
			return rc;
		attr = &own;
	}
	o = calloc(1, sizeof(*o));
	if (!o)
		return -FI_ENOMEM;
	rc = weftGoAVOpen(WEFT_OBJ(domain, struct weft_domain_obj)->handle, attr, o, &opened);
	if (rc) {
		free(o);
		return rc;
	}
	o->handle = opened.handle;
	o->fid.fid.fclass = FI_CLASS_AV;
	o->fid.fid.context = context;
	o->fid.fid.ops = &weft_av_fi_ops;
	o->fid.ops = &weft_ops_av.base;
	weft_object_add(&o->link, &o->fid.fid);
	*av = &o->fid;
	return 0;
}
