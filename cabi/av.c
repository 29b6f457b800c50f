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

int weft_av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	uint64_t eq = weft_handle_of(bfid);

	if (!eq || bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	return weftGoAVBind(WEFT_OBJ(fid, struct weft_av_obj)->handle, eq, flags);
}

/* What an insert returns, after the owners of imported receive contexts know. */
static int inserted(int rc)
{
	if (rc > 0)
		weft_peer_addresses_changed();
	return rc;
}

int weft_av_insert(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr,
		     uint64_t flags, void *context)
{
	if (!count)
		return 0;
	if (!addr)
		return -FI_EINVAL;
	return inserted(weftGoAVInsert(handle_of(av), (void *)addr, count, fi_addr, flags, context));
}

int weft_av_insertsvc(struct fid_av *av, const char *node, const char *service,
			fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return inserted(weftGoAVInsertSvc(handle_of(av), (char *)node, (char *)service, fi_addr,
					  flags, context));
}

int weft_av_insertsym(struct fid_av *av, const char *node, size_t nodecnt, const char *service,
			size_t svccnt, fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	return inserted(weftGoAVInsertSym(handle_of(av), (char *)node, nodecnt, (char *)service,
					  svccnt, fi_addr, flags, context));
}

int weft_av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	if (!count)
		return 0;
	if (!fi_addr)
		return -FI_EINVAL;
	return weftGoAVRemove(handle_of(av), fi_addr, count, flags);
}

int weft_av_lookup(struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	if (!addrlen || (!addr && *addrlen))
		return -FI_EINVAL;
	return weftGoAVLookup(handle_of(av), fi_addr, addr, addrlen);
}

/* Flags ask for what an XPU has of an address. */
int weft_av_lookup2(struct fid_av *av, fi_addr_t fi_addr, void *addr, size_t *addrlen,
		      uint64_t flags, void *)
{
	return flags ? -FI_ENOSYS : weft_av_lookup(av, fi_addr, addr, addrlen);
}

const char *weft_av_straddr(struct fid_av *av, const void *addr, char *buf, size_t *len)
{
	if (!addr || !len || (!buf && *len))
		return NULL;
	return weftGoAVStrAddr(handle_of(av), (void *)addr, buf, len) ? NULL : buf;
}

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
	o = weft_object_new(FI_CLASS_AV, context);
	if (!o)
		return -FI_ENOMEM;
	o->fid.ops = &weft_ops_av.base;
	rc = weft_object_open(o, weftGoAVOpen(WEFT_OBJ(domain, struct weft_domain_obj)->handle, attr, o, &opened),
			      &opened);
	if (rc)
		return rc;
	*av = &o->fid;
	return 0;
}
