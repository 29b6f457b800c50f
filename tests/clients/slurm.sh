#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# docs/slurm.md without Slurm: a job on two hosts, network namespaces, on each of which it has a
# /dev/shm of its own and two ranks; its environment, and the epilog's line after ranks were
# killed, are the page's. Needs root and Open MPI; skipped without.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh
# shellcheck source-path=SCRIPTDIR source=net.sh
. tests/clients/net.sh

LIMIT=90
page=docs/slurm.md
mkdir "$work/shm.a" "$work/shm.b" # what job_container/tmpfs makes on each host

# The job's step on a host: "node HOST COMMAND...", with the job's /dev/shm.
cat >"$work/node" <<END
#!/bin/sh
host=\$1
shift
exec unshare --mount --propagation private sh -c 'mount --bind $work/shm.'"\$host"' /dev/shm && exec "\$@"' sh "\$@"
END
printf '#!/bin/sh\nshift # the host\nexec ip netns exec %s %s b sh -c "$*"\n' "$b" "$work/node" >"$work/rsh"
chmod +x "$work/node" "$work/rsh"

# step COMMAND...: four ranks on two hosts, with the page's environment.
step() {
	(
		eval "$(sed -n 's/^    \(export OMPI_MCA_.*\)/\1/p' "$root/$page")"
		export SLURM_JOB_ID=4711
		ip netns exec "$a" timeout $LIMIT "$work/node" a mpirun --allow-run-as-root --oversubscribe --host 10.77.0.1:2,10.77.0.2:2 -np 4 \
			--mca plm_rsh_agent "$work/rsh" --mca oob_tcp_if_include eth0 --mca mpi_yield_when_idle 1 --mca mtl_ofi_verbose 1 \
			-x FI_PROVIDER_PATH -x SLURM_JOB_ID "$@"
	) </dev/null
}

job() {
	local program took

	for program in p2p types; do
		step "$work/$program" >"$work/log" 2>&1
		took=$(grep -cF 'mtl:ofi:prov: weft' "$work/log")
		if grep -q "^$program: all passed on 4 ranks\$" "$work/log" && ((took == 4)) && ! ls "$work"/shm.?/weft* >/dev/null 2>&1; then
			ok "$program on two hosts, /dev/shm of the job's own: weft was taken, nothing is left"
		else
			not_ok "$program on two hosts, /dev/shm of the job's own" "$work/log"
		fi
	done
}

segments() { find "$work/shm.a" "$work/shm.b" -name 'weft*' | wc -l; }

# Ranks are killed; what they leave is there, is theirs, and goes by the epilog's line on each host.
epilog() {
	local line pids mpi i=0 left

	line=$(sed -n 's/^    \(weft doctor .*\)/\1/p' $page | head -n 1)
	step sh -c 'echo $$ >>'"$work/pids"' && exec '"$work/p2p" >"$work/log" 2>&1 &
	mpi=$!
	until (($(segments) >= 4)) || ((i++ > 400)) || ! kill -0 $mpi 2>/dev/null; do sleep 0.02; done
	mapfile -t pids <"$work/pids"
	kill -KILL "${pids[@]}" 2>/dev/null
	wait $mpi
	left=$(segments)
	for host in a b; do
		"$work/node" $host sh -c "PATH=$root/build/bin:\$PATH; $line" >>"$work/log" 2>&1 || echo "status $?" >>"$work/log"
	done
	if ((left > 0)) && (($(segments) == 0)); then
		ok "epilog: $left files of killed ranks are removed"
	else
		echo "$left files, then $(segments)" >>"$work/log"
		not_ok "epilog" "$work/log"
	fi
}

# The exporter's labels, while the job runs.
labels() {
	local i=0 mpi

	step "$work/mt" >"$work/log" 2>&1 &
	mpi=$!
	until "$work/node" a "$root/build/bin/weft" export --once 2>/dev/null | grep '^weft_process_info{.*job_id="4711".*rank="[0-3]"' >"$work/info" ||
		((i++ > 400)) || ! kill -0 $mpi 2>/dev/null; do sleep 0.02; done
	wait $mpi
	if [ -s "$work/info" ]; then ok "weft export names the job and the rank"; else not_ok "weft export names the job and the rank" "$work/log"; fi
}

if [ "$(id -u)" != 0 ]; then
	skip "a job on two hosts" "namespaces need root"
elif have "a job on two hosts" ip && have "a job on two hosts" mpirun && have "a job on two hosts" mpicc; then
	trap down EXIT
	if ! up 2>"$work/log" || ! "$work/node" a true 2>>"$work/log"; then
		skip "a job on two hosts" "no namespaces here: $(head -n 1 "$work/log")"
	elif ! make -s -C tests/mpi OUT="$work" >"$work/log" 2>&1; then
		not_ok "tests/mpi is built" "$work/log"
	else
		job
		labels
		epilog
	fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
