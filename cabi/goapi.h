/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The Go functions that the C files call, beside those of hotpath.h. The Go
 * files include this header, so that the compiler compares both sides. Unless
 * said otherwise each returns 0 or a negative errno, and none may be called in
 * a forked process.
 */
#ifndef WEFT_GOAPI_H
#define WEFT_GOAPI_H

#include <netinet/in.h>

#include "../include/weft/ext.h"
#include "host.h"
#include "objects.h"

/* What the opening of an object gives to C. */
struct weft_opened {
	uint64_t handle;
	void *hot;                      /* table of plain words, where the class has one */
	void *rx;                       /* struct weft_hot_rx, likewise */
	bool deaf;                      /* endpoints: nothing that receives could complete on */
	uint64_t caps;                  /* endpoints: with every default filled in; shared contexts: FI_HMEM */
	uint64_t tx_op_flags;
	uint64_t rx_op_flags;
	uint64_t key;                   /* memory regions */
	void *desc;
	int fd;                         /* of the wait object, -1 for none */
	enum fi_wait_obj wait_obj;      /* the one chosen */
	enum fi_ep_type ep_type;        /* endpoints: likewise */
};

/* waitobj.c: takes over what the opening chose; wakes whoever waits on the
 * condition of FI_WAIT_MUTEX_COND (called from Go); the handle of a wait set. */
void weft_wait_chosen(struct weft_wait_native *wait, const struct weft_opened *opened);
void weft_wait_signal(struct weft_wait_native *wait);
uint64_t weft_wait_set_of(const struct fid_wait *set);

/* Stores of addresses that Go has as numbers. */
static inline void weft_av_set_map(struct fi_av_attr *attr, uint64_t addr)
{
	attr->map_addr = (void *)(uintptr_t)addr;
}

static inline void weft_err_set_addrs(struct fi_cq_err_entry *entry, uint64_t context, uint64_t buf)
{
	entry->op_context = (void *)(uintptr_t)context;
	entry->buf = (void *)(uintptr_t)buf;
}

static inline void weft_eq_err_set_addrs(struct fi_eq_err_entry *entry, uint64_t fid,
					 uint64_t context)
{
	entry->fid = (fid_t)(uintptr_t)fid;
	entry->context = (void *)(uintptr_t)context;
}

static inline void weft_opened_set_desc(struct weft_opened *out, uint64_t desc)
{
	out->desc = (void *)(uintptr_t)desc;
}

/* thread.go, prov.go, info.go. weftGoEnterThread returns when the Go runtime has started. */
void weftGoEnterThread(unsigned threads);
int weftGoInit(struct weft_host *host);
void weftGoCleanup(void);
void weftGoSettle(void);
int weftGoGetInfo(struct weft_host *host, uint32_t version, char *node, char *service,
		  uint64_t flags, struct fi_info *hints, struct fi_info **info);

/* handle.go: any object */
int weftGoClose(uint64_t handle);

/* fabric.go. fid is the C object, which fi_getinfo names in its answers. */
int weftGoFabricOpen(struct fi_fabric_attr *attr, void *fid, struct weft_opened *out);
int weftGoDomainOpen(uint64_t fabric, struct fi_info *info, void *fid, struct weft_opened *out);
int weftGoDomainBind(uint64_t domain, uint64_t eq, uint64_t flags);

/* av.go. fid goes into the events of asynchronous inserts. Inserts return the
 * number of addresses. */
int weftGoAVOpen(uint64_t domain, struct fi_av_attr *attr, void *fid, struct weft_opened *out);
int weftGoAVBind(uint64_t av, uint64_t eq, uint64_t flags);
int weftGoAVInsert(uint64_t av, void *addr, size_t count, fi_addr_t *fi_addr, uint64_t flags,
		   void *context);
int weftGoAVInsertSvc(uint64_t av, char *node, char *service, fi_addr_t *fi_addr, uint64_t flags,
		      void *context);
int weftGoAVInsertSym(uint64_t av, char *node, size_t nodecnt, char *service, size_t svccnt,
		      fi_addr_t *fi_addr, uint64_t flags, void *context);
int weftGoAVRemove(uint64_t av, fi_addr_t *fi_addr, size_t count, uint64_t flags);
int weftGoAVLookup(uint64_t av, fi_addr_t fi_addr, void *addr, size_t *len);
int weftGoAVSetUserID(uint64_t av, fi_addr_t addr, fi_addr_t id, uint64_t flags);
int weftGoAVInsertAuthKey(uint64_t av, void *key, size_t len, fi_addr_t *addr, uint64_t flags);
int weftGoAVLookupAuthKey(uint64_t av, fi_addr_t addr, void *key, size_t *len);
int weftGoAVStrAddr(uint64_t av, void *addr, char *buf, size_t *len);

/* ep.go. fid goes into the events of connected endpoints. Names and options
 * are those of passive endpoints, too. */
int weftGoEPOpen(uint64_t domain, struct fi_info *info, void *fid, struct weft_opened *out);
int weftGoEPBind(uint64_t ep, uint64_t other, uint64_t flags);
int weftGoEPEnable(uint64_t ep, struct weft_opened *out);
int weftGoEPEnabled(uint64_t ep, struct weft_opened *out);
int weftGoEPCancel(uint64_t ep, void *context);
int weftGoEPName(uint64_t ep, void *addr, size_t *len);
int weftGoEPSetName(uint64_t ep, void *addr, size_t len);
int weftGoEPGetOpt(uint64_t ep, int name, void *value, size_t *len);
int weftGoEPSetOpt(uint64_t ep, int name, void *value, size_t len);
int weftGoSEPOpen(uint64_t domain, struct fi_info *info, struct weft_opened *out);
int weftGoTxCtxOpen(uint64_t sep, int index, struct fi_tx_attr *attr, struct weft_opened *out);
int weftGoRxCtxOpen(uint64_t sep, int index, struct fi_rx_attr *attr, struct weft_opened *out);
int weftGoSRxOpen(uint64_t domain, struct fi_rx_attr *attr, struct weft_opened *out);
int weftGoSTxOpen(uint64_t domain, struct fi_tx_attr *attr, struct weft_opened *out);

/* cm.go. fid goes into the events of connection requests, and is what an info
 * names. */
int weftGoPEPOpen(uint64_t fabric, struct fi_info *info, void *fid, struct weft_opened *out);
int weftGoPEPBind(uint64_t pep, uint64_t eq, uint64_t flags);
int weftGoPEPBacklog(uint64_t pep, int n);
int weftGoPEPListen(uint64_t pep);
int weftGoPEPReject(uint64_t pep, uint64_t request, void *param, size_t len);
int weftGoEPConnect(uint64_t ep, void *addr, void *param, size_t len);
int weftGoEPAccept(uint64_t ep, void *param, size_t len);
int weftGoEPShutdown(uint64_t ep, uint64_t flags);
int weftGoEPPeer(uint64_t ep, void *addr, size_t *len);

/* cm.c: the C object of a connection request; NULL without memory. */
struct fid *weft_connreq_new(uint64_t handle);
void weft_connreq_free(struct fid *request);

/* hmem.go. Makes addresses of device memory, which descriptors tell from other
 * memory, those by which Go knows it. */
int weftGoTranslate(uint64_t ep, struct iovec *iov, void **descs, size_t count);

/* struct fi_mr_dmabuf, which came with libfabric 1.20. With the flag
 * FI_MR_DMABUF struct fi_mr_attr points to one in the place of mr_iov. */
struct weft_mr_dmabuf {
	int fd;
	uint64_t offset;
	size_t len;
	void *base_addr;
};

/* mr.go. Announcing writes the event of a registration that completes on an
 * event queue; fid must be ready for use then. */
int weftGoMRReg(uint64_t domain, struct fi_mr_attr *attr, uint64_t flags, struct weft_opened *out);
int weftGoMRAnnounce(uint64_t mr, void *fid);
int weftGoMRBind(uint64_t mr, uint64_t other, uint64_t flags);
int weftGoMREnable(uint64_t mr, uint64_t *key);

/* cq.go. native is the struct weft_wait_native to signal for
 * FI_WAIT_MUTEX_COND. A wait returns 0 when there is a reason to look again,
 * -FI_EAGAIN when timeout ms (negative: for ever) have passed. */
int weftGoCQOpen(uint64_t domain, struct fi_cq_attr *attr, uint64_t wait_set,
		 struct weft_wait_native *native, struct weft_opened *out);
int weftGoCQReadErr(uint64_t cq, struct fi_cq_err_entry *entry, uint64_t *src_addr);
int weftGoCQWait(uint64_t cq, int timeout);
int weftGoCQSignal(uint64_t cq);

/* cntr.go. A wait returns 0 when the value has reached the threshold,
 * -FI_ETIMEDOUT, or -FI_EAVAIL when the error value changes. */
int weftGoCntrOpen(uint64_t domain, struct fi_cntr_attr *attr, uint64_t wait_set,
		   struct weft_wait_native *native, struct weft_opened *out);
int weftGoCntrAdd(uint64_t cntr, uint64_t value);
int weftGoCntrSet(uint64_t cntr, uint64_t value);
int weftGoCntrAddErr(uint64_t cntr, uint64_t value);
int weftGoCntrSetErr(uint64_t cntr, uint64_t value);
int weftGoCntrWait(uint64_t cntr, uint64_t threshold, int timeout);

/* eq.go. Reads return the number of bytes. own, of WEFT_EQ_ERR_DATA bytes,
 * takes error data for which the caller has no room. */
int weftGoEQOpen(uint64_t fabric, struct weft_host *host, struct fi_eq_attr *attr, uint64_t wait_set,
		 struct weft_wait_native *native, struct weft_opened *out);
int64_t weftGoEQRead(uint64_t eq, uint32_t *event, void *buf, size_t len, uint64_t flags);
int64_t weftGoEQSRead(uint64_t eq, uint32_t *event, void *buf, size_t len, int timeout,
		      uint64_t flags);
int64_t weftGoEQReadErr(uint64_t eq, struct fi_eq_err_entry *entry, void *own, uint64_t flags);
int64_t weftGoEQWrite(uint64_t eq, uint32_t event, void *buf, size_t len, uint64_t flags);

/* ext.go. The counters' operations, NULL without memory; the values of count
 * counters from first on, handle 0 being the process. ext.c fills in the calls. */
struct weft_stats_ops *weftGoStatsOps(void);
int weftGoStatsRead(uint64_t handle, size_t first, size_t count, uint64_t *values);
void weft_stats_calls(struct weft_stats_ops *ops);

/* wait.go. weftGoPoll stores the contexts of what has something and returns
 * their number. */
int weftGoWaitOpen(uint64_t fabric, struct fi_wait_attr *attr, struct weft_wait_native *native,
		   struct weft_opened *out);
int weftGoWait(uint64_t wait_set, int timeout);
int weftGoTryWait(uint64_t object);
int weftGoPollOpen(uint64_t domain, struct weft_opened *out);
int weftGoPoll(uint64_t poll, void **contexts, int count);
int weftGoPollAdd(uint64_t poll, uint64_t object, void *context);
int weftGoPollDel(uint64_t poll, uint64_t object);

#endif
