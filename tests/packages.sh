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
(cd shardfeed &&
    DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)" DEB_CFLAGS_SET=-O1 DEB_CXXFLAGS_SET=-O1 \
        dpkg-buildpackage -us -uc -b)
rm -rf shardfeed
lintian --fail-on error --tag-display-limit 0 ./*.changes

root=$folder/root
for package in libshardfeed0 libshardfeed-dev python3-shardfeed shardfeed-tools; do
    dpkg-deb -x "$package"_*.deb "$root"
done
libraries=$(dirname "$root"/usr/lib/*/libshardfeed.so.0)
export LD_LIBRARY_PATH=$libraries
printf x >a.jpg
tar -cf a.tar a.jpg
read -ra flags <<<"$(PKG_CONFIG_PATH=$libraries/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root \
    pkg-config --cflags --libs shardfeed)"
cc "$root"/usr/share/doc/libshardfeed-dev/examples/01_stream.c "${flags[@]}" -o stream
./stream a.tar | grep -x 'a: 1 bytes of jpg'
ldd stream | grep -F "$libraries/libshardfeed.so.0"
man -M "$root/usr/share/man" -w shf_stream_next shardfeed
man -M "$root/usr/share/man" -w 1 shardfeed

export PYTHONPATH=$root/usr/lib/python3/dist-packages
python3 -c 'import shardfeed, sys; print(*(sample.key for sample in shardfeed.Stream(sys.argv[1])))' a.tar | grep -x a
"$root/usr/bin/shardfeed" plan a.tar
"$root/usr/bin/shardfeed" --help | grep '^usage: shardfeed '
