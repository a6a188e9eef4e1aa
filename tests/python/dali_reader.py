"""Reads shards through DALI, on the CPU, for test_other_readers.py.

python dali_reader.py IN OUT     pickles: a list of lists of shards; what was read of each list
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from nvidia.dali import Pipeline, fn


def read(shards: list[str], indexes: list[str], fields: list[str]) -> list[list[bytes]]:
    """The fields of all samples. Without indexes DALI looks for the samples itself."""
    pipeline = Pipeline(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipeline:
        outputs = fn.readers.webdataset(
            paths=shards,
            index_paths=indexes,
            ext=fields,
            missing_component_behavior="error",
            name="reader",
        )
        pipeline.set_outputs(*outputs)
    pipeline.build()
    return [
        [field.at(0).tobytes() for field in pipeline.run()]
        for _ in range(pipeline.epoch_size("reader"))
    ]


def main() -> None:
    """Answers each question."""
    questions, out = map(Path, sys.argv[1:])
    answers = [read(*question) for question in pickle.loads(questions.read_bytes())]
    out.write_bytes(pickle.dumps(answers))


if __name__ == "__main__":
    main()
