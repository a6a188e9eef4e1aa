#!/usr/bin/env bash
# Installs what the given groups need from Debian's packages, and nothing that is there already.
#   scripts/install_dependencies.sh build         to build the library and the Python package
#   scripts/install_dependencies.sh build test    also what tests/run.sh needs
#   scripts/install_dependencies.sh rust          Debian's newer Rust (the package rustc is too old), for
#                                                 machines without rustup
#   scripts/install_dependencies.sh test-old      Debian's PyTorch, which is older than those of PyPI that
#                                                 are tested (about 700 MB)
#   scripts/install_dependencies.sh julia         Debian 11's Julia, the last one that Debian has
set -euo pipefail

declare -A packages=(
    [build]="g++ meson ninja-build pkg-config zlib1g-dev libbz2-dev liblzma-dev libzstd-dev liblz4-dev
             libxxhash-dev libisal-dev libdeflate-dev libmsgpack-dev
             nlohmann-json3-dev libturbojpeg0-dev libpng-dev libwebp-dev
             python3-dev python3-venv"
    [test]="libgtest-dev libarchive-dev libzip-dev clang clang-format libclang-rt-14-dev
             mandoc groff-base man-db cmake abigail-tools
             dpkg-dev debhelper dh-python lintian python3-cffi bindgen"
    [rust]="cargo-web rustc-web rust-web-clippy rustfmt-web"
    [test-old]="python3-torch python3-numpy python3-pil python3-pytest python3-cffi python3-msgpack python3-xxhash
                python3-venv"
    [julia]="julia libxxhash0 python3"
)

root=()
[ "$(id -u)" -eq 0 ] || root=(sudo)

# Adds Debian 11 to where apt looks, from the same mirror and under Debian's own key. The low priority lets nothing
# come from there but what no other source has.
add_debian_11() {
    apt-cache policy julia | grep 'Candidate: [0-9]' >/dev/null && return
    local mirror
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' |
        awk '$2 == "Debian" {print $1; exit}')
    printf 'Package: *\nPin: release n=bullseye\nPin-Priority: 100\n' |
        "${root[@]}" tee /etc/apt/preferences.d/shardfeed-bullseye >/dev/null
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s bullseye main\n' "$mirror" |
        "${root[@]}" tee /etc/apt/sources.list.d/shardfeed-bullseye.list >/dev/null
}

missing=()
for group in "$@"; do
    for package in ${packages[$group]}; do
        # ISA-L exists for some architectures only; gzip goes through zlib without it.
        if [ "$package" = libisal-dev ] && [ "$(dpkg --print-architecture)" != amd64 ] &&
            [ "$(dpkg --print-architecture)" != arm64 ]; then
            continue
        fi
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing+=("$package")
    done
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "installing: ${missing[*]}"
case " ${missing[*]} " in *" julia "*) add_debian_11 ;; esac
"${root[@]}" apt-get update -qq
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
