"""shardfeed for PyTorch: data sets for torch.utils.data.DataLoader.

    from shardfeed.torch import Dataset, ZipDataset

    data = Dataset("train-{000000..000099}.tar", transform=to_tensors)    # samples of shards
    data = ZipDataset("images.zip", load_encoded=True, transform=to_tensor)    # images of a ZIP
    loader = torch.utils.data.DataLoader(data, batch_size=256, shuffle=True, num_workers=8)

The package does not depend on PyTorch: only this module imports it (1.13 or later), and Pillow only
to decode.
"""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as missing:
    if missing.name != "torch":
        raise
    raise ModuleNotFoundError(
        "shardfeed.torch needs PyTorch; help: pip install torch", name="torch"
    ) from None

from ._dataset import Dataset
from ._zip import ZipDataset, _Labels

# What is pickled is named after this module, wherever it is written down.
for _public in (Dataset, ZipDataset, _Labels):
    _public.__module__ = __name__

__all__ = ["Dataset", "ZipDataset"]
