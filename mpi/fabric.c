/* SPDX-License-Identifier: BSD-2-Clause
 *
 * weft for the groups of communicators: libweft.so, from the folder of this
 * library or where the loader finds it. It is not linked, because its names are
 * libfabric's, which the MPI may use itself.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "weftmpi.h"

#define SONAME "libweft.so.0"

static struct {
	int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
	struct fi_info *(*dupinfo)(const struct fi_info *);
	void (*freeinfo)(struct fi_info *);
	int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	const char *(*strerror)(int);
	struct fi_info *info;
	struct fid_fabric *fid;
	struct fid_domain *domain;
	bool open;
} weft;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *library(void)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info here;
	void *lib;

	if (dladdr((void *)library, &here) && here.dli_fname && (slash = strrchr(here.dli_fname, '/')) &&
	    snprintf(path, sizeof(path), "%.*s/" SONAME, (int)(slash - here.dli_fname), here.dli_fname) <
		    (int)sizeof(path) &&
	    (lib = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
		return lib;
	lib = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		warn("%s; all-to-all is the MPI's", dlerror());
	return lib;
}

static bool names(void)
{
	void *lib = library();

	if (!lib)
		return false;
	*(void **)&weft.getinfo = dlsym(lib, "fi_getinfo");
	*(void **)&weft.dupinfo = dlsym(lib, "fi_dupinfo");
	*(void **)&weft.freeinfo = dlsym(lib, "fi_freeinfo");
	*(void **)&weft.fabric = dlsym(lib, "fi_fabric");
	*(void **)&weft.strerror = dlsym(lib, "fi_strerror");
	if (weft.getinfo && weft.dupinfo && weft.freeinfo && weft.fabric && weft.strerror)
		return true;
	warn(SONAME " is not weft's: it has no fi_getinfo; all-to-all is the MPI's");
	return false;
}

/* Progress is automatic: members of an operation wait for each other while one of them computes
 * or waits in the MPI. */
static int find(void)
{
	struct fi_info *hints = weft.dupinfo(NULL);
	int rc;

	if (!hints)
		return -FI_ENOMEM;
	hints->caps = FI_MSG | FI_COLLECTIVE;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	rc = weft.getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &weft.info);
	weft.freeinfo(hints);
	return rc;
}

static void open_once(void)
{
	int rc;

	if (!names())
		return;
	rc = find();
	if (!rc)
		rc = weft.fabric(weft.info->fabric_attr, &weft.fid, NULL);
	if (!rc)
		rc = fi_domain(weft.fid, weft.info, &weft.domain, NULL);
	if (rc)
		warn("weft does not open: %s; all-to-all is the MPI's", weft.strerror(-rc));
	weft.open = !rc;
}

bool fabric_open(void)
{
	pthread_once(&once, open_once);
	return weft.open;
}

void fabric_close(void)
{
	if (!weft.open)
		return;
	weft.open = false;
	fi_close(&weft.domain->fid);
	fi_close(&weft.fid->fid);
	weft.freeinfo(weft.info);
}

const char *fabric_strerror(int err)
{
	return weft.strerror ? weft.strerror(err) : "weft is not open";
}

static int port_make(struct port *p, void *address, size_t *size)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE };
	struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_NONE };
	int rc;

	if ((rc = fi_av_open(weft.domain, &av, &p->av, NULL)) || (rc = fi_cq_open(weft.domain, &cq, &p->cq, NULL)) ||
	    (rc = fi_eq_open(weft.fid, &eq, &p->eq, NULL)) ||
	    (rc = fi_endpoint(weft.domain, weft.info, &p->ep, NULL)) || (rc = fi_ep_bind(p->ep, &p->av->fid, 0)) ||
	    (rc = fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV)) || (rc = fi_ep_bind(p->ep, &p->eq->fid, 0)) ||
	    (rc = fi_enable(p->ep)) || (rc = fi_getname(&p->ep->fid, address, size)))
		return rc;
	rc = fi_open_ops(&p->ep->fid, WEFT_COLL_OPS, 0, (void **)&p->coll, NULL);
	return rc || p->coll->size >= sizeof(*p->coll) ? rc : -FI_ENOSYS;
}

void port_reserve(struct port *p, bool on)
{
	p->coll->reserve(p->ep, on);
}

size_t port_open(struct port *p, void *address, size_t size)
{
	int rc;

	memset(p, 0, sizeof(*p));
	if (!fabric_open())
		return 0;
	rc = port_make(p, address, &size);
	if (!rc)
		return size;
	warn("no endpoint of weft: %s", weft.strerror(-rc));
	port_close(p);
	return 0;
}

void port_close(struct port *p)
{
	if (p->ep)
		fi_close(&p->ep->fid);
	if (p->eq)
		fi_close(&p->eq->fid);
	if (p->cq)
		fi_close(&p->cq->fid);
	if (p->av)
		fi_close(&p->av->fid);
	memset(p, 0, sizeof(*p));
}
