// SPDX-License-Identifier: BSD-2-Clause

//go:build direct

/* Transport addresses as text, in the form that FI_ADDR_STR has for socket
 * addresses: fi_sockaddr_in://127.0.0.1:1234. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "direct.h"

static void add_in(struct weft_text *t, const void *addr, size_t len)
{
	struct sockaddr_in in;
	char host[INET_ADDRSTRLEN];

	if (len < sizeof(in))
		return;
	memcpy(&in, addr, sizeof(in));
	if (inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host)))
		weft_text_add(t, "fi_sockaddr_in://%s:%u", host, ntohs(in.sin_port));
}

static void add_in6(struct weft_text *t, const void *addr, size_t len)
{
	struct sockaddr_in6 in6;
	char host[INET6_ADDRSTRLEN];

	if (len < sizeof(in6))
		return;
	memcpy(&in6, addr, sizeof(in6));
	if (inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof(host)))
		weft_text_add(t, "fi_sockaddr_in6://[%s]:%u", host, ntohs(in6.sin6_port));
}

/* add_sockaddr goes by the address's own family; one that is not of the
 * internet stays empty. */
static void add_sockaddr(struct weft_text *t, const void *addr, size_t len)
{
	sa_family_t family;

	if (len < sizeof(family))
		return;
	memcpy(&family, addr, sizeof(family));
	if (family == AF_INET)
		add_in(t, addr, len);
	else if (family == AF_INET6)
		add_in6(t, addr, len);
}

/* add_bytes shows an address that only another provider can read. */
static void add_bytes(struct weft_text *t, const void *addr, size_t len)
{
	const unsigned char *bytes = addr;

	for (size_t i = 0; i < len; i++)
		weft_text_add(t, "%02x", bytes[i]);
}

void weft_tostr_address(struct weft_text *t, uint32_t format, const void *addr, size_t len)
{
	switch (format) {
	case FI_SOCKADDR:
	case FI_SOCKADDR_IN:
	case FI_SOCKADDR_IN6:
		add_sockaddr(t, addr, len);
		break;
	case FI_ADDR_STR:
		weft_text_add(t, "%.*s", (int)strnlen(addr, len), (const char *)addr);
		break;
	default:
		add_bytes(t, addr, len);
	}
}
