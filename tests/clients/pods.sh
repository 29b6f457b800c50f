#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# docs/containers.md in namespaces: a container is a mount, pid, IPC and host name namespace with
# 64 MiB of /dev/shm of its own, and a network namespace, into which the provider is mounted as the
# page says. Processes of one container, of two pods on two hosts, of two containers of a host's
# network, and beside many interfaces. Needs root; skipped without.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source-path=SCRIPTDIR source=lib.sh
. tests/clients/lib.sh
# shellcheck source-path=SCRIPTDIR source=net.sh
. tests/clients/net.sh

LIMIT=60
page=docs/containers.md

# env_of NAME: a variable's value, and mount_of NAME: a volume's path, as the page's manifests have them.
env_of() { grep -A 1 "name: $1\$" $page | sed -n 's/^ *value: //p' | head -n 1; }
mount_of() { grep -A 1 "name: $1\$" $page | sed -n 's/^ *mountPath: //p' | head -n 1; }

folder=$(env_of FI_PROVIDER_PATH)
shm=$(mount_of shm)

# What a container's runtime does before it starts the program.
cat >"$work/enter" <<'END'
#!/bin/sh
# enter FOLDER SHM LIBRARIES COMMAND...
set -e
folder=$1 shm=$2 libraries=$3
shift 3
mount -t tmpfs -o size=64m shm "$shm"
mount -t tmpfs volume "$(dirname "$folder")"
mkdir "$folder"
cp "$libraries/libweft-fi.so" "$libraries/libweft-core.so" "$folder/"
exec "$@"
END
chmod +x "$work/enter"

# container NAMESPACE COMMAND...: in a container of the host NAMESPACE.
container() {
	local host=$1
	shift
	ip netns exec "$host" unshare --mount --propagation private --pid --fork --ipc --uts --mount-proc \
		env "FI_PROVIDER_PATH=$folder" "$work/enter" "$folder" "$shm" "$PWD/build/lib" "$@"
}

# meet NAME ADDRESS HOST-COMMAND -- HOST-COMMAND -- OPTION...: fi_pingpong between two places.
meet() {
	local name=$1 address=$2 server=() client=() pid status

	shift 2
	while [ "$1" != -- ]; do server+=("$1") && shift; done
	shift
	while [ "$1" != -- ]; do client+=("$1") && shift; done
	shift
	"${server[@]}" timeout $LIMIT fi_pingpong -p "$WEFT_TEST_PROV" "$@" >"$work/server" 2>&1 &
	pid=$!
	listening 47592 $pid ip netns exec "$a"
	"${client[@]}" timeout $LIMIT fi_pingpong -p "$WEFT_TEST_PROV" "$@" "$address" >"$work/log" 2>&1
	status=$?
	wait $pid || status=1
	if ((status == 0)) && grep -q '^[0-9]' "$work/log"; then
		ok "$name"
	else
		sed 's/^/server: /' "$work/server" >>"$work/log"
		not_ok "$name" "$work/log"
	fi
}

# Both processes in one container: by shared memory, which is 64 MiB.
one() {
	# shellcheck disable=SC2016 # for the shell inside
	if container "$a" sh -c 'fi_pingpong -p weft -e rdm -m tagged -S all -I 20 -c >/tmp/weft-server.$$ 2>&1 &
		sleep 1; fi_pingpong -p weft -e rdm -m tagged -S all -I 20 -c 127.0.0.1; s=$?; wait $! || s=1
		cat /tmp/weft-server.$$; rm /tmp/weft-server.$$; df /dev/shm; exit $s' >"$work/log" 2>&1; then
		ok "one container, 64 MiB of /dev/shm"
	else
		not_ok "one container, 64 MiB of /dev/shm" "$work/log"
	fi
}

# A host with bridges and virtual interfaces, of which the first are not where its peers are.
interfaces() {
	local i

	for i in 0 1 2 3 4 5 6 7; do
		ip -n "$a" link add "br-$i" type bridge 2>"$work/log" || ip -n "$a" link add "br-$i" type dummy 2>"$work/log" || break
		ip -n "$a" addr add "172.2$i.0.1/16" dev "br-$i" || break
		ip -n "$a" link set "br-$i" up || break
	done
	if ((i < 7)); then
		skip "beside many interfaces" "$(head -n 1 "$work/log")"
		return
	fi
	meet "one host beside many interfaces" 127.0.0.1 ip netns exec "$a" -- ip netns exec "$a" -- -e rdm -m tagged -I 50 -S 65536 -c
	meet "two hosts, one with many interfaces" 10.77.0.1 container "$a" -- container "$b" -- -e rdm -m tagged -d eth0 -I 50 -S 65536 -c
}

if [ "$(id -u)" != 0 ]; then
	skip "containers" "namespaces need root"
elif have "containers" ip && have "containers" fi_pingpong; then
	trap down EXIT
	if [ -z "$folder" ] || [ -z "$shm" ]; then
		not_ok "$page names FI_PROVIDER_PATH and the volume shm"
	elif ! up 2>"$work/log" || ! container "$a" true 2>>"$work/log"; then
		skip "containers" "no namespaces here: $(head -n 1 "$work/log")"
	else
		one
		meet "two pods on two hosts" 10.77.0.1 container "$a" -- container "$b" -- -e rdm -m tagged -d eth0 -I 50 -S 65536 -c
		meet "two pods on two hosts, connected" 10.77.0.1 container "$a" -- container "$b" -- -e msg -d eth0 -I 50 -S 4096 -c
		meet "two containers of one network" 10.77.0.1 container "$a" -- container "$a" -- -e rdm -m tagged -d eth0 -I 50 -S 65536 -c
		interfaces
	fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
