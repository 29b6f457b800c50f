// SPDX-License-Identifier: BSD-2-Clause
#include "drive.h"

int weft_drive_next(struct weft_hot_transport *transport, struct weft_transport_message *m)
{
	return transport->next(transport, m);
}

int weft_drive_polls(struct weft_hot_transport *transport, int times)
{
	struct weft_transport_message m;
	int empty = 0;

	for (int i = 0; i < times; i++)
		empty += transport->next(transport, &m) == WEFT_TRANSPORT_EMPTY;
	return empty;
}

int weft_drive_takes(struct weft_hot_transport *transport, int times)
{
	struct weft_transport_message m;
	int taken = 0;

	while (taken < times && transport->next(transport, &m) == WEFT_TRANSPORT_ARRIVAL) {
		transport->take(transport);
		taken++;
	}
	return taken;
}

int weft_drive_peek(struct weft_hot_transport *transport, struct weft_transport_message *m)
{
	return transport->peek(transport, m);
}

int weft_drive_take(struct weft_hot_transport *transport)
{
	return transport->take(transport);
}

void weft_drive_flush(struct weft_hot_transport *transport)
{
	transport->flush(transport);
}

int weft_drive_send(struct weft_hot_path *path, uint64_t header, const void *head, uint32_t head_bytes,
		    const void *payload, uint32_t length, uint32_t id, uint32_t hold)
{
	struct weft_transport_message m = {
		.header = header,
		.head = head,
		.payload = payload,
		.length = length,
		.head_bytes = (uint16_t)head_bytes,
		.id = (uint8_t)id,
		.hold = (uint8_t)hold,
	};

	return path->send(path, &m);
}

int weft_drive_sends(struct weft_hot_path *path, const void *payload, uint32_t length, uint32_t id, int times)
{
	int sent = 0;

	while (sent < times &&
	       weft_drive_send(path, 0, NULL, 0, payload, length, id, WEFT_HOLD_NEVER) == WEFT_PATH_SENT)
		sent++;
	return sent;
}
