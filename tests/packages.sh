#!/usr/bin/env bash
# Builds the Debian packages, asks lintian, unpacks them into a folder as if it were the root, and uses
# what is there: packages.sh FOLDER
# The build is quick, not good: dpkg-buildpackage -us -uc -b makes real ones. It is quicker with -O1 than
# with -O0, which leaves lintian many times as much to look at.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
rm -rf "$folder" && mkdir -p "$folder/shardfeed"
cd "$folder"
# As on a Debian machine, where python3 is that of Debian.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
unset CC CXX PKG_CONFIG_PATH

git -C "$repository" ls-files -z -- . ':!tests' ':!bindings/rust' ':!bindings/julia' |
    (cd "$repository" && xargs -0 cp --parents -t "$folder/shardfeed")
# The sources as well, for what lintian has to say of them.
tar -cJf shardfeed_"$(sed -n 's/.*(\(.*\)-.*).*/\1/p;q' shardfeed/debian/changelog)".orig.tar.xz --exclude=debian shardfeed
(cd shardfeed &&
    DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)" DEB_CFLAGS_SET=-O1 DEB_CXXFLAGS_SET=-O1 \
        dpkg-buildpackage -us -uc)
lintian --fail-on error --tag-display-limit 0 ./*.changes

root=$folder/root
for package in libshardfeed0 libshardfeed-dev python3-shardfeed shardfeed-tools; do
    dpkg-deb -x "$package"_*.deb "$root"
done
libraries=$(dirname "$root"/usr/lib/*/libshardfeed.so.0)
export LD_LIBRARY_PATH=$libraries PKG_CONFIG_PATH=$libraries/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
export PYTHONPATH=$root/usr/lib/python3/dist-packages PATH=$root/usr/bin:$PATH
# As autopkgtest runs them, in the sources and on what is installed.
for test in $(sed -n 's/^Tests: //p' shardfeed/debian/tests/control); do
    mkdir "tested-$test"
    (cd shardfeed && AUTOPKGTEST_TMP=$folder/tested-$test "debian/tests/$test")
done
ldd tested-c/stream | grep -F "$libraries/libshardfeed.so.0"
cmp shardfeed/examples/c/01_stream.c "$root"/usr/share/doc/libshardfeed-dev/examples/01_stream.c
man -M "$root/usr/share/man" -w shf_stream_next shardfeed
man -M "$root/usr/share/man" -w 1 shardfeed
bash -n "$root/usr/share/bash-completion/completions/shardfeed"
rm -rf shardfeed
