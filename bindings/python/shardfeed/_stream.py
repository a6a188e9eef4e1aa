"""Streams: samples of many shards, epoch by epoch."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ._errors import UsageError
from ._hooks import checked_hooks
from ._iterators import ENDLESS, BatchIterator, SampleIterator, refuse_async
from ._open_stream import BatchStream, BlockStream, stat_names
from ._options import option_texts
from ._receivers import Receivers, log_to_logging
from ._recipe import StreamRecipe
from ._reopenable import Closable
from ._state import SavedState, from_dict, to_dict
from ._tokenizer import taken_tokenizer
from ._transform_options import checked_transforms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self, Unpack

    from ._hooks import Hook
    from ._opener import Opener
    from ._receivers import Log, OnSkip
    from ._recipe import Duration, Recipe
    from ._tokenizer import BatchKeywords, StreamKeywords, TextTokenizer
    from ._transform_options import TransformOptions, Transforms
    from ._transform_threads import Runner
    from ._urls import URLs

    class _BatchesOptions(BatchKeywords, TransformOptions, total=False):
        """What batches() takes by name."""


_Opened = TypeVar("_Opened", BlockStream, BatchStream)

# What batches() takes beside the options of its stream.
_BATCH_OPTIONS = {
    "decode", "pack", "pack_window", "batch_elements", "bucket", "bucket_wait", "last", "ragged",
    "missing", "decode_threads", "max_decoded",
}  # fmt: skip


class Stream(Closable):
    """The samples of many shards, in order, read ahead of the consumer.

        with shardfeed.Stream("train-{000000..000099}.tar", shuffle=1000, seed=1) as stream:
            for sample in stream:
                image, label = sample["jpg"], int(bytes(sample["cls"]))

    urls: one or many of: a path, file:///path, http://, https://, s3://, gs://, az://, hf:// and
    ais:// URLs, "-" (standard input), "pipe:COMMAND", "@FILE" (a list). Braces are expanded,
    "train-{000000..000099}.tar", and so are paths with * ? [...], which stand for the files that
    match, sorted, and ~/; in stores, what ends in / too. expand=False takes URLs as they are.

    timeout: the longest time that next() waits for a sample, in seconds or as text ("200ms");
    then it raises shardfeed.TimeoutError, and the next call continues.

    log: a function that takes a level (a number of the logging module) and a message, for skipped
    samples and shards; None for silence. By default the logger "shardfeed".

    on_skip: a function that takes a Skip for each sample and shard that is skipped under on_error.

    opener: a function that takes a URL and gives a binary file, such as fsspec.open. It serves all
    URLs with a scheme but file: and pipe:, on threads of the library, several at once.

    storage_options: settings of a store as fsspec takes them, {"anon": True}; the options of the
    library have names of their own, s3_anonymous=True.

    Every iter(stream) is the next epoch: the first starts at the option epoch. With epoch_samples,
    an epoch continues where the last one stopped. With epochs=0 an iterator has no end, and the
    next one continues where it stopped. A stream has one active iterator: iter(stream) ends the
    last one.

    stream.batches() gives batches instead, decoded by threads of the library: Stream(urls,
    batch=256, decode="jpg:image/rgb8, cls:int").batches(). iter(stream) gives samples whether or
    not there is the option batch.

    stream.state_dict() has the position of the stream; after load_state_dict() the next iterator
    resumes with exactly the next sample or batch.

    A stream can be pickled, and used in a forked process, where the next iter(stream) opens the
    shards again. An iterator cannot: it raises ForkedError. stream.recipe is what the stream was
    opened from, without a position: a value that can be shared out and opened elsewhere.
    """

    def __init__(
        self,
        urls: URLs,
        *,
        timeout: Duration = None,
        log: Log | None = log_to_logging,
        on_skip: OnSkip | None = None,
        opener: Opener | None = None,
        **options: Unpack[StreamKeywords],
    ) -> None:
        self._start(
            StreamRecipe(urls, timeout=timeout, log=log, on_skip=on_skip, opener=opener, **options)
        )
        self._open_early()

    @classmethod
    def _unopened(cls, recipe: Recipe, epoch: int) -> Self:
        """For Recipe.open(): a stream that opens nothing until it is used."""
        made = cls.__new__(cls)
        made._start(recipe)
        made._next_epoch = epoch
        return made

    def _start(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._closed = False
        self._next_epoch = recipe.first_epoch
        self._resume: SavedState | None = None
        self._iterator: SampleIterator | BatchIterator | None = None
        self._source: BlockStream | BatchStream | None = None
        self._runner: Runner | None = None  # of transforms
        self._pid = os.getpid()
        self._counted: dict[int, int] = {}  # samples of an epoch

    def _open_early(self) -> None:
        # Opening starts no thread and opens no shard, but finds what is wrong with the arguments.
        self._source = (
            self._open(BatchStream, self._recipe.options, self._recipe._tokenizer)
            if self._recipe.number("batch")
            else self._open(BlockStream, self._sample_options())
        )

    def _sample_options(self) -> dict[str, str]:
        return {**self._recipe.options, "batch": "0"}

    def _open(
        self,
        kind: type[_Opened],
        options: dict[str, str],
        tokenizer: TextTokenizer | None = None,
    ) -> _Opened:
        recipe = self._recipe
        receivers = recipe._receivers._replace(tokenizer=tokenizer)
        epoch = self._next_epoch if self._resume is None else self._resume.opened
        native = recipe._opened_options(options)
        return kind(recipe._source(epoch), native, epoch, recipe.timeout, receivers)

    def _check_is_unused(self, name: str) -> None:
        """UsageError where the recipe alone would lose what was done to this stream."""
        if self._closed:
            raise UsageError(f"{name} is closed; help: make it again")
        if self._resume is not None:
            raise UsageError(
                f"{name} has a loaded state; help: load the state into what uses the stream"
            )
        if self._iterator is None and self._next_epoch != self._recipe.first_epoch:
            raise UsageError(
                f"{name} was opened with epoch={self._next_epoch}, which what uses it does not "
                "see; help: give the epoch to what uses the stream"
            )

    def _leave_parent(self) -> None:
        """In a forked child, lets go of what belongs to the parent."""
        if self._pid != os.getpid():
            self._pid = os.getpid()
            self._source = self._iterator = self._runner = None

    def __aiter__(self) -> NoReturn:
        refuse_async()

    def __iter__(self) -> SampleIterator:
        previous = self._iterator
        recipe = self._recipe
        source = self._begin_epoch(BlockStream, self._sample_options())
        counted = recipe.number("epoch_samples") > 0 and recipe.epochs > 0
        samples = source.epoch_samples * recipe.epochs if counted else ENDLESS
        left = self._resumed_left("samples", samples)
        self._iterator = SampleIterator(source, left, previous)
        if previous is not None:
            previous.refuse(UsageError("iter(stream) was called again, which ended this iterator"))
        return self._iterator

    def batches(
        self,
        batch: int | str | None = None,
        *,
        hooks: Mapping[str, Hook | str] | None = None,
        **options: Unpack[_BatchesOptions],
    ) -> BatchIterator:
        """The batches of the next epoch: `batch` samples at a time, decoded.

            for batch in stream.batches(256, decode="jpg:image/rgb8/resize=64x64, cls:int"):
                images, labels = batch["jpg"], batch["cls"]    # NumPy arrays

        batch, options: decode, pack, pack_window, batch_elements, bucket, bucket_wait, last,
        ragged, missing, decode_threads and max_decoded; those that are not given are those of the
        stream.

        hooks: functions for fields that the library takes as bytes, by field or suffix, called in
        the thread that asks for the column: {"ogg": decode_vorbis} makes batch["ogg"] a list of
        what decode_vorbis made of the bytes of each row. Four have names: {"pth": "weights"} is
        torch.load() of tensors and what holds them (weights_only=True, PyTorch 2.6), "parquet" and
        "arrow" make a pyarrow.Table, and "pickle" unpickles, which can run any program that a shard
        brings; in secure mode it is refused.

        transform: a function that takes a decoded sample, a dict with the value of each column
        (and "__key__", "__url__", "__seed__"), and gives the dict that the batch is made of; None
        drops the sample. batch_transform: one that takes the Batch, and gives what comes instead.
        They run in the thread that asks for batches, or in transform_threads threads, or in
        transform_workers processes, started as transform_start says, and may take
        transform_timeout each. With transform_arrays="torch" arrays of samples are tensors.
        transform_ragged={"boxes": "offsets", "tokens": "pad"}: arrays of unequal shape, which are
        joined or filled up with zeros. Order and state are as without. Where one fails there is a
        TransformError, or on_error=skip_sample skips that sample (docs/transforms.md).

        With epoch_samples, an epoch has as many whole batches as hold those samples (with
        last="drop": as go into them), the same number for every rank and worker.

        decode: "FIELD:KIND, FIELD;OTHER:KIND/...": columns, separated by commas, each named after
        its field; the field after a semicolon is taken where the first one is missing. Without
        ":KIND", and with "auto" for all fields of the first sample, the suffix says the kind. A
        field whose name ends in .gz or .zst is unpacked first, and json.gz is JSON:

            bytes, json, msgpack   the bytes; batch[name] makes objects of the last two
            bytes/compressed       a compressed field as it is stored
            text                   checked to be UTF-8
            int, float             a number as text: int64, float64
            npy, npz/NAME          the array of an .npy file; of the member NAME of an .npz
            ten, ten/part=N        the only array in TenBin; number N from 0 on, in a column
                                   called FIELD.N
            safetensors            the only tensor; safetensors/tensor=NAME the one of that name,
                                   in a column called FIELD.NAME
            list, list/NAME        a list of whole numbers in JSON: int64; the member NAME of an
                                   object, in a column called FIELD.NAME
            image                  JPEG, PNG, WebP, GIF, TIFF, JPEG XL or AVIF. Then, after slashes,
                                   what is read:
              rgb8, l8, rgba8      uint8: colour (the default), grey, with alpha
              rgb16, l16           uint16; rgb, l: float32 in 0..1; also float16, bfloat16
              normalize=imagenet   rgb as (number - mean) / deviation; or six numbers, M:M:M:D:D:D
              hwc, chw             colours last (the default), or first
              exif                 turned as the EXIF orientation says
            and the steps, each once, done in their order:
              resize=N             the shorter side; resize=WxH; resize=fit:WxH keeps the shape
              crop=WxH             the middle; crop=random:WxH
              rrc=WxH              RandomResizedCrop; scale=0.08..1, ratio=0.75..1.3333
              pad=N, pad=to:WxH    at each side, or to that size; fill=LEVEL
              flip=random          left and right; flip=always
            filter= names one of Pillow's, exact: no JPEG is reduced while it is decoded, mask: the
            levels are labels, which are moved and not changed.
            brightness=A..B, contrast=, saturation=, hue= (with the chance jitter=P), grayscale= and
            solarize= change colours, blur=P blurs (sigma=A..B, kernel=N), randaugment=2:9 and
            trivialaugment do operations at random, and views=2 makes columns "jpg.0" and "jpg.1".
            mixup=0.2 and cutmix=1 add the columns __mix_index__, __mix_weight__ and __mix_box__:
            with which row each is mixed, its own share, and top, left, bottom, right of the other.
            The column __augment__ says what was chosen for each row.
            boxes/of=jpg           boxes in JSON, with the geometry of that image, before it:
              path=objects.bbox    where they are; xyxy, xywh or cxcywh; relative: in 0..1
                                   columns "json.boxes", float32 (N, 4), and "json.kept"
            audio                  WAV, FLAC, MP3, Opus, Vorbis, or that of a video. After slashes:
              float32, int16       the numbers (float32: the default, as a rule in -1..1)
              fc, cf               frames first (the default), or channels
              mono                 the mean of the channels, in one dimension
              rate=N               resampled to N frames a second
              crop=5s              the middle; crop=start:5s, crop=random:5s; 250ms, 80000 frames
              crop=clip:5s         from the first frame that mp4:video before it takes
              pad                  zeros behind what is shorter than its crop
            video                  MP4, Matroska, WebM or AVI. Then, after slashes, which frames:
              frames=16            those in the middles of 16 equal parts
              clip=16              of the middle; clip=start:16, clip=random:16; stride=4
              rate=8               so many a second, by their times
              repeat               frames again where there are too few, which is an error else
            and the words of image for each frame

        pack: rows of so many elements, for language models: batches(8, decode="npy", pack=4096) has
        batch["npy"] of shape (8, 4096), the documents of the shards one after another, cut where a
        row is full; nothing is lost. batch["__document__"] numbers the documents of each row, and
        batch["__position__"] the elements of each document; -1 where nothing fills the last row. A
        stream resumes in the middle of a document. pack_window=1000 fills the rows best-fit from
        so many documents at a time, and cuts only those that are longer than a row.

        tokenizer: makes the tokens that pack joins, int32, of columns of text: batches(8,
        decode="txt", pack=4096, tokenizer=tokenizer, eos=2). A function that takes a list of texts
        and gives a list with a list or array of tokens for each; one of the packages tokenizers,
        tiktoken or transformers; or "module:function". It is called ahead of the program, by
        decode_threads threads at once. eos: a token behind each text. A text that it fails with is
        a TransformError, or is skipped with on_error=skip_sample.

        batch_elements: batches of as many samples as there is room for: batches(512, decode="npy",
        batch_elements=16384) has batch["npy"] of at most 512 rows and 16384 elements, with the
        zeros that fill rows up (ragged="pad", or rows after one another with ragged="offsets").

        bucket: batches of samples of about one length: with bucket="64,128,256" the rows of a batch
        are all padded to 64, to 128 or to 256. bucket_wait: samples after which what waits in a
        bucket comes, even if it is no full batch.

        Random choices are keyed by seed, epoch, shard, key and view. 16 bits become 8 as
        value / 257, alpha that is not wanted is dropped, and inks (CMYK) become colours.
        docs/decode.md says all of it.
        """
        own: dict[str, Any] = {**options}
        transforms = checked_transforms(own)
        tokenizer = taken_tokenizer(own, self._recipe._tokenizer)
        given = option_texts(own)
        if batch is not None:
            given.update(option_texts({"batch": batch}))
        recipe = self._recipe._with(given)
        unexpected = sorted(set(own) - _BATCH_OPTIONS)
        if unexpected:
            raise TypeError(
                f'unexpected keyword argument: "{unexpected[0]}" is an option of the stream; help: '
                "give it to Stream()"
            )
        if recipe.number("batch") == 0:
            raise UsageError("how many samples are a batch? help: batches(256), or Stream(batch=)")
        checked = checked_hooks(hooks, {"secure": "true" if recipe._is_secure else "false"})
        count = recipe.batches_of_epoch(recipe.consumer[1])
        previous = self._iterator
        self._rewind(previous, transforms is not None)
        runner = self._runner_of(transforms)
        epoch = self._next_epoch
        source = self._begin_epoch(BatchStream, recipe.options, tokenizer)
        left = self._resumed_left("batches", ENDLESS if count is None else count)
        if runner is None:
            self._iterator = BatchIterator(source, left, previous, checked)
        else:
            from ._transformed import TransformedIterator, Transforming, seed_base

            transforming = Transforming(
                runner,
                seed_base(recipe.number("seed"), epoch),
                recipe.options.get("on_error") == "skip_sample",
                recipe.number("max_skips"),
                recipe._receivers,
            )
            self._iterator = TransformedIterator(source, left, checked, transforming)
        if previous is not None:
            previous.refuse(UsageError("batches() was called again, which ended this iterator"))
        return self._iterator

    def _rewind(self, previous: object, is_transformed: bool) -> None:
        """Takes back what the last iterator fetched ahead, where the next one cannot have it."""
        if not isinstance(previous, BatchIterator):
            return
        if not (is_transformed or previous.is_transformed):
            return
        if self._resume is None and previous.is_ahead:
            saved = previous.save("batches", 0) if self._recipe.continues else None
            if saved is not None:
                self._resume = saved._replace(epoch=self._next_epoch, left=None)

    def _runner_of(self, transforms: Transforms | None) -> Runner | None:
        """What runs these functions, also for the next epochs. Another one is ended."""
        self._leave_parent()
        runner = self._runner
        if runner is not None and runner.transforms == transforms:
            runner.stop()
            return runner
        self._end_runner()
        if transforms is not None:
            from ._transformed import new_runner

            self._runner = new_runner(transforms)
        return self._runner

    def _end_runner(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.close()

    def __len__(self) -> int:
        """The samples that this rank and worker has in an epoch: in the one that runs, or the next.

        It is known with epoch_samples, and where every shard has its index; else TypeError. Samples
        that on_error skips are counted.
        """
        if asked_by_data_loader():
            raise UsageError(
                "torch.utils.data.DataLoader takes samples by number of what is no data set of "
                "PyTorch; help: give it shardfeed.torch.Stream(urls, ...), or use shardfeed.torch."
                "loader(urls, batch=) without one"
            )
        recipe = self._recipe
        if not recipe.epochs:
            raise TypeError(recipe.unknown_length)
        self._leave_parent()
        running = None if self._iterator is None else self._iterator.epoch
        first = self._next_epoch if running is None else running
        if recipe.number("epoch_samples"):
            return self._samples_of(first) * recipe.epochs
        return sum(self._samples_of(first + number) for number in range(recipe.epochs))

    def __bool__(self) -> bool:
        return True

    def _samples_of(self, epoch: int) -> int:
        recipe = self._recipe
        if not recipe.counts_when_opened and recipe.number("epoch_samples") == 0:
            if epoch not in self._counted:
                counted = recipe._indexed_samples(epoch)
                if counted is None:
                    raise TypeError(recipe.unknown_length)
                self._counted[epoch] = counted
            return self._counted[epoch]
        if self._source is not None and self._source.epoch == epoch:
            return self._source.epoch_samples
        if epoch not in self._counted:
            options = recipe._opened_options(self._sample_options())
            source = BlockStream(
                recipe._source(epoch), options, epoch, 0.0, Receivers(opener=recipe.opener)
            )
            self._counted = {epoch: source.epoch_samples}
            source.close()
        return self._counted[epoch]

    def _begin_epoch(
        self,
        kind: type[_Opened],
        options: dict[str, str],
        tokenizer: TextTokenizer | None = None,
    ) -> _Opened:
        """The open stream that the next epoch comes from."""
        if self._closed:
            raise UsageError("the stream is closed")
        self._leave_parent()
        recipe, source = self._recipe, self._source
        used = self._iterator is not None
        cancelled = False
        if source is not None:
            wanted = recipe._opened_options(options)
            if self._resume is None and not (used and (source.over or not recipe.continues)):
                is_same = source.options == wanted and source.tokenizer == tokenizer
                if isinstance(source, kind) and is_same:
                    self._next_epoch += max(recipe.epochs, 1)
                    return source
                cancelled = source.over and not used  # which is meant for this epoch
            self._source = None
            source.close(
                "another thread has started an iteration of this stream, which ended this "
                "iterator; help: a stream has one iterator at a time: open one for each thread"
            )
        opened = self._source = self._open(kind, options, tokenizer)
        if self._resume is not None and self._resume.blob is not None:
            opened.restore(self._resume.blob)
        if cancelled:
            opened.cancel()
        self._next_epoch += max(recipe.epochs, 1)
        return opened

    def _resumed_left(self, unit: str, whole: int) -> int:
        """What is to come of the epoch that begins or continues: samples, or batches."""
        resume, self._resume = self._resume, None
        if resume is None or resume.left is None or whole == ENDLESS:
            return whole
        if resume.samples_or_batches != unit:
            raise UsageError(
                f"the state was saved between {resume.samples_or_batches} of an epoch, and these "
                f"are {unit}; help: resume as it was saved"
            )
        if not resume.merged:
            return resume.left
        # A merged state: what is left of all consumers is dealt out as they take turns.
        number, consumers = self._recipe.consumer
        if unit == "batches":
            return resume.left // consumers
        total = self._recipe.number("epoch_samples") * self._recipe.epochs
        first = total - resume.left
        return len(range(number, total, consumers)) - len(range(number, first, consumers))

    @property
    def epoch(self) -> int:
        """The number of the epoch that runs; between two of them that of the next one.

            while stream.epoch < 90:    # also after load_state_dict()
                for sample in stream: ...

        It is "epoch" of state_dict(), too. An epoch has ended when its iterator has said so. Where
        the option epochs gives an iterator several, it is the first of these.
        """
        runs = self._iterator is not None and self._iterator.epoch is not None
        return self._next_epoch - (max(self._recipe.epochs, 1) if runs else 0)

    def state_dict(self, *, unread: int = 0) -> dict[str, object]:
        """The position of the stream, as a small dict that JSON can hold.

            torch.save({"model": model.state_dict(), "data": stream.state_dict()}, path)
            ...
            stream = shardfeed.Stream(urls, **the_same_options)
            stream.load_state_dict(torch.load(path)["data"])
            for sample in stream: ...          # resumes with exactly the next sample

        At any time, also while an iterator is in the middle, and after an error: it is about what
        the user has been given so far. Between two epochs it leads to the next one.

        Any thread may call it, and a signal handler. log and on_skip may not.

        unread: 1 where the last batch was taken ahead and is not used, so that it comes again.
        """
        if self._closed:
            raise UsageError("the stream is closed; help: save it before")
        self._leave_parent()
        if self._resume is not None:  # loaded, and not used yet
            return to_dict(self._resume)
        unit = "batches" if isinstance(self._iterator, BatchIterator) else "samples"
        if self._iterator is not None:
            saved = self._iterator.save(unit, unread)
            if saved is not None:
                self._recipe._warn_of_lanes()
                return to_dict(saved._replace(epoch=self.epoch))
            source = self._source
            if self._recipe.continues and source is not None and not source.over:
                # The next epoch continues where the last one stopped, a whole one.
                with source.lock:
                    blob, following = source.save(0), self._next_epoch
                self._recipe._warn_of_lanes()
                return to_dict(SavedState(following, blob, None, False, unit, source.epoch))
        return to_dict(SavedState(self._next_epoch, None, None, False, unit, self._next_epoch))

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Makes the next iterator resume where state_dict() was called.

        The URLs and options must be the same, but for threads, memory, time limits and what batches
        are made of; else the next iter(stream) or batches() raises UsageError, which names what
        changed. rank, world_size, worker and num_workers may differ with a state of merge_states().
        """
        if self._closed:
            raise UsageError("the stream is closed")
        self._leave_parent()
        self._resume = from_dict(state)
        self._next_epoch = self._resume.epoch
        iterator, self._iterator = self._iterator, None
        if iterator is not None:
            iterator.refuse(UsageError("load_state_dict() was called, which ended this iterator"))

    def cancel(self) -> None:
        """Makes the iterator, also one that waits in another thread, raise CancelledError.

        It does so within 100 ms. The next iter(stream) is the next epoch. Any thread may call this.
        """
        self._leave_parent()
        if self._source is not None:
            self._source.cancel()

    def close(self) -> None:
        """Stops reading and frees what was read ahead. Samples and views stay valid."""
        self._leave_parent()
        self._closed = True
        if self._source is not None:
            self._source.close()
        if self._iterator is not None:
            self._iterator.refuse(UsageError("the stream is closed"))
        self._end_runner()

    def stats(self) -> dict[str, int]:
        """Counters of the epoch that runs or ran last, by name: "samples", "skipped_shards", ...

        With a transform, "skipped_samples" has those that it failed with, too, and
        "dropped_samples" those for which it gave None.
        """
        self._leave_parent()
        if self._source is None:
            return {name: 0 for _, name in stat_names()}
        stats, source = self._source.stats(), self._source
        iterator = self._iterator
        transformed = isinstance(iterator, BatchIterator) and iterator.is_transformed
        if transformed and isinstance(source, BatchStream):
            stats["skipped_samples"] += source.skipped
            stats["dropped_samples"] = source.dropped
        return stats

    @property
    def recipe(self) -> Recipe:
        """What the stream was opened from: URLs, or parts, and options. It has no position."""
        return self._recipe

    @property
    def urls(self) -> list[str]:
        """The URLs as they were given."""
        return self._recipe.urls

    @property
    def options(self) -> dict[str, str]:
        """The options that were given, as the library takes them."""
        return self._recipe.options

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_source": None, "_iterator": None, "_runner": None, "_pid": 0}

    def __repr__(self) -> str:
        return f"<shardfeed.Stream {self._recipe}>"


def asked_by_data_loader() -> bool:
    """Whether who calls the function that calls this is PyTorch's DataLoader or its samplers."""
    asks = sys._getframe(2).f_globals.get("__name__")
    return isinstance(asks, str) and asks.startswith("torch.utils.data.")
