#!/usr/bin/env bash
# Random pipelines with webdataset and with shardfeed.wds: the same samples in the same order, the same faults for
# handlers. A minute; tests/run.sh runs 400 of them.
#   tests/differential/wds_pipelines.sh [PIPELINES [FIRST]]     3000 unless given, with the seeds from FIRST (0) on
# PYTHON names an interpreter that has both packages, and pytest, NumPy and Pillow.
set -euo pipefail
cd "$(dirname "$0")/../.."
count=${1:-3000}
SHARDFEED_PIPELINES=$count SHARDFEED_FIRST=${2:-0} "${PYTHON:-python3}" -m pytest -q -p no:cacheprovider tests/python/test_wds_differential.py
echo "$count pipelines: the same with both packages"
