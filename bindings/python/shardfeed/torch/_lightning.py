"""How many batches Lightning has taken ahead of the one that it trains on."""

from __future__ import annotations

import sys
from typing import Any

from .. import UsageError

_LOOPS = ("lightning.pytorch.loops.", "pytorch_lightning.loops.")
_FETCHERS = tuple(start + "fetchers" for start in _LOOPS)
_TRAINING_LOOPS = ("_FitLoop", "_TrainingEpochLoop")

_HELP = (
    "give epoch_samples, so that the length is known and nothing is taken ahead; or save at the "
    "end of an epoch"
)


class TrainingFetcher:
    """What fetches batches for Lightning's training loop.

    Where the length of a loader is not known, it takes a batch more than it has given to the
    training, to know which one is the last. A state that is saved must not count it as used.
    """

    def __init__(self, fetcher: Any, fit_loop: Any) -> None:
        self._fetcher = fetcher
        self._fit_loop = fit_loop
        self._trained_before = self._trained()

    def _trained(self) -> int:
        """How many batches all epochs have trained on, the one in progress included."""
        return int(self._fit_loop.epoch_loop.batch_progress.total.ready)

    def taken_ahead(self, handed_out: int) -> int:
        """How many of the batches handed out since the epoch began wait in the fetcher: 0 or 1.

        Also where the fetcher has dropped it, after the training.
        """
        if self._fetcher.length is not None:
            return 0
        if len(self._fetcher.combined_loader.flattened) > 1:
            raise UsageError(
                "Lightning takes batches of several loaders ahead, without a length of each, so "
                f"that it is not known which of them were used; help: {_HELP}"
            )
        ahead = handed_out - (self._trained() - self._trained_before)
        if ahead not in (0, 1):
            raise UsageError(
                f"Lightning has taken {handed_out} batches of this loader, which does not fit to "
                f"the {self._trained() - self._trained_before} it has trained on; help: {_HELP}"
            )
        return ahead

    @property
    def takes_ahead(self) -> bool:
        return self._fetcher.length is None


def saves_items_taken_ahead() -> bool:
    """Whether Lightning asks for the length of a StatefulDataLoader: seen on the stack.

    That counts as used what it has handed out, also the batch that Lightning takes ahead where it
    gets no length.
    """
    is_stateful = False
    frame = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module.startswith(("torch.utils.data.", "torchdata.")):
            caller = type(frame.f_locals.get("self"))
            is_stateful |= any(kind.__name__ == "StatefulDataLoader" for kind in caller.__mro__)
        elif module.startswith(("lightning.", "lightning_fabric.", "pytorch_lightning.")):
            return is_stateful
        frame = frame.f_back  # type: ignore[assignment]
    return False


def training_fetcher() -> TrainingFetcher | None:
    """That which asks for an epoch, if one does: seen on the stack."""
    fetcher: Any = None
    frame = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module.startswith(_LOOPS):
            caller: Any = frame.f_locals.get("self")
            if module in _FETCHERS:
                fetcher = caller
            elif fetcher is not None:
                # The nearest loop: within the training, others validate.
                if type(caller).__name__ not in _TRAINING_LOOPS or not hasattr(fetcher, "batches"):
                    return None
                return TrainingFetcher(fetcher, caller.trainer.fit_loop)
        frame = frame.f_back  # type: ignore[assignment]
    return None
