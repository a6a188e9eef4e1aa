"""A loader in a Trainer of Lightning, which saves and loads its state. Needs Lightning."""

from __future__ import annotations

import logging

import pytest
from batches import ramps

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Lightning has much to say about small data
]

OPTIONS = {"batch": 4, "shuffle": 9, "shuffle_shards": True, "seed": 3, "epoch_samples": 30}


@pytest.fixture
def lightning():
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    return pytest.importorskip("lightning.pytorch")


def test_resumed_training_sees_every_batch_once(torch, datasets, lightning, tmp_path):
    url = "::".join(ramps(tmp_path / f"{n}.tar", 10 + n) for n in range(4))

    class Model(lightning.LightningModule):
        def __init__(self, stop: int | None) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.stop = stop
            self.seen: list[list[int]] = []

        def training_step(self, batch, number):
            self.seen.append(batch["cls"].tolist())
            return self.layer(batch["cls"].float().reshape(-1, 1)).mean()

        def on_train_batch_end(self, *_):
            if len(self.seen) == self.stop:
                self.trainer.save_checkpoint(tmp_path / "checkpoint")
                raise KeyboardInterrupt

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    def train(stop: int | None, checkpoint: object = None) -> list[list[int]]:
        trainer = lightning.Trainer(
            accelerator="cpu",
            max_epochs=3,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        model = Model(stop)
        try:
            trainer.fit(model, datasets.loader(url, **OPTIONS), ckpt_path=checkpoint)
        except (KeyboardInterrupt, SystemExit):  # Lightning makes one of the other
            assert stop is not None
        return model.seen

    whole = train(None)
    assert len(whole) == 3 * 8
    assert whole[:8] != whole[8:16]
    for stop in (3, 8, 13):
        seen = train(stop)
        assert len(seen) == stop
        assert seen + train(None, tmp_path / "checkpoint") == whole
