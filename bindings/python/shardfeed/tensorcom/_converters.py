"""Arrays of messages as tensors, and images in the layout of PyTorch."""

from __future__ import annotations

from typing import Any

from .. import UsageError

_CHANNELS = (3, 4)


def _to_torch(array: Any, device: str) -> Any:
    """Floats become float32, wider integers int64; NHWC and HWC become NCHW and CHW."""
    import numpy as np
    import torch

    if not isinstance(array, np.ndarray):
        return array
    if array.ndim in (3, 4) and array.shape[-1] in _CHANNELS:
        array = np.moveaxis(array, -1, -3)
    if array.dtype.kind == "f":
        array = array.astype(np.float32)
    elif array.dtype.kind in "iu" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    else:
        array = array.copy()  # a tensor over memory that is read-only would warn
    return torch.as_tensor(array, device=device)


def _to_torch_cpu(array: Any) -> Any:
    return _to_torch(array, "cpu")


def _to_torch_cuda(array: Any) -> Any:
    return _to_torch(array, "cuda")


def _to_numpy(tensor: Any) -> Any:
    """NCHW and CHW become NHWC and HWC."""
    if not hasattr(tensor, "detach"):
        return tensor
    import numpy as np

    array = tensor.detach().cpu().numpy()
    if array.ndim in (3, 4) and array.shape[-3] in _CHANNELS:
        array = np.moveaxis(array, -3, -1)
    return array


_CONVERTERS = {"torch": _to_torch_cpu, "torch_cuda": _to_torch_cuda, "numpy": _to_numpy}


def converters_of(converters: Any) -> Any:
    """The function of a name; functions as they are."""
    if not isinstance(converters, str):
        return converters
    if converters not in _CONVERTERS:
        raise UsageError(f"converters={converters!r}; help: {', '.join(_CONVERTERS)}, or functions")
    return _CONVERTERS[converters]
