#!/usr/bin/env bash
# kill -9 of servers of a feed and of their consumers at random moments, and links between them that are cut, silent, slow
# or reset: every sample comes once and in its order, nobody hangs, memory is bounded and no descriptor is left over.
#   tests/faults/kill_feeds.sh [COUNT] [SEED]    1000 kills (ten minutes), another seed each time unless one is given
# After tests/run.sh, whose Python environment it uses; PYTHON names another one that has shardfeed.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec "${PYTHON:-build-tests/venv/bin/python}" tests/python/feed_faults.py "${1:-1000}" ${2:+"$2"}
