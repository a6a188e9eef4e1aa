#!/usr/bin/env bash
# Thousands of forks while two threads of the parent read over TLS: every child reads right, and none hangs.
#   tests/faults/forks.sh [COUNT]    10000 forks (ten minutes)
# After tests/run.sh, whose Python environment it uses; PYTHON names another one that has shardfeed.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec "${PYTHON:-build-tests/venv/bin/python}" tests/python/forked_readers.py "${1:-10000}"
