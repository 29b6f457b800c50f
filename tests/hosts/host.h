// SPDX-License-Identifier: BSD-2-Clause
// What the programs beside it, of three languages, call of libfabric: one reliable datagram
// endpoint, and sends and receives that wait for their completion. Any number of threads may
// call at a time. Functions give 0, or a number of bytes, or a negative errno.
#ifndef WEFT_TESTS_HOST_H
#define WEFT_TESTS_HOST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct host;

// Opens an endpoint of the provider, and of no other. NULL where that fails; why is on standard error.
struct host *host_open(const char *provider);

// Writes the endpoint's name, at most size bytes; gives how long it is.
ssize_t host_name(struct host *h, void *name, size_t size);

// Names a peer: peers are numbered from 0 in the order of these calls.
int host_peer(struct host *h, const void *name);

int host_send(struct host *h, uint64_t peer, uint64_t tag, const void *data, size_t size);

// Gives the message's length.
ssize_t host_receive(struct host *h, uint64_t peer, uint64_t tag, void *data, size_t size);

void host_close(struct host *h);

#endif
