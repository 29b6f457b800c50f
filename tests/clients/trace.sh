#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft trace on a running C program that makes known numbers of calls
# (tests/c/traced.c): the numbers, that the probes go when weft trace is killed,
# a process that ends meanwhile, and no rights.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh

OUT=$PWD/build/tests
WEFT=$PWD/build/bin/weft
LIMIT=60

make -s -C tests/c OUT="$OUT" "$OUT/traced" || exit 1

# until_true COMMAND...: waits for it, at most LIMIT seconds.
until_true() {
	local end=$((SECONDS + LIMIT))
	until "$@" >/dev/null 2>&1; do
		((SECONDS < end)) || return 1
		sleep 0.05
	done
}

# start: a program that waits for "go", its id in $pid.
start() {
	rm -rf "$work/run"
	mkdir -m 711 "$work/run"
	WEFT_TRACED_DIR=$work/run timeout -k 1 120 "$OUT/traced" >"$work/traced.log" 2>&1 &
	until_true test -f "$work/run/pid" || return 1
	pid=$(cat "$work/run/pid")
}

conclude() {
	touch "$work/run/go" "$work/run/end"
	wait
}

# trace ARGUMENT...: weft trace of $pid in the background, once its probes are set.
trace() {
	rm -f "$work/err"
	"$WEFT" trace "$pid" "$@" >"$work/out" 2>"$work/err" &
	tracer=$!
	until_true grep -q '^tracing process' "$work/err"
}

# How many bytes of the library's code are not those of the file.
changed() {
	python3 - "$pid" <<-'END'
		import sys
		pid = sys.argv[1]
		n = 0
		for line in open(f"/proc/{pid}/maps"):
		    f = line.split()
		    if len(f) > 5 and f[1] == "r-xp" and f[5].endswith("libweft-core.so"):
		        at, end = (int(x, 16) for x in f[0].split("-"))
		        with open(f"/proc/{pid}/mem", "rb") as m, open(f[5], "rb") as lib:
		            m.seek(at)
		            lib.seek(int(f[2], 16))
		            n += sum(a != b for a, b in zip(m.read(end - at), lib.read(end - at)))
		print(n)
	END
}

untouched() { [ "$(changed)" = 0 ]; }

# The numbers that traced.c makes, in JSON.
numbers() {
	python3 - "$work/out" <<-'END'
		import json, sys
		t = json.load(open(sys.argv[1]))
		calls = {(c["name"], c["result"]): c["count"] for c in t["calls"]}
		operations = {o["name"]: o["count"] for o in t["operations"]}
		want = {("fi_tsend", "ok"): 1000, ("fi_tsendv", "ok"): 100, ("fi_tsend", "error"): 50,
		        ("fi_trecv", "ok"): 1121, ("fi_tinject", "ok"): 20, ("fi_cq_sread", "again"): 20,
		        ("fi_cq_readerr", "ok"): 1, ("weft_token_post", "ok"): 60, ("weft_token_notify", "ok"): 40,
		        ("weft_token_list", "ok"): 2}
		wrong = [f"{k}: {calls.get(k)}, not {n}" for k, n in want.items() if calls.get(k) != n]
		for name, n in {"tagged send": 1100, "tagged receive": 1100, "list": 60, "notification": 40}.items():
		    if operations.get(name) != n:
		        wrong.append(f"{name}: {operations.get(name)}, not {n}")
		for h in t["calls"] + t["operations"]:
		    if sum(b["count"] for b in h["histogram"]) != h["count"] or not h["p50_ns"] <= h["p99_ns"] <= h["longest_ns"]:
		        wrong.append(f"histogram {h}")
		notes = " / ".join(t["notes"])
		for part in ("1 operations failed", "10 posts had a context that was in use"):
		    if part not in notes:
		        wrong.append(f"no note '{part}': {notes}")
		print("\n".join(wrong))
		sys.exit(bool(wrong))
	END
}

# check NAME COMMAND...
check() {
	local name=$1
	rm -f "$work/err"
	shift
	if "$@" >"$work/log" 2>&1; then
		ok "$name"
	else
		[ ! -f "$work/err" ] || cat "$work/err" >>"$work/log"
		not_ok "$name" "$work/log"
	fi
}

counts() {
	start && trace --json || return 1
	[ "$(changed)" -gt 0 ] || return 1
	touch "$work/run/go"
	until_true test -f "$work/run/done" || return 1
	kill -INT "$tracer"
	wait "$tracer" || return 1
	numbers || return 1
	untouched # the probes are gone
}

folded() {
	start && trace --folded --call fi_tsend,fi_cq_sread || return 1
	touch "$work/run/go"
	until_true test -f "$work/run/done" || return 1
	kill -TERM "$tracer"
	wait "$tracer"
	cat "$work/out"
	grep -qE '^[^;]+;[^;]+-[0-9]+;fi_tsend;ok [0-9]+$' "$work/out" &&
		grep -qE '^[^;]+;[^;]+-[0-9]+;fi_cq_sread;again [0-9]+$' "$work/out" &&
		! grep -q fi_trecv "$work/out"
}

killed() {
	start && trace --call fi_tsend || return 1
	[ "$(changed)" -gt 0 ] || return 1
	kill -KILL "$tracer"
	until_true untouched || return 1
	conclude
	grep -q '^1 passed, 0 failed' "$work/traced.log"
}

ends() {
	start && trace --call fi_tsend,fi_trecv,fi_cq_read || return 1
	touch "$work/run/go" "$work/run/end"
	wait "$tracer" || return 1
	cat "$work/out"
	grep -q "process $pid has ended" "$work/err" &&
		grep -qE '^fi_tsend +ok +1000 ' "$work/out" && grep -qE '^tagged receive +1100 ' "$work/out"
}

# On a terminal the table is there while it runs, and the histograms at the end.
terminal() {
	local socket=weft-trace-$$

	start || return 1
	touch "$work/run/go"
	tmux -L "$socket" -f /dev/null new-session -d -x 90 -y 20 \
		"$WEFT trace $pid --call fi_tsend; echo status \$?; exec cat"
	screen() { tmux -L "$socket" capture-pane -p; }
	shows() { screen | grep -q "$1"; }
	until_true shows 'Ctrl-C ends and shows' && tmux -L "$socket" send-keys C-c &&
		until_true shows 'status 0' && screen && ! shows 'Ctrl-C ends'
	local status=$?
	screen
	tmux -L "$socket" kill-server
	return $status
}

# The command says what is missing, and which status says so.
refused() {
	start || return 1
	setpriv --bounding-set -all "$@" "$WEFT" trace "$pid" >"$work/out" 2>"$work/err"
	[ $? = 1 ] && grep -q CAP_BPF "$work/err" && grep -q CAP_PERFMON "$work/err"
}

not_weft() {
	"$WEFT" trace $$ -d 1s >"$work/out" 2>"$work/err"
	[ $? = 1 ] && grep -q 'has not loaded a weft library' "$work/err"
}

start || {
	not_ok "start of traced" "$work/traced.log"
	closing
	exit 1
}
"$WEFT" trace "$pid" -d 100ms --call fi_tsend >"$work/out" 2>"$work/err"
status=$?
conclude
if [ $status = 0 ]; then
	check "numbers of calls and operations" counts
	conclude
	check "folded" folded
	conclude
	check "killed: the probes go" killed
	conclude
	check "the process ends" ends
	conclude
	check "no rights" refused
	conclude
	have "on a terminal" tmux && check "on a terminal" terminal
	conclude
	check "a process without weft" not_weft
elif grep -qE 'cannot trace here|The kernel' "$work/err"; then
	skip "weft trace" "$(tr '\n' ' ' <"$work/err")"
else
	not_ok "weft trace" "$work/err"
fi
closing
