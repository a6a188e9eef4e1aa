# shellcheck shell=bash

environment=$build/venv
python=$environment/bin/python
# The oldest PyTorch that shardfeed.torch is for: the one of Debian 12, in Debian's own Python.
old=$build/venv-old

# pytests NAME PYTHON PROCESSES FOLDER ARGUMENTS...: adds up what pytest counts in so many processes, and names the tests
# that passed only alone.
pytests() {
    local name=$1 interpreter=$2 start=$SECONDS ok bad status
    read -r ok bad < <("$interpreter" tests/stages/pytests.py "$output" "${@:3}")
    wait $!
    status=$?
    count "$name" "$start" "$status" "$ok" "$bad" " PASSED "
    [ ! -e "$output.unsteady" ] || sed 's/^/    /' "$output.unsteady"
}

make_environment() {
    [ -x "$python" ] || python3 -m venv "$environment" || return 1
    local files=(-r tests/python/requirements.txt)
    wants docs && files+=(-r docs/requirements.txt)
    # The peers of the benchmark, and PyTorch.
    wants python bench && files+=(-r bench/requirements.txt -r tests/python/requirements-torch.txt)
    wants python && files+=(-r tests/python/requirements-cluster.txt)
    # For 6 GB of packages pip takes 3 minutes of one core, uv half a minute. Where uv does not find
    # them, because it reads no settings of pip, pip does.
    local pip=("$environment/bin/pip" install --quiet --disable-pip-version-check)
    "${pip[@]}" uv || return 1
    UV_CACHE_DIR=$build/uv "$environment/bin/uv" pip install --quiet --python "$python" "${files[@]}" ||
        "${pip[@]}" "${files[@]}" || return 1
    ! wants python || "${pip[@]}" --no-deps -r tests/python/requirements-without-dependencies.txt || return 1
    # Beside the webdataset that all other tests compare with.
    ! wants python || [ -d "$environment/webdataset-for-open-clip" ] ||
        "${pip[@]}" --no-deps --target "$environment/webdataset-for-open-clip" \
            -r tests/python/requirements-open-clip.txt || return 1
    rm -rf "$build/uv"
}
environment_checks() { check "Python environment" make_environment; }

# Without them the tests of stores against real servers are skipped.
store_server_checks() {
    scripts/install_test_servers.sh >"$output" 2>&1 ||
        echo "left out: tests of stores against real servers: $(tail -n 1 "$output")"
}

install_wheel() { # PYTHON
    "$1" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall \
        "$build"/wheel/shardfeed-*.whl
}
# As deep in the build folder as the library, with its flags: a compiler cache has its objects then.
build_wheel() {
    rm -rf "$build/wheel" "$build/wheel-build"
    "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps \
        --config-settings "build-dir=$build/wheel-build" \
        --config-settings "setup-args=-Dwerror=true" \
        --wheel-dir "$build/wheel" .
}
wheel_checks() {
    need "pip wheel ." build_wheel
    need "pip install" install_wheel "$python"
}

make_old_environment() {
    scripts/install_dependencies.sh test-old || return 1
    [ -x "$old/bin/python" ] || /usr/bin/python3 -m venv --system-site-packages "$old"
}
old_environment_checks() { check "environment with Debian's PyTorch" make_old_environment; }
use_old_environment() {
    # The wheel is made once, unless this is another version of Python.
    install_wheel "$old/bin/python" ||
        "$old/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall . ||
        return 1
    "$old/bin/python" -c 'import numpy, PIL, torch' # without them tests would be skipped
}

python_checks() {
    check "the command shardfeed" "$environment/bin/shardfeed" plan '{000..007}.tar' world_size=2 lanes=4
    pytests "Python tests" "$python" 3 tests/python
    check "the same samples as Python's tarfile" "$python" tests/differential/tarfile_oracle.py
    check "the same order as a second writing of it" "$python" tests/differential/order_oracle.py
    local go=" (not with Go's archive/zip: go is not installed)"
    command -v go >/dev/null && go=" and Go's archive/zip"
    check "the same members as Python's zipfile$go" "$python" tests/differential/zipfile_oracle.py
    check "the wheel in Debian's Python" use_old_environment
    # What has to do with other versions of PyTorch, NumPy, Pillow and msgpack.
    pytests "Python tests with Debian's PyTorch" "$old/bin/python" 2 tests/python \
        -k "torch or batch or hooks or wids or wds_pipeline or pages or conformance"
}
