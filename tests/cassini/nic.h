/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The model of the NIC: its objects, and the functions that its files offer to each other. One lock,
 * nic_lock, guards every field here; functions are called with it unless they say otherwise.
 */
#ifndef CASSINI_NIC_H
#define CASSINI_NIC_H

#include "abi.h"
#include "bits.h"
#include "layout.h"
#include "values.h"

enum {
	PAGE = 4096,
	SLOT = 64, /* bytes in an entry of a command ring or a block of an event queue */
	PID_BITS = 9,
	GRANULE = 256,	  /* table indices of a PID */
	GET_INDEX = 255,  /* the index that a rendezvous is got from */
	TRANSACTION = 15, /* of the gets that a NIC issues */
	DEVICES = 2,
	SERVICES = 32,
	LE_POOLS = 16, /* of list entries: services that reserve some have one of their own */
	TLE_POOLS = 4, /* of triggered entries */
	DEFAULT_SERVICE = 1,
	CMDQS = LIMIT_TXQS + LIMIT_TGQS,
};

/* Lists are rings through their head. */
struct link {
	struct link *next, *prev;
};
#define CONTAINER(p, type, field) ((type *)((char *)(p)-offsetof(type, field)))

static inline void list_init(struct link *l)
{
	l->next = l->prev = l;
}
static inline bool list_empty(const struct link *l)
{
	return l->next == l;
}
static inline void list_append(struct link *head, struct link *l)
{
	l->next = head;
	l->prev = head->prev;
	head->prev->next = l;
	head->prev = l;
}
static inline void list_remove(struct link *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	list_init(l);
}

struct service {
	struct svc_desc desc;
	bool exists, exclusive_cp, has_range;
	uint16_t vni_min, vni_max;
	unsigned int users; /* LNIs */
	uint16_t in_use[RES_COUNT];
};

/* A region is a range of the process that a LNI's commands and entries may name. */
struct region {
	struct md pub; /* first: what the caller holds */
	struct lni *lni;
	uint32_t flags;
};

/* Regions of one LAC of a LNI, by IOVA. */
struct context {
	struct region **regions;
	unsigned int count, room;
	uint64_t next; /* IOVA of the next region */
	bool taken;    /* counted for the service */
};

struct lni {
	struct cxil_lni pub; /* first */
	struct nic *nic;
	struct service *svc;
	struct {
		unsigned int vni, refs;
		int tc, tc_type;
	} lcids[LIMIT_LCIDS];
	struct context contexts[LIMIT_LACS];
	unsigned int next_lac, users;
};

struct profile {
	struct cp pub; /* first */
	struct lni *lni;
};

struct domain {
	struct cxil_domain pub; /* first */
	struct link link;	/* in domains */
	struct lni *lni;
	struct pte *indices[GRANULE];
	struct pte *multicast;
	unsigned int users;
	int fd; /* bound to the address; -1 when the fabric is this process alone */
};

struct nic {
	struct devinfo info;
	struct service services[SERVICES];
	struct cmdq *cmdqs[CMDQS];
	struct evq *eqs[LIMIT_EQS];
	struct pte *ptes[LIMIT_PTLTES];
	struct counter *cts[LIMIT_COUNTERS];
	unsigned int les, next_lni;
	unsigned int txqs, tgqs, evqs; /* before these numbers are all that were ever given out */
	struct tles *tles;
};

/* Triggered entries, which children of the process share with it: by atomic operations alone. */
struct tles {
	unsigned int used, peak;
	unsigned int of_service[SERVICES];
};
bool tle_take(struct lni *l);
void tle_give(struct lni *l);

/* What a page of doorbells belongs to. */
enum door { DOOR_NONE, DOOR_CMDQ, DOOR_EQ, DOOR_CT };

struct cmdq {
	struct cq pub; /* first */
	struct lni *lni;
	struct evq *eq; /* of failures, or NULL */
	uint8_t *ring;
	uint64_t *page;
	size_t ring_bytes;
	bool tx, triggered, ring_is_ours;
	unsigned int rd, wr; /* slots */
	unsigned int lcid, acks;
	uint8_t cstate[CSTATE_BYTES];
};

struct evq {
	struct eq pub; /* first */
	struct nic *nic;
	struct lni *lni;
	struct eq_attr attr;
	struct cxil_wait_obj *event_wait, *status_wait;
	uint64_t trapped;				      /* software state, where stores to the page are trapped */
	uint64_t *state, *page;				      /* software state wherever it is; the page */
	uint64_t seen;					      /* state that was acted on last */
	unsigned int wr, blocks, reserved, users, thresholds; /* wr: bytes; thresholds: crossed, bits */
	unsigned int drops;				      /* since the program acknowledged */
	bool shut;	     /* events were dropped, and the program has not said that it knows */
	uint8_t waiting[64]; /* an event that others may overtake, of this size class; 0: none */
	unsigned int waiting_class;
};

struct counter {
	struct ct pub; /* first */
	struct nic *nic;
	struct lni *lni;
	uint64_t success, failure;
	uint64_t *wb, *page;
	struct link triggers;
};

struct pte {
	struct cxil_pte pub; /* first */
	struct nic *nic;
	struct lni *lni;
	struct evq *eq;
	struct pt_opts opts;
	int state;
	uint32_t drops;
	bool append_failed;
	struct link lists[4];
	unsigned int users;
};

/* An entry of a list. */
struct entry {
	struct link link;
	struct pte *pte;
	uint8_t cmd[TARGET_BYTES]; /* as appended */
	uint64_t used;		   /* bytes given away, where the NIC manages the space */
	unsigned int busy;	   /* messages that are landing */
	bool unlinked;
};

/* A request as it goes through the fabric. */
struct request {
	uint8_t op, index_ext, rendezvous_id, amo, amo_type, cswap;
	bool restricted, small, flush, reduction, pcie;
	uint16_t vni;
	uint32_t dfa, src_nid, initiator, length, eager;
	uint64_t remote_offset, match_bits, header_data;
	uint64_t op1[2], op2[2];
};

struct answer {
	uint8_t rc, list;
	uint32_t mlength;
	uint64_t result[2];
};

/* An unexpected message: its header, behind the data in an overflow entry's buffer. */
struct header {
	struct link link;
	struct request rq;
	uint64_t start;
	uint32_t mlength;
	uint16_t buffer_id; /* of the overflow entry */
};

/* An operation that a NIC has issued and that is not complete. */
struct operation {
	struct link link;
	struct request rq;
	struct nic *nic;
	struct lni *lni;
	unsigned int eq, ct;
	uint64_t user_ptr, local; /* local: IOVA of the data */
	uint64_t result;	  /* IOVA of a fetched value */
	uint8_t lac, result_lac;
	bool send_disable, success_disable, ct_send, ct_reply, ct_ack, ct_bytes;
	bool is_reply; /* of a rendezvous, on a table entry's event queue */
	bool inlined, has_result;
	uint8_t data[LIMIT_INLINE_RESTRICTED];
	uint32_t id; /* between processes */
	uint32_t received;
	uint8_t failed;
	long sent; /* when, ms */
	struct link_to *peer;
};

/* A message that is landing at a table entry. */
struct landing {
	struct request rq;
	struct nic *nic;
	struct pte *pte;
	struct entry *entry;
	uint64_t room;	/* that the entry had */
	uint8_t *at;	/* in this process */
	uint64_t start; /* its IOVA, for events */
	uint32_t mlength;
	uint8_t list, rc;
	bool unlink;
	uint32_t prefix; /* bytes of packet header before the data */
};

extern struct nic nics[DEVICES];
extern unsigned int nic_count;
extern struct link domains;

/* config.c */
void nic_lock(void);
void nic_lock_last(void);
void nic_unlock(void);

/* config.c: what a test orders, by the environment or cassini_set */
enum mode { MODE_DIRECT, MODE_THREADED, MODE_STEPPED };
struct settings {
	long mode, devices, version, nid;
	long ptes, txqs, tgqs, eqs, cts, les, tles, lacs, pids, lcids; /* limits */
	long exclusive;						       /* service 1 shares no profiles */
	long get;		 /* 1: the NIC gets the data of a rendezvous itself */
	long fault_at, fault_rc; /* the command that fails, counted from 1, and how */
	long map_fails;		 /* the call of cxil_map that fails, counted from 1 */
	long map_most;		 /* calls of cxil_map that do not fail, 0: all */
	long call_at, call_rc;	 /* the control call that fails, counted from when this was set, and its errno value */
	long open_rc;		 /* errno value with which opening a device fails, 0: it does not */
	long member;		 /* the user that alone may use service 1, -1: everybody */
	long enable;		 /* 0: service 1 is switched off */
	long slots, eq_bytes;	 /* the longest command queue and event queue */
	long shuffle;		 /* every how many-th event of those that may changes places with the next */
	long lose, late;	 /* every how many-th packet, or answer, is lost, or late */
	long timeout;		 /* ms after which a request without an answer is undeliverable */
	long fabric;  /* its number: processes with another one do not meet; -1: one for this process alone */
	long record;  /* commands and events are kept for cassini_record */
	long signals; /* 0: no signal is caught but for stores that are trapped */
};
extern struct settings set;
void config_read(void);

/* What happened, and queue_bytes; cassini_count reads it by name. */
struct counts {
	uint64_t commands, bytes, doorbells, cstates, pointers, events, dropped, packets;
	uint64_t restricted, flushes, success, plec;
	uint64_t unclassed;	    /* restricted commands under a profile of another type of traffic */
	uint64_t rings, ring_bytes; /* doorbells of command queues, and what the NIC reads of their rings */
	uint64_t queue_bytes;	    /* of the event queues that there are now */
};
extern struct counts counts;
int fault_of_command(void); /* the return code that the next command fails with, or 0 */
int fault_of_call(void);    /* without the lock: the negative errno value that a control call ends with, or 0 */

/* doorbell.c: pages whose stores are seen */
uint64_t *door_open(enum door kind, void *object);
void door_close(uint64_t *page);
void door_deferred(void); /* performs what was stored to pages of counters while the NIC stood still */
/* door_copy copies where either side may be missing; false then. */
bool door_copy(void *to, const void *from, size_t n);
/* door_words does so with n words, each whole, and the last after all others. Where signals are not caught, to must
 * be there: it is a queue or a counter's value, whose owner keeps it. */
bool door_words(void *to, const void *from, unsigned int n);

/* memory.c */
struct region *region_find(struct lni *lni, unsigned int lac, uint64_t iova, uint64_t len);
/* translate gives the address in this process, or NULL and a return code. */
uint8_t *translate(struct lni *lni, unsigned int lac, uint64_t iova, uint64_t len, bool write, uint8_t *rc);

/* service.c */
bool service_take(struct service *s, int resource);
void service_give(struct service *s, int resource);
bool service_allows_vni(const struct service *s, unsigned int vni);
void services_init(struct nic *n);
bool le_take(struct pte *p);
void le_give(struct pte *p);

/* event.c */
bool evq_room(const struct evq *q, unsigned int blocks);
void evq_post(struct evq *q, void *event, unsigned int size_class);
void events_release(void);
void evq_state(struct evq *q);
void event_initiator(struct nic *n, unsigned int eqn, int type, const struct operation *op, const struct answer *a);
void event_failure(struct cmdq *q, unsigned int slot, uint8_t command, uint8_t rc);

/* wait.c */
void wait_raise(struct cxil_wait_obj *w);

/* command.c: the front of the engine */
void cmdq_ring(struct cmdq *q, uint64_t wr);
void cmdq_target(struct cmdq *q, const uint8_t *cmd);
void engine_poll(void);
void engine_work(void);

/* initiate.c */
uint8_t issue_inline(struct cmdq *q, const uint8_t *cmd, unsigned int bytes);
uint8_t issue_dma(struct cmdq *q, const uint8_t *cmd, unsigned int bytes);
void operation_queue(struct operation *op);
void operation_complete(struct operation *op, const struct answer *a);
struct operation *operation_next(void);
struct operation *operation_new(struct lni *l);
void operation_free(struct operation *op);
void operation_run(struct operation *op);
void operations_forget(struct lni *lni);

/* target.c */
struct domain *domain_find(uint32_t nid, unsigned int vni, unsigned int pid);
bool land_begin(struct landing *l, const struct request *rq);
void land_end(struct landing *l, const void *data, struct answer *a);

/* match.c */
bool command_matches(const struct pte *p, const uint8_t *cmd, const struct request *rq);
bool entry_matches(const struct entry *e, const struct request *rq);
struct entry *match_entry(struct pte *p, const struct request *rq, int *list);
uint64_t entry_left(const struct entry *e);
bool entry_spent(const struct entry *e);
void entry_release(struct entry *e);

/* portal.c: events and states of table entries */
void target_event(struct pte *p, uint8_t *event, bool can_be_short);
void event_entry(struct pte *p, int type, const uint8_t *cmd, uint8_t rc, bool automatic);
void event_header(int type, const struct request *rq, uint8_t *event);
void event_message(int type, const struct request *rq, int list, const uint8_t *cmd, uint64_t start, uint32_t mlength,
		   uint8_t *event);
void state_change(struct pte *p, int state, int reason, bool automatic, uint8_t rc);
bool pte_exhausted(struct pte *p, int reason);
void pte_clear(struct pte *p);
void late_answers(struct pte *p);

/* unexpected.c */
bool unexpected_take(struct pte *p, struct entry *e);
void unexpected_search(struct pte *p, const uint8_t *cmd, bool remove);
void rendezvous_get(struct pte *p, const uint8_t *cmd, const struct request *rq, uint64_t to, uint64_t room,
		    uint32_t mlength);

/* atomic.c */
uint8_t atomic_apply(const struct request *rq, void *at, uint64_t result[2]);
unsigned int atomic_size(unsigned int type);

/* counter.c */
void counter_add(struct nic *n, unsigned int ct, bool failed, uint64_t value);
void counter_door(struct counter *c, unsigned int offset, uint64_t value);
uint8_t counter_command(struct cmdq *q, const uint8_t *cmd, unsigned int bytes);
void counter_forget(struct counter *c);

/* fabric.c: other processes */
bool fabric_open(struct domain *d);
void fabric_close(struct domain *d);
/* fabric_send takes an operation for another process; false where nothing has its address. */
bool fabric_send(struct operation *op, const uint8_t *data, uint32_t n);
void fabric_invalidate(struct pte *p, unsigned int buffer_id, int list);
void fabric_leave(struct pte *p);
void fabric_forget(struct lni *l);
void station_step(void);
bool station_wake(void); /* false where nothing sleeps */
void station_forked(void);
void polling_start(void);

/* record.c */
void record(int kind, unsigned int number, const void *bytes, size_t n);

#endif
