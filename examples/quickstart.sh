#!/usr/bin/env bash
# From a fresh Debian machine to a trained classifier: installs what is missing, builds the library
# and the Python package, writes shards of real digits (or of the files of the folder given as
# argument), streams them from C and from Python, and trains on decoded batches of the digits. Run it
# again as often as you like.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_dependencies.sh build

echo "building the C library"
work=$PWD/examples/build
prefix=$work/installed
[ -f "$work/meson/build.ninja" ] ||
    meson setup "$work/meson" --prefix "$prefix" --libdir lib -Dtests=disabled >/dev/null
meson install -C "$work/meson" --quiet >/dev/null
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
read -ra flags <<<"$(pkg-config --cflags --libs shardfeed zlib) -Wl,-rpath,$prefix/lib"
for example in 01_stream digest; do
    cc -O2 "examples/c/$example.c" "${flags[@]}" -o "$work/$example"
done

echo "building the Python package"
[ -x .venv/bin/python ] || python3 -m venv .venv
# The package is built again only when a file of it changed.
stamp=.venv/shardfeed.sum
sum=$(find include src bindings/python meson.build meson_options.txt pyproject.toml -type f ! -name '*.pyc' -print0 |
    sort -z | xargs -0 cat | cksum)
if [ "$sum" != "$(cat "$stamp" 2>/dev/null || true)" ]; then
    .venv/bin/pip install --quiet --disable-pip-version-check .
    echo "$sum" >"$stamp"
fi

data=$PWD/examples/data
if [ $# -gt 0 ]; then
    urls=$(.venv/bin/python examples/make_shards.py "$data/folder" "$1")
else
    .venv/bin/python -c 'import sklearn, PIL' 2>/dev/null ||
        .venv/bin/pip install --quiet --disable-pip-version-check scikit-learn pillow
    urls=$(.venv/bin/python examples/make_shards.py "$data/digits")
fi

echo "streaming $urls"
"$work/digest" 50 "$urls"
.venv/bin/python examples/python/digest.py 50 "$urls"

if [ $# -eq 0 ]; then
    echo "training on batches of $urls"
    .venv/bin/python examples/python/train_digits.py "$urls"
fi
