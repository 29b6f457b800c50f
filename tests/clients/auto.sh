#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs programs of tests/c with a progress thread in every domain that asks for
# none: nothing may change for them. Then some with all threads on one core.
set -u
cd "$(dirname "$0")/../.." || exit 1

export FI_WEFT_PROGRESS_THREAD=yes
all=(0 0 0)

# add COMMAND... runs it and adds up its closing line.
add() {
	local out line
	out=$("$@" 2>&1)
	line=$(tail -n 1 <<<"$out")
	sed '$d' <<<"$out"
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		for i in 0 1 2; do
			all[i]=$((all[i] + BASH_REMATCH[i + 1]))
		done
	else
		echo "not ok - $* ended without a closing line"
		all[1]=$((all[1] + 1))
	fi
}

add tests/clients/run-c.sh msg_order threads eagain levels cancel trywait source
core=$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')
add taskset -c "$core" tests/clients/run-c.sh progress threads msg_order
echo "${all[0]} passed, ${all[1]} failed, ${all[2]} skipped"
((all[1] == 0 && all[0] > 0))
