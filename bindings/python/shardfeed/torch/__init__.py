"""shardfeed for PyTorch: samples and batches in order, and data sets for DataLoader.

    import shardfeed.torch

    batches = shardfeed.torch.loader(    # threads of the library read and decode: no workers
        "train-{000000..000099}.tar", batch=256, decode="jpg:image/rgb8/resize=64x64, cls:int",
        shuffle=1000, seed=1, device="cuda",
    )
    for batch in batches:
        loss = model(batch["jpg"], batch["cls"])
    torch.save(batches.state_dict(), "data.pt")    # and load_state_dict() resumes there
    shardfeed.torch.gather_state(batches)    # the same of all ranks, on each of them

    data = shardfeed.torch.Stream(urls, transform=to_tensors)    # in workers of a DataLoader
    data = shardfeed.torch.Dataset(urls, transform=to_tensors)    # samples by number
    data = shardfeed.torch.ZipDataset("images.zip", load_encoded=True)    # images of a ZIP
    loader = torch.utils.data.DataLoader(data, batch_size=256, num_workers=8)

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
from ._gather import gather_state
from ._loader import Loader, loader
from ._node import node
from ._stream import Stream
from ._zip import ZipDataset, _Labels

# What is pickled is named after this module, wherever it is written down.
for _public in (Dataset, Loader, Stream, ZipDataset, _Labels):
    _public.__module__ = __name__

__all__ = ["Dataset", "Loader", "Stream", "ZipDataset", "gather_state", "loader", "node"]
