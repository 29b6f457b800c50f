/* SPDX-License-Identifier: BSD-2-Clause */
/* drive.h: calls the functions that a backend gives to C. */
#ifndef WEFT_DRIVE_H
#define WEFT_DRIVE_H

#include "../../../include/weft/hot.h"

int weft_drive_next(struct weft_hot_transport *transport, struct weft_transport_message *m);
int weft_drive_polls(struct weft_hot_transport *transport, int times);
int weft_drive_takes(struct weft_hot_transport *transport, int times);
int weft_drive_peek(struct weft_hot_transport *transport, struct weft_transport_message *m);
int weft_drive_take(struct weft_hot_transport *transport);
void weft_drive_flush(struct weft_hot_transport *transport);
int weft_drive_send(struct weft_hot_path *path, uint64_t header, const void *head, uint32_t head_bytes,
		    const void *payload, uint32_t length, uint32_t id, uint32_t hold);
int weft_drive_sends(struct weft_hot_path *path, const void *payload, uint32_t length, uint32_t id, int times);

#endif
