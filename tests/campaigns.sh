#!/usr/bin/env bash
# Hundreds of kills of a reader of pipes and of cancels of openings: five minutes that tests/run.sh leaves to this script.
#   tests/campaigns.sh [FOLDER]     the build folder, build-campaigns unless it is given
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build-campaigns}
[ -f "$folder/build.ninja" ] || meson setup "$folder" -Db_pch=true
ninja -C "$folder"
exec meson test -C "$folder" --no-rebuild --verbose --num-processes 1 --suite campaign
