"""Data sets of other formats to shards and back, as the verb `shardfeed convert` does.

Each format is in a file of its own, with read() and write(), and goes through the package that the
format is made with: pip install 'shardfeed[convert]' has them all.
"""

from __future__ import annotations

from ._convert import FORMATS, convert
from ._rows import ConvertError, ReadOptions

__all__ = ["FORMATS", "ConvertError", "ReadOptions", "convert"]
