#!/usr/bin/env bash
# Every allocation that fails, of readers, batches and writers, every bit of files with a branch filter and every cut of
# files that end in zeros; hundreds of kills of readers of pipes and of processes that share a cache (SHARDFEED_KILLS=10000:
# so many of those), and of cancels of openings. Fifteen minutes that tests/run.sh leaves to this script; of all of them it
# runs a sample.
#   tests/campaigns.sh [FOLDER]     the build folder, build-campaigns unless it is given
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build-campaigns}
[ -f "$folder/build.ninja" ] || meson setup "$folder" -Db_pch=true
ninja -C "$folder"
exec meson test -C "$folder" --no-rebuild --verbose --num-processes 1 --suite campaign
