#!/usr/bin/env bash
# Installs what the given groups need from Debian's packages, and nothing that is there already.
#   scripts/install_dependencies.sh build         to build the library and the Python package
#   scripts/install_dependencies.sh build test    also what tests/run.sh needs
#   scripts/install_dependencies.sh rust          Debian's newer Rust (the package rustc is too old), for
#                                                 machines without rustup
#   scripts/install_dependencies.sh test-old      Debian's PyTorch, which is older than those of PyPI that
#                                                 are tested (about 700 MB)
#   scripts/install_dependencies.sh julia         Debian 11's Julia, the last one that Debian has
# Without root and without sudo it prints the command to ask an administrator for, and ends with status 1.
# The names are those of Debian 12. "a|b" is the first of them that the release has: Debian 13 has no libclang-rt-14-dev,
# and Ubuntu no cargo-web.
set -euo pipefail

declare -A packages=(
    [build]="g++ dpkg-dev meson ninja-build pkg-config zlib1g-dev libbz2-dev liblzma-dev libzstd-dev liblz4-dev
             libxxhash-dev libisal-dev libdeflate-dev libmsgpack-dev
             nlohmann-json3-dev libjpeg-dev libpng-dev libwebp-dev libgif-dev libtiff-dev libjxl-dev libavif-dev
             libsndfile1-dev libsoxr-dev libavformat-dev libswscale-dev libcurl4-openssl-dev libssl-dev libpugixml-dev
             libarchive-dev libzmq3-dev libmicrohttpd-dev libcli11-dev python3-dev python3-venv"
    [test]="ccache libgtest-dev libturbojpeg0-dev libzip-dev clang clang-format libclang-rt-dev|libclang-rt-14-dev
             mandoc groff-base man-db cmake abigail-tools
             debhelper dh-python lintian python3-cffi bindgen nginx-light openssl
             libarchive-tools 7zip|p7zip-full cpio genisoimage|xorriso lzip ncompress sshfs iproute2"
    [rust]="cargo-web|cargo rustc-web|rustc rust-web-clippy|rust-clippy rustfmt-web|rustfmt"
    [test-old]="python3-torch python3-numpy python3-pil python3-pytest python3-cffi python3-msgpack python3-xxhash
                python3-venv"
    [julia]="julia libxxhash0 python3"
)

# Adds Debian 11 to where apt looks, from the same mirror and under Debian's own key. The low priority lets nothing
# come from there but what no other source has.
add_debian_11() {
    available julia && return
    local mirror
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' |
        awk '$2 == "Debian" {print $1; exit}')
    printf 'Package: *\nPin: release n=bullseye\nPin-Priority: 100\n' |
        "${root[@]}" tee /etc/apt/preferences.d/shardfeed-bullseye >/dev/null
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s bullseye main\n' "$mirror" |
        "${root[@]}" tee /etc/apt/sources.list.d/shardfeed-bullseye.list >/dev/null
}

available() { apt-cache policy "$1" 2>/dev/null | grep 'Candidate: [0-9]' >/dev/null; }
installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

# any_installed A|B: whether one of them is.
any_installed() {
    local name
    for name in ${1//|/ }; do installed "$name" && return; done
    return 1
}

# choose A|B: the first of them that apt knows; the last one when it knows none.
choose() {
    local name
    for name in ${1//|/ }; do available "$name" && break; done
    echo "$name"
}

if ! command -v apt-get >/dev/null; then
    echo "apt-get is not there: this script is for Debian and Ubuntu; help: README.md has the line for Fedora" >&2
    exit 1
fi

missing=()
for group in "$@"; do
    if [ -z "${packages[$group]:-}" ]; then
        echo "no group $group; the groups: ${!packages[*]}" >&2
        exit 2
    fi
    for package in ${packages[$group]}; do
        # ISA-L exists for some architectures only; gzip goes through zlib without it.
        if [ "$package" = libisal-dev ] && [ "$(dpkg --print-architecture)" != amd64 ] &&
            [ "$(dpkg --print-architecture)" != arm64 ]; then
            continue
        fi
        any_installed "$package" || missing+=("$package")
    done
done
[ ${#missing[@]} -eq 0 ] && exit 0

root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        {
            echo "packages are missing, and there is neither root nor sudo; help: ask an administrator to run"
            echo "    apt-get install$(for package in "${missing[@]}"; do printf ' %s' "$(choose "$package")"; done)"
            case " ${missing[*]} " in *" julia "*)
                available julia || echo "(julia is in Debian 11; others: https://julialang.org/downloads)" ;;
            esac
        } >&2
        exit 1
    fi
    root=(sudo)
fi

# apt fails when another one holds its locks: two runs of this script take turns, and other programs are waited for.
exec {turn}<"$0"
flock "$turn"
case " ${missing[*]} " in *" julia "*) add_debian_11 ;; esac
"${root[@]}" apt-get update -qq
names=()
for package in "${missing[@]}"; do names+=("$(choose "$package")"); done
echo "installing: ${names[*]}"
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o DPkg::Lock::Timeout=600 "${names[@]}" >/dev/null
