#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# deb.sh OUT: builds the Debian package from what make build has built. The same
# sources give the same bytes: the times in it are those of the last commit, or
# SOURCE_DATE_EPOCH.
set -eu
cd "$(dirname "$0")/.."

out=$1
make=${MAKE:-make}
version=$(scripts/version.sh deb)
arch=$(dpkg --print-architecture)
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/weft
umask 022

"$make" -s install-files DESTDIR="$root" PREFIX=/usr LIBDIR="/usr/lib/$multiarch" ZSHDIR=/usr/share/zsh/vendor-completions
doc=$root/usr/share/doc/weft
mkdir -p "$doc/examples" "$root/DEBIAN"
cp README.md docs/*.md "$doc/"
cp examples/*.c "$doc/examples/"
gzip -9n <CHANGELOG.md >"$doc/changelog.gz"
{
	cat packaging/deb/copyright.in
	sed 's/^$/./; s/^/ /' LICENSE
} >"$doc/copyright"
find "$root/usr/share/man" -type f -exec gzip -9n {} +
find "$root/usr/lib" -name '*.so*' -type f -exec strip --strip-unneeded {} +
strip "$root/usr/bin/weft" "$root/usr/libexec/weft/weft_bench"
find "$root" -type f -exec chmod go-w {} +

# The newest glibc symbol that the binaries ask for.
glibc=$(find "$root/usr" -type f \( -name '*.so*' -o -path '*/bin/*' -o -path '*/libexec/*' \) -exec objdump -T {} + 2>/dev/null |
	grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
size=$(du -k -s --apparent-size "$root/usr" | cut -f1)
sed -e "s/@VERSION@/$version/" -e "s/@ARCH@/$arch/" -e "s/@SIZE@/$size/" -e "s/@GLIBC@/${glibc#GLIBC_}/" \
	packaging/deb/control.in >"$root/DEBIAN/control"
cp packaging/deb/triggers "$root/DEBIAN/triggers"
(cd "$root" && find usr -type f | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
find "$root" -print0 | xargs -0 touch -h -d "@$SOURCE_DATE_EPOCH"

mkdir -p "$out"
dpkg-deb --root-owner-group -Zxz --build "$root" "$out/weft_${version}_$arch.deb" >/dev/null
echo "$out/weft_${version}_$arch.deb"
