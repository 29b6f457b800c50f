#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Shows weft at work, a line of progress before each step. Ends with status 1
# when a step fails.
set -u
cd "$(dirname "$0")/.." || exit 1

export FI_PROVIDER_PATH=$PWD/build/lib
steps=6
step=0
failed=0

say() {
	step=$((step + 1))
	echo
	echo "[$step/$steps] $1"
}

bad() {
	echo "FAILED: $1" >&2
	failed=1
}

say "building libweft-fi.so, libweft-core.so and libweft.so into build/lib"
${MAKE:-make} -s build bench-program || {
	bad build
	exit 1
}
ls -l build/lib/*.so

say "what libfabric $(fi_info --version | sed -n 's/^libfabric: //p') sees: fi_info -p weft"
fi_info -p weft || bad "fi_info -p weft"

# Server and client in one go; the server ends with its client.
say "fi_pingpong over weft, two processes, reliable datagrams"
pingpong() {
	local server status
	timeout 60 fi_pingpong -p weft -e rdm -I 1000 >/dev/null 2>build/pingpong.server &
	server=$!
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		sleep 0.3
		timeout 60 fi_pingpong -p weft -e rdm -I 1000 127.0.0.1 2>build/pingpong.client
		status=$?
		# no server yet: once more
		[ "$status" = 0 ] || ! kill -0 "$server" 2>/dev/null || continue
		break
	done
	[ "$status" = 0 ] || cat build/pingpong.server build/pingpong.client >&2
	wait "$server" && [ "$status" = 0 ]
}
pingpong || bad fi_pingpong

say "an MPI program on 2 ranks: Open MPI's mtl ofi over weft"
if ! { mpicc -O2 -o build/ring examples/ring.c && timeout 60 scripts/mpi.sh 2 weft build/ring; }; then
	bad "MPI over weft"
fi

say "the same calls without libfabric: examples/hello.c with libweft.so"
if ! { "${CC:-gcc}" -o build/hello examples/hello.c -Lbuild/lib -lweft &&
	LD_LIBRARY_PATH=$FI_PROVIDER_PATH timeout 60 build/hello; }; then
	bad "hello with libweft.so"
fi

say "latency and bandwidth beside the shm provider's, measured in turn in one run"
build/bin/weft bench --quick --rounds 5 --providers weft,shm || bad "benchmark"

echo
if [ "$failed" = 0 ]; then
	echo "all steps done"
else
	echo "some steps failed" >&2
	exit 1
fi
