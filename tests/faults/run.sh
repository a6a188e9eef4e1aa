#!/usr/bin/env bash
# Thousands of runs against servers and networks that fail at random places: what is read is complete, or there is an error
# of the right class, without the token in it. tests/run.sh runs a few hundred of them, tests/campaigns.sh 200 of each kind.
#   tests/faults/run.sh [COUNT] [SEED]    10000 runs (eight minutes), another seed each time unless one is given; 200x: so
#                                         many of each kind
# After tests/run.sh, whose Python environment it uses; PYTHON names another one that has shardfeed.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec "${PYTHON:-build-tests/venv/bin/python}" tests/python/random_faults.py "${1:-10000}" ${2:+"$2"}
