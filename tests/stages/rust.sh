# shellcheck shell=bash

rust_tools() { # of rustup, or of Debian
    command -v cargo >/dev/null || scripts/install_dependencies.sh rust
}
in_rust() {
    (cd bindings/rust && CARGO_TARGET_DIR=$build/rust LD_LIBRARY_PATH=$build/installed/lib "$@")
}
# cargo_tests NAME ARGUMENTS...: adds up what `cargo ARGUMENTS` counts.
cargo_tests() {
    local name=$1 start=$SECONDS
    shift
    in_rust cargo "$@" >"$output" 2>&1
    local status=$? ok bad
    read -r ok bad < <(awk '/^test result:/ {ok += $4; bad += $6} END {print ok + 0, bad + 0}' "$output")
    count "$name" "$start" "$status" "$ok" "$bad" '^test .* ok$'
}
declarations() { bindings/rust/shardfeed-sys/generate.sh | diff bindings/rust/shardfeed-sys/src/bindings.rs -; }

rust_checks() {
    check "Rust" rust_tools
    check "declarations in Rust are those of the header (bindgen)" declarations
    check "cargo fmt" in_rust cargo fmt --check
    check "clippy" in_rust cargo clippy --quiet --locked --all-targets --features ndarray,serde -- -D warnings
    check "rustdoc without the library" in_rust env DOCS_RS=1 PKG_CONFIG_PATH= RUSTDOCFLAGS="-D warnings" \
        cargo doc --quiet --locked --no-deps --features ndarray,serde
    cargo_tests "Rust tests" test --locked --no-fail-fast --features ndarray,serde
    check "conformance in Rust over HTTP" in_rust python3 ../../tests/conformance/over_http.py cargo test --quiet \
        --locked --features ndarray,serde --test conformance
    check "conformance in Rust through feeds" in_rust env SHARDFEED_COMMAND="$plain/src/cli/shardfeed" \
        python3 ../../tests/conformance/over_feed.py cargo test --quiet --locked --features ndarray,serde \
        --test conformance
    local oldest
    oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' bindings/rust/Cargo.toml)
    if rustup toolchain install "$oldest" --profile minimal --component rustfmt >"$output" 2>&1; then
        cargo_tests "Rust tests with the oldest Rust, $oldest" "+$oldest" test --locked --no-fail-fast \
            --tests --target-dir "$build/rust-$oldest"
    else
        echo "left out: Rust tests with the oldest Rust, $oldest: rustup cannot install it"
    fi
    if in_rust cargo +nightly miri --version >/dev/null 2>&1; then
        cargo_tests "Rust tests in Miri" +nightly miri test --locked -p shardfeed --lib \
            --target-dir "$build/rust-miri"
    else
        echo "left out: Rust tests in Miri: rustup has no nightly toolchain with it"
    fi
}
