/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Active message ids of the two-sided protocol, known to the C posting path
 * and to package provider. The 64-bit active message header is the tag (0 for
 * untagged messages). An id with DATA carries the remote CQ data as the first
 * 8 bytes of its payload.
 */
#ifndef WEFT_MESSAGE_H
#define WEFT_MESSAGE_H

enum weft_am {
	WEFT_AM_MSG = 1,       /* untagged, complete in one active message */
	WEFT_AM_MSG_DATA = 2,
	WEFT_AM_TAG = 3,
	WEFT_AM_TAG_DATA = 4,
};

#endif
