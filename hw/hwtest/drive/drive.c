// SPDX-License-Identifier: BSD-2-Clause
#include "drive.h"

int weft_drive_next(struct weft_hot_port *port, struct weft_port_message *m)
{
	return port->next(port, m);
}

int weft_drive_looks(struct weft_hot_port *port, int times)
{
	struct weft_port_message m;
	int empty = 0;

	for (int i = 0; i < times; i++)
		empty += port->next(port, &m) == WEFT_PORT_EMPTY;
	return empty;
}

int weft_drive_peek(struct weft_hot_port *port, struct weft_port_message *m)
{
	return port->peek(port, m);
}

int weft_drive_take(struct weft_hot_port *port)
{
	return port->take(port);
}

void weft_drive_flush(struct weft_hot_port *port)
{
	port->flush(port);
}

int weft_drive_send(struct weft_hot_path *path, uint64_t header, const void *head, uint32_t head_bytes,
		    const void *payload, uint32_t length, uint32_t id, uint32_t hold)
{
	struct weft_port_message m = {
		.header = header, .head = head, .payload = payload, .length = length,
		.head_bytes = (uint16_t)head_bytes, .id = (uint8_t)id, .hold = (uint8_t)hold,
	};

	return path->send(path, &m);
}
