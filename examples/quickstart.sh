#!/usr/bin/env bash
# From a fresh Debian machine to a trained classifier: installs what is missing, builds the library
# and the Python package, writes shards of real digits (or of the files of the folder given as
# argument), streams them from C and from Python, and trains on decoded batches of the digits. Run it
# again as often as you like: what is built stays in examples/build and .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/examples/build
prefix=$work/installed
say() { printf '\n%3d s  %s\n' "$SECONDS" "$*"; }

say "installing the Debian packages that are missing"
scripts/install_dependencies.sh build

say "making an environment for Python in .venv"
[ -x .venv/bin/python ] || python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check cffi numpy pillow

say "building the C library and the Python package"
# One build for both: "pip install ." would compile the library again.
if [ ! -f "$work/meson/build.ninja" ]; then
    mkdir -p "$work"
    printf "[binaries]\npython = '%s'\n" "$PWD/.venv/bin/python" >"$work/python.ini"
    meson setup "$work/meson" --native-file "$work/python.ini" --prefix "$prefix" --libdir lib -Db_pch=true \
        -Dtests=disabled -Dpython=enabled -Dpython.install_env=venv >"$work/setup.log" || {
        cat "$work/setup.log"
        exit 1
    }
fi
ninja -C "$work/meson"
meson install -C "$work/meson" --quiet --no-rebuild
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
read -ra flags <<<"$(pkg-config --cflags --libs shardfeed zlib) -Wl,-rpath,$prefix/lib"
for example in 01_stream digest; do
    cc -O2 "examples/c/$example.c" "${flags[@]}" -o "$work/$example"
done

files=${1:-examples/data/digits}
shards=examples/data/shards
say "writing shards of $files"
[ $# -gt 0 ] || .venv/bin/python examples/make_digits.py "$files"
rm -rf "$shards" && mkdir -p "$shards"
"$prefix/bin/shardfeed" create "$files" --max-samples 500 -o "$shards/shard-%06d.tar" --json
urls="$shards/shard-*.tar"
"$prefix/bin/shardfeed" show "$urls" -n 1
"$prefix/bin/shardfeed" verify "$urls"

say "streaming $urls from C and from Python"
"$work/digest" 50 "$urls"
.venv/bin/python examples/python/digest.py 50 "$urls"

if [ $# -eq 0 ]; then
    say "training on batches of $urls"
    .venv/bin/python examples/python/train_digits.py "$urls"
fi
say "done"
