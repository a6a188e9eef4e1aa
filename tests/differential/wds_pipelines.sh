#!/usr/bin/env bash
# Random pipelines with webdataset and with shardfeed.wds: the same samples in the same order, the same faults for
# handlers. So many of all stages, and so many of those that run on columns. Some minutes; tests/run.sh runs 400 of each.
#   tests/differential/wds_pipelines.sh [PIPELINES [FIRST]]     3000 unless given, with the seeds from FIRST (0) on
# PYTHON names an interpreter that has both packages, and pytest, NumPy and Pillow.
set -euo pipefail
cd "$(dirname "$0")/../.."
count=${1:-3000}
SHARDFEED_PIPELINES=$count SHARDFEED_FIRST=${2:-0} "${PYTHON:-python3}" -m pytest -q -p no:cacheprovider tests/python/test_wds_differential.py
echo "2 times $count pipelines: the same with both packages"
