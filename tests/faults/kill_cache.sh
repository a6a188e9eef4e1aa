#!/usr/bin/env bash
# kill -9 of one of eight processes that fill one cold cache over HTTP, at random points: the others and new ones read all
# samples and end, and the cache has no damage. Kills of readers that evict each other's blocks: tests/campaigns.sh.
#   tests/faults/kill_cache.sh [COUNT] [SEED]    200 kills (three minutes), another seed each time unless one is given
# After tests/run.sh, whose Python environment it uses; PYTHON names another one that has shardfeed.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec "${PYTHON:-build-tests/venv/bin/python}" tests/python/killed_readers.py "${1:-200}" ${2:+"$2"}
