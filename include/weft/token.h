/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory tokens: one short string for a piece of memory, and lists of pieces of it
 * that are read and written as one operation, whichever way leads there. A program
 * needs this header and nothing to link:
 *
 *	struct weft_token_ops *t;
 *	char token[WEFT_TOKEN_MAX];
 *	size_t len = sizeof(token);
 *
 *	fi_open_ops(&mr->fid, WEFT_TOKEN_OPS, 0, (void **)&t, NULL);
 *	t->pack(mr, NULL, token, &len);              // the owner; then by any road to the peer
 *
 *	fi_open_ops(&ep->fid, WEFT_TOKEN_OPS, 0, (void **)&t, NULL);
 *	t->open(ep, token, len, &remote);            // the peer
 *	t->list(ep, local, pieces, n, 0, &list);
 *	t->post(list, WEFT_WRITE, NULL, 0, "done", 4, 0, context);
 *
 *	t->notes(ep, entries, max);                  // the owner: what has arrived, and its sender
 *
 * Other providers, and other names, give -FI_ENOSYS. All calls may be made by any thread as
 * far as the domain's threading model allows calls on the endpoint. docs/token.md has a whole
 * program.
 */
#ifndef WEFT_TOKEN_H
#define WEFT_TOKEN_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

/* The name of the operations. What changes in a way that breaks programs gets another name;
 * members are added at the end of structures only. */
#define WEFT_TOKEN_OPS "weft_token_1"

#define WEFT_TOKEN_MAX 512	/* bytes of a token */
#define WEFT_TOKEN_TEXT_MAX 700 /* bytes of its text form, with the zero at its end */
#define WEFT_AGENT_MAX 64	/* bytes of an agent's name */
#define WEFT_LIST_MAX 1048576	/* elements of a list */
#define WEFT_NOTE_MAX 65536	/* bytes of a notification */
#define WEFT_NAME_MAX 64	/* bytes of a sender's address */

/* What a token is to have that the region does not say. */
struct weft_token_attr {
	struct fid_ep *ep; /* by which peers reach the region, an endpoint or a receive context; NULL: any enabled
			    * one of the domain */
	const char *agent; /* what the owner calls itself; NULL: nothing */
};

/* A peer's region, opened by its token; fi_close(&remote->fid) closes it. */
struct weft_remote {
	struct fid fid;
};

/* A prepared list; fi_close(&list->fid) closes it. Until then its local memory must stay where it is, also while no
 * post is under way. Posts that have not ended begin no further elements then, and end with FI_ECANCELED if some are
 * left, when those under way have ended, or without a completion when the endpoint is closed; until either their memory
 * must stay, too. */
struct weft_list {
	struct fid fid;
};

/* The kinds of memory. */
enum weft_memory {
	WEFT_MEMORY_HOST,
	WEFT_MEMORY_CUDA,
	WEFT_MEMORY_DMABUF,
};

/* The ways of elements. */
enum weft_way {
	WEFT_WAY_IPC,	  /* this process copies to and from the memory of the peer's */
	WEFT_WAY_RDMA,	  /* an RDMA device does */
	WEFT_WAY_MESSAGE, /* the peer's process does, by messages */
	WEFT_WAYS
};

#define WEFT_WHY_MAX 128

/* What is known of a remote region. */
struct weft_remote_info {
	fi_addr_t addr;	 /* of the owner, in the endpoint's address vector */
	uint64_t key;	 /* for fi_read() and the like */
	uint64_t base;	 /* the address by which operations name the first byte */
	uint64_t length; /* bytes */
	uint64_t rights; /* FI_REMOTE_READ, FI_REMOTE_WRITE */
	enum weft_memory memory;
	enum weft_way way;  /* that elements take whose local memory is the process's own */
	uint8_t device[16]; /* UUID of the device that has the memory, else zeros */
	char agent[WEFT_AGENT_MAX + 1];
	char why[WEFT_WAYS][WEFT_WHY_MAX]; /* why each other way is not taken; empty for the one that is */
};

/* Elements of a list: count of them, len bytes each, whose beginnings are stride bytes apart. count 0
 * is one, and stride 0 is len. */
struct weft_local_piece {
	void *addr; /* of the first */
	size_t len;
	size_t stride;
	size_t count;
	void *desc; /* fi_mr_desc() of memory of a device, else NULL */
};

struct weft_remote_piece {
	struct weft_remote *remote;
	uint64_t addr; /* of the first, counted as weft_remote_info.base is */
	size_t len;
	size_t stride;
	size_t count;
};

/* What a post does, and how its picks are given. */
#define WEFT_WRITE 0u	    /* to the peer's memory */
#define WEFT_READ (1u << 0) /* from it */
#define WEFT_PICK_BITS (1u << 1)
#define WEFT_NOTE_ON_ERROR (1u << 2) /* the notification goes if the post fails, too, with its error */

/* What a notification is about, in weft_note.op, beside WEFT_WRITE and WEFT_READ: nothing but itself. */
#define WEFT_ALONE 2u

/* For bind: notifications are counted and not kept. */
#define WEFT_NOTES_COUNTED (1ull << 0)

/* A notification that has arrived. The caller sets data and size, notes() all else. */
struct weft_note {
	void *data;			/* where its bytes are to go */
	size_t size;			/* room there, bytes */
	size_t len;			/* its bytes */
	fi_addr_t src;			/* the sender, FI_ADDR_NOTAVAIL if it is not in the address vector */
	uint64_t tag;			/* of the list, or of notify() */
	uint32_t op;			/* WEFT_WRITE: to this side's memory, WEFT_READ: of it, WEFT_ALONE */
	int err;			/* why the post failed (FI_*), 0: it did not */
	size_t namelen;			/* bytes of name */
	uint8_t name[WEFT_NAME_MAX];	/* the sender's address, as fi_av_insert() takes it */
	char agent[WEFT_AGENT_MAX + 1]; /* what the sender calls itself, see agent() */
};

struct weft_token_ops {
	size_t size; /* of this structure, bytes */

	/* Makes a token of a region. *len is the room, and becomes the token's length. attr may be NULL. The
	 * token is good until the region is closed. Returns -FI_ETOOSMALL if there is no room; -FI_EACCES for
	 * a region that peers may neither read nor write; -FI_EOPBADSTATE for one that is not enabled,
	 * or while no endpoint is; -FI_EDOMAIN for an endpoint of another domain; -FI_EINVAL for one with another
	 * authorisation key than the region's, a transmit context, which no peer reaches, a name that is too long, or
	 * NULL; -FI_ENOSYS for an endpoint that is not of type FI_EP_RDM. With FI_AV_AUTH_KEY the token is for endpoints
	 * with any key that both the region and the endpoint have; -FI_EINVAL too if there is none, or there are more than
	 * it has room for, which is at least 32. */
	int (*pack)(struct fid_mr *mr, const struct weft_token_attr *attr, void *token, size_t *len);

	/* Writes the text form of a token, which is printable ASCII without spaces and ends with a zero. *size
	 * as *len of pack. */
	int (*text)(const void *token, size_t len, char *text, size_t *size);

	/* Opens a token or its text form, and inserts its owner into the endpoint's address vector unless it is
	 * there; no other process is asked. The token of a receive context leads there, by an address as fi_rx_addr()
	 * gives it. With FI_AV_AUTH_KEY the address is under the first of the endpoint's keys that the token was made
	 * with. Returns -FI_EINVAL for what is no token, or one made under
	 * other authorisation keys, or whose owner's address is not of the address vector's format, or has an index for
	 * which that has no rx_ctx_bits; -FI_EOPBADSTATE before fi_enable(); -FI_ENOSYS for an endpoint without FI_RMA,
	 * or not of type FI_EP_RDM, and for a receive context; what fi_av_insert() says of the address. */
	int (*open)(struct fid_ep *ep, const void *token, size_t len, struct weft_remote **remote);

	/* Returns what is known of a region; size is that of *info, of which no more is written. */
	int (*info)(struct weft_remote *remote, struct weft_remote_info *info, size_t size);

	/* Prepares a list of count pieces: the elements of local[i] belong to those of remote[i], of which
	 * there are as many, as long. Elements are numbered from 0 in their order. flags must be 0. The arrays
	 * are not needed after the call. Returns -FI_EINVAL for no elements or more than WEFT_LIST_MAX, pieces that do
	 * not fit each other, addresses that wrap, and regions of several owners; -FI_EMSGSIZE for too many bytes;
	 * -FI_EACCES for elements beyond their region; -FI_EDOMAIN for a region that was opened by another endpoint;
	 * -FI_EBADFLAGS; -FI_ENOMEM. */
	int (*list)(struct fid_ep *ep, const struct weft_local_piece *local, const struct weft_remote_piece *remote,
		    size_t count, uint64_t flags, struct weft_list **list);

	/* Posts a list: all elements (picks NULL), or count of them, whose numbers (uint32_t) are in picks, or, with
	 * WEFT_PICK_BITS, those of count elements whose bits are set: bit n % 64 of word n / 64 (uint64_t; the bits
	 * beyond are 0). op is WEFT_WRITE or WEFT_READ, perhaps with WEFT_PICK_BITS and
	 * WEFT_NOTE_ON_ERROR. flags are as of fi_writemsg():
	 * FI_COMPLETION, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE, FI_FENCE, FI_MORE.
	 *
	 * It is one operation with one completion, of kind FI_RMA | FI_WRITE or FI_READ. If an element fails no
	 * further ones begin; the error completion has its number in data, and in len how many bytes are known
	 * to be done. No order holds among the elements. fi_cancel() takes back what is not under way.
	 *
	 * Unless note is NULL the owner gets a notification of notelen bytes, when all elements are in its memory, or
	 * read, behind those of earlier posts; the bytes are the caller's again after the call. If the post fails it
	 * gets none but with WEFT_NOTE_ON_ERROR. The post completes when the notification is sent, which it is not while
	 * the owner holds too many; with FI_DELIVERY_COMPLETE when the owner has it.
	 *
	 * Returns -FI_EAGAIN as other posts do; -FI_EACCES for a region without the right; -FI_EINVAL for no elements,
	 * one that is not there, and a notification at NULL; -FI_EMSGSIZE for a notification that is too
	 * long; -FI_EBADFLAGS; what fi_writemsg() says of the peer. */
	ssize_t (*post)(struct weft_list *list, uint32_t op, const void *picks, size_t count, const void *note,
			size_t notelen, uint64_t flags, void *context);

	/* Gives the notifications of later posts of a list a tag, which is 0 before. */
	int (*tag)(struct weft_list *list, uint64_t tag);

	/* Gives an endpoint a name that its notifications carry, of at most WEFT_AGENT_MAX bytes; else -FI_EINVAL. */
	int (*agent)(struct fid_ep *ep, const char *name);

	/* Sends a notification without a transfer, behind those of earlier posts. flags are as of post. It completes as a
	 * message, with the same meaning as post's. Returns what post does about notifications and the peer; -FI_ENOSYS for
	 * an endpoint that is not of type FI_EP_RDM, and a receive context. */
	ssize_t (*notify)(struct fid_ep *ep, fi_addr_t dest, uint64_t tag, const void *note, size_t notelen,
			  uint64_t flags, void *context);

	/* Takes the oldest notifications that have arrived, at most max; makes progress if there are none. Returns how
	 * many, 0 for none; -FI_ETOOSMALL if the first does not fit: it stays, and len is how long it is. A later one that
	 * does not fit stays for the next call. Other errors: -FI_EOPBADSTATE before fi_enable(); -FI_ENOSYS for an
	 * endpoint that is not of type FI_EP_RDM, and a transmit context; -FI_EINVAL. */
	ssize_t (*notes)(struct fid_ep *ep, struct weft_note *entries, size_t max);

	/* Binds a completion queue or a counter for notifications that arrive, before fi_enable(). The queue gets an entry
	 * for each, which notes() has then: flags FI_RMA | FI_REMOTE_WRITE or FI_REMOTE_READ, or FI_RECV | FI_MSG, with
	 * FI_REMOTE_CQ_DATA; len the notification's, data the tag. With WEFT_NOTES_COUNTED a counter is all there is of them.
	 * Errors as of fi_ep_bind(); -FI_ENOSYS as notes. */
	int (*bind)(struct fid_ep *ep, struct fid *fid, uint64_t flags);
};

#endif
