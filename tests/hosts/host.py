# SPDX-License-Identifier: BSD-2-Clause
"""A Python program as a host of the provider, through ctypes.

Arguments: the library of host.c, the provider, a folder for names, rank, number of ranks.
Meanwhile a timer's signal is handled, and faulthandler has its handlers installed.
"""

import ctypes
import faulthandler
import gc
import os
import signal
import sys
import threading
import time

THREADS, ROUNDS, SIZES = 3, 40, (1, 100, 4000, 20000, 300000)
PATTERN = bytes(range(251)) * (max(SIZES) // 251 + 2)

ticks = 0


def tick(_signal, _frame):
    global ticks
    ticks += 1


class Host:
    def __init__(self, library, provider):
        c = ctypes.CDLL(library)
        c.host_open.restype = ctypes.c_void_p
        c.host_open.argtypes = [ctypes.c_char_p]
        c.host_name.restype = ctypes.c_ssize_t
        c.host_name.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        c.host_peer.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        transfer = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]
        c.host_send.argtypes = transfer
        c.host_receive.argtypes = transfer
        c.host_receive.restype = ctypes.c_ssize_t
        c.host_close.argtypes = [ctypes.c_void_p]
        self.c = c
        self.h = c.host_open(provider.encode())
        if not self.h:
            sys.exit(f"python: no endpoint of {provider}")

    def meet(self, folder, rank, ranks):
        """Exchanges names with the others through files."""
        name = ctypes.create_string_buffer(256)
        n = self.c.host_name(self.h, name, len(name))
        with open(f"{folder}/.{rank}", "wb") as f:
            f.write(name.raw[:n])
        os.rename(f"{folder}/.{rank}", f"{folder}/{rank}")
        for peer in range(ranks):
            while not os.path.exists(f"{folder}/{peer}"):
                time.sleep(0.02)
            with open(f"{folder}/{peer}", "rb") as f:
                if self.c.host_peer(self.h, f.read()):
                    sys.exit(f"python: peer {peer} is refused")


def content(sender, thread, turn):
    size = SIZES[turn % len(SIZES)]
    start = (sender * 7 + thread * 13 + turn * 31) % 251
    return PATTERN[start : start + size]


def exchange(host, rank, ranks, thread, wrong):
    buffer = ctypes.create_string_buffer(max(SIZES))

    def send(peer, turn):
        data = content(rank, thread, turn)
        status = host.c.host_send(host.h, peer, thread << 32 | turn, data, len(data))
        if status:
            wrong.append(f"send {turn} to {peer}: {status}")

    def receive(peer, turn):
        n = host.c.host_receive(host.h, peer, thread << 32 | turn, buffer, len(buffer))
        if n < 0 or buffer.raw[:n] != content(peer, thread, turn):
            wrong.append(f"receive {turn} from {peer}: {n}")

    for turn in range(ROUNDS):
        for peer in range(ranks):
            if peer != rank:
                first, second = (send, receive) if rank < peer else (receive, send)
                first(peer, turn)
                second(peer, turn)
        gc.collect()


def main():
    library, provider, folder, rank, ranks = sys.argv[1:]
    rank, ranks = int(rank), int(ranks)
    faulthandler.enable()
    signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    host = Host(library, provider)
    host.meet(folder, rank, ranks)
    wrong = []
    threads = [threading.Thread(target=exchange, args=(host, rank, ranks, t, wrong)) for t in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    signal.setitimer(signal.ITIMER_REAL, 0)
    host.c.host_close(host.h)
    if wrong or not ticks or not faulthandler.is_enabled():
        sys.exit(f"python: {wrong[:5]}, {ticks} signals")
    print(f"python: passed as {rank} of {ranks}")


main()
