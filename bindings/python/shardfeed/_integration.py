"""What shardfeed.torch, shardfeed.grain and those like them use beside the public names.

They import from here and from `shardfeed`, and use no private name of what they get
(tests/python/test_integration.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._archive import read_to_addresses
from ._column import KEYS, VALID
from ._dataset import HeldSamples, leave_warnings_to_others
from ._options import canonical_text, option_texts
from ._receivers import log_to_logging
from ._recipe import check_epoch
from ._shared_memory import HEADER, RECEIVER, Memory, Pool
from ._stream import asked_by_data_loader
from ._tokenizer import function_named
from ._urls import redacted

if TYPE_CHECKING:
    from ._hooks import Hook as Hook
    from ._native import DatasetOptions as DatasetOptions
    from ._opener import Opener as Opener
    from ._receivers import Log as Log
    from ._receivers import OnSkip as OnSkip
    from ._recipe import Duration as Duration
    from ._tokenizer import StreamKeywords as StreamKeywords
    from ._transform_options import TransformOptions as TransformOptions
    from ._urls import URL as URL
    from ._urls import URLs as URLs

__all__ = [
    "HEADER",
    "KEYS",
    "RECEIVER",
    "VALID",
    "HeldSamples",
    "Memory",
    "Pool",
    "asked_by_data_loader",
    "canonical_text",
    "check_epoch",
    "function_named",
    "leave_warnings_to_others",
    "log_to_logging",
    "option_texts",
    "read_to_addresses",
    "redacted",
]
