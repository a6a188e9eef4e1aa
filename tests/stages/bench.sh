# shellcheck shell=bash

bench_smoke() {
    "$python" bench/run.py --build "$plain" --scale 0.01 --repeat 1 --python "$python" \
        --json "$build/bench.json" &&
        "$python" bench/random_access.py --scale 0.01 --repeat 1 --build "$plain" \
            --json "$build/random.json" &&
        "$python" bench/batches.py --scale 0.01 --repeat 1 --build "$plain" \
            --python "$python" --reader c,python --json "$build/batches.json" &&
        "$python" bench/feed.py --rounds 1 --megabytes 100 &&
        "$python" bench/packing.py --documents 2000 --repeat 1 &&
        "$python" bench/order.py --build "$plain" --scale 0.2 --repeat 1 &&
        "$python" bench/remote.py --build "$plain" --scale 0.01 --repeat 1 --corpus small \
            --python "$python" --json "$build/remote.json" &&
        "$python" bench/write.py --command "$plain/src/cli/shardfeed" --scale 0.01 --repeat 1 &&
        "$python" bench/draw.py "$build/bench.json" "$build/batches.json" "$build/speed.svg"
}
bench_checks() { check "benchmark, small" bench_smoke; }
