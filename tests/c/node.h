/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WEFT_TESTS_NODE_H
#define WEFT_TESTS_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#define NODE_PEERS 8
#define NODE_NAME_MAX 256

/* What a test wants of its endpoint. Zero means the default that the comment gives. */
struct node_opts {
	uint64_t caps;		  /* FI_MSG | FI_TAGGED */
	uint64_t ep_caps;	  /* written over info->caps before fi_endpoint; those of fi_getinfo */
	uint64_t tx_flags;	  /* tx_attr->op_flags */
	uint64_t rx_flags;	  /* rx_attr->op_flags */
	uint64_t tx_bind;	  /* added to FI_TRANSMIT */
	uint64_t rx_bind;	  /* added to FI_RECV */
	int mr_mode;		  /* domain_attr->mr_mode */
	enum fi_cq_format format; /* FI_CQ_FORMAT_TAGGED */
	enum fi_wait_obj wait;	  /* FI_WAIT_NONE */
	enum fi_threading threading;
	enum fi_progress control, data; /* unspecified */
	enum fi_av_type av_type;	/* FI_AV_TABLE */
	uint64_t av_flags;		/* of the address vector */
	size_t cq_size;			/* the provider's default */
	size_t tx_size, rx_size;	/* the provider's default */
	uint32_t version;		/* FI_VERSION(1, 17) */
	const char *service;		/* the port to use; NULL: any */
	uint32_t addr_format;		/* any */
	const char *auth, *ep_auth;	/* authorisation keys of the domain and the endpoint: none */
	uint64_t order;			/* msg_order beside FI_ORDER_SAS */
	bool unordered;			/* do not ask for FI_ORDER_SAS */
	bool one_cq;			/* one CQ for both directions */
	bool counters;			/* also bind a tx and an rx counter */
	bool disabled;			/* leave the endpoint disabled */
};

/* One endpoint and everything it needs. */
struct node {
	struct node_opts o;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *txcq, *rxcq; /* the same one with one_cq */
	struct fid_cntr *txcntr, *rxcntr;
	struct fid_ep *ep;
	fi_addr_t peer[NODE_PEERS]; /* by rank, this process too, after node_connect */
	struct fi_cq_err_entry err; /* the last error completion that wait_for met */
	char err_data[64];
};

/* An endpoint's address, as it travels over the sideband. */
struct name {
	size_t len;
	char bytes[NODE_NAME_MAX];
};

/* Hints for the provider under test; the caller frees them. o may be NULL. */
struct fi_info *node_hints(const struct node_opts *o);

/* fi_getinfo with node_hints; NULL when the provider has nothing that fits (-FI_ENODATA). */
struct fi_info *node_info(const struct node_opts *o);

/* fi_getinfo of a version with hints, which it frees, and without an address. */
int node_getinfo(uint32_t version, struct fi_info *hints, struct fi_info **info);

/* The same of 1.17; NULL when nothing fits (-FI_ENODATA). Other errors fail the test. */
struct fi_info *node_offered(struct fi_info *hints);

/* Skips the test where the provider has nothing that fits: no device matches messages, or reads and writes memory. */
void node_need(const struct node_opts *o);

/* Opens and enables; fails the test on any error (skips when another provider lacks a cap). */
void node_open(struct node *n, const struct node_opts *o);

/* The same on objects of base: a second endpoint of base's domain with its own AV and CQs. */
void node_open_on(struct node *n, const struct node *base, const struct node_opts *o);

/* Exchanges names with all ranks over the sideband and inserts them in rank order. */
void node_connect(struct node *n);

/* Its two halves: names of all ranks, and the insertion of one. */
void node_names(struct node *n, struct name names[NODE_PEERS]);
fi_addr_t node_insert_name(struct node *n, const struct name *name);

/* This endpoint's own name. */
void node_name(struct node *n, struct name *name);

/* Inserts the name of other into n's AV. */
fi_addr_t node_insert(struct node *n, struct node *other);

/* What a counter of weft's (weft/ext.h) has at the endpoint. */
uint64_t node_counter(struct node *n, const char *name);

void node_close(struct node *n);

/* Fabric and domain only, for tests that open the rest themselves; node_close does not fit them. */
void node_open_domain(struct node *n, const struct node_opts *o);
void node_close_domain(struct node *n);

/* True for addresses that are sockaddr_in or sockaddr_in6. */
bool node_has_sockaddr(const struct node *n);

#endif
