"""A loader in a Trainer of Lightning, which saves and loads its state. Needs Lightning."""

from __future__ import annotations

import logging

import pytest
import shardfeed
from batches import ramps

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Lightning has much to say about small data
]

OPTIONS = {"batch": 4, "shuffle": 9, "shuffle_shards": True, "seed": 3}


@pytest.fixture
def lightning():
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    return pytest.importorskip("lightning.pytorch")


@pytest.fixture
def url(tmp_path) -> str:
    return "::".join(ramps(tmp_path / f"{n}.tar", 6 + n) for n in range(4))


@pytest.fixture
def trainer(torch, lightning, tmp_path):
    """trainer(batches, ...): what a model was trained on, and its Trainer."""

    class Model(lightning.LightningModule):
        def __init__(self, stop: int | None) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.stop = stop
            self.seen: list[list[int]] = []

        def training_step(self, batch, number):
            classes = batch["cls"] if "cls" in batch else batch["one"]["cls"]
            self.seen.append(classes.tolist())
            return self.layer(classes.float().reshape(-1, 1)).mean()

        def on_train_batch_end(self, *_):
            if len(self.seen) == self.stop:
                self.trainer.save_checkpoint(tmp_path / "checkpoint")
                raise KeyboardInterrupt

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    def train(batches, stop=None, checkpoint=None, **options):
        made = lightning.Trainer(
            accelerator="cpu",
            max_epochs=3,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            **options,
        )
        model = Model(stop)
        try:
            made.fit(model, batches, ckpt_path=checkpoint)
        except (KeyboardInterrupt, SystemExit):  # Lightning makes one of the other
            assert stop is not None
        return model.seen, made

    return train


# Lightning knows the length of the first, and takes a batch ahead of the others. To a device one
# more is on its way.
@pytest.mark.parametrize("device", [None, "meta"])
@pytest.mark.parametrize("more", [{"epoch_samples": 30}, {}, {"last": "drop"}], ids=str)
def test_resumed_training_sees_every_batch_once(
    datasets, trainer, url, tmp_path, more, device, monkeypatch
):
    from devices import LateDevice
    from shardfeed.torch import _device

    made = LateDevice()
    monkeypatch.setitem(_device.TRANSFERS, "meta", lambda place: made)

    def loader():
        return datasets.loader(url, **OPTIONS, **more, device=device)

    whole, _ = trainer(loader())
    assert bool(made.log) == (device is not None)
    count = len(whole) // 3
    assert count == (7 if more.get("last") else 8)
    assert whole[:count] != whole[count : 2 * count]
    for stop in (1, 3, count - 1, count, count + 1, 2 * count):
        seen, _ = trainer(loader(), stop)
        assert len(seen) == stop
        rest, _ = trainer(loader(), None, tmp_path / "checkpoint")
        assert seen + rest == whole, stop


def test_saved_after_the_training(torch, datasets, trainer, url, tmp_path):
    whole, _ = trainer(datasets.loader(url, **OPTIONS))
    for steps in (3, 11):
        seen, made = trainer(datasets.loader(url, **OPTIONS), max_steps=steps)
        assert seen == whole[:steps]
        made.save_checkpoint(tmp_path / "checkpoint")
        # Lightning itself does not load it where an epoch counts as done.
        saved = torch.load(tmp_path / "checkpoint", weights_only=False)
        (state,) = saved["loops"]["fit_loop"]["state_dict"]["combined_loader"]
        resumed = datasets.loader(url, **OPTIONS)
        resumed.load_state_dict(state)
        rest = [batch["cls"].tolist() for batch in resumed]
        assert rest == whole[steps : (steps + 7) // 8 * 8]


def test_a_state_that_would_be_one_batch_off_is_refused(datasets, trainer, url):
    stream = datasets.Stream(url, **OPTIONS)
    with pytest.raises(shardfeed.UsageError, match=r"an item ahead .*help: give epoch_sam"):
        trainer(stream, 3)
    with pytest.raises(shardfeed.UsageError, match=r"several loaders ahead.*help: give epoch_sam"):
        trainer({"one": datasets.loader(url, **OPTIONS), "other": stream}, 3)


def test_a_stateful_data_loader_needs_a_length(datasets, trainer, url):
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")
    stream = datasets.Stream(url, **OPTIONS)
    with pytest.raises(shardfeed.UsageError, match=r"takes a batch ahead.*help: give epoch_sam"):
        trainer(torchdata.StatefulDataLoader(stream, batch_size=None))
    stream = datasets.Stream(url, **OPTIONS, epoch_samples=30)
    seen, _ = trainer(torchdata.StatefulDataLoader(stream, batch_size=None))
    assert len(seen) == 24
