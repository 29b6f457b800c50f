/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PIN_H
#define PIN_H

/* pin_to binds the calling thread to a core. */
void pin_to(int core);

#endif
