#!/usr/bin/env bash
# kill -9 of workers of transforms at random points: every batch comes once and in its order, saved states resume with the
# next one, and no process, descriptor or shared memory is left over.
#   tests/faults/kill_workers.sh [STREAMS] [SEED]    100 streams of three epochs (two minutes), seed 1 unless one is given
# After tests/run.sh, whose Python environment it uses; PYTHON names another one that has shardfeed.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec "${PYTHON:-build-tests/venv/bin/python}" tests/python/killed_workers.py "${1:-100}" ${2:+"$2"}
