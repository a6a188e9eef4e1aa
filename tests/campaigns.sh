#!/usr/bin/env bash
# Every allocation that fails, of readers, batches and writers, every bit of files with a branch filter and every cut of
# files that end in zeros; hundreds of kills of readers of pipes and of processes that share a cache (SHARDFEED_KILLS=10000:
# so many of those), and of cancels of openings; each kind of fault of servers and networks 200 times, 200 kills of Python's
# readers of a cache, and 200 of servers and consumers of feeds. Half an hour that tests/run.sh leaves to this script; of all
# of them it runs a sample.
#   tests/campaigns.sh [FOLDER]     the build folder, build-campaigns unless it is given
# What is in Python uses the environment of tests/run.sh, after it; PYTHON names another one that has shardfeed.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build-campaigns}
[ -f "$folder/build.ninja" ] || meson setup "$folder" -Db_pch=true
ninja -C "$folder"
meson test -C "$folder" --no-rebuild --verbose --num-processes 1 --suite campaign
python=${PYTHON:-build-tests/venv/bin/python}
[ -x "$python" ] || {
    echo "left out: faults of servers, and kills of Python's readers: no $python" >&2
    exit 0
}
tests/faults/run.sh 200x
tests/faults/kill_cache.sh 200
tests/faults/kill_feeds.sh 200
