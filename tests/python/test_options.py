from __future__ import annotations

import ast
from pathlib import Path

import pytest
import shardfeed
from conftest import tar_of

STUB = Path(shardfeed.__file__).with_name("_native.pyi")


def stub_keywords(name: str) -> dict[str, str]:
    """Name -> annotation, as type checkers and editors see the keywords of an opener."""
    tree = ast.parse(STUB.read_text())
    (options,) = (
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name
    )
    return {node.target.id: ast.unparse(node.annotation) for node in options.body}


@pytest.mark.parametrize(
    ("opener", "stub"),
    [
        ("stream", "StreamOptions"),
        ("mix", "MixOptions"),
        ("archive", "ArchiveOptions"),
        ("dataset", "DatasetOptions"),
        ("writer", "WriterOptions"),
    ],
)
def test_stub_keywords_are_the_options_of_the_library(opener, stub):
    described = {
        option["name"]: option
        for option in shardfeed.options()
        if opener in option["openers"]
        # A parameter of its own where it is for every call.
        and not (option["name"] == "timeout" and opener in ("stream", "mix"))
    }
    stubs = stub_keywords(stub)
    assert list(stubs) == list(described)
    types = {
        "bool": "bool | str",
        "count": "int | str",
        "bytes": "int | str",
        "duration": "float | str",
        "text": "str",
        "secret": "str",
    }
    paths = ("ca_file", "client_cert", "client_key", "cache", "gs_credentials", "wids_index")
    special = dict.fromkeys(paths, "str | PathLike[str]")
    special["headers"] = "str | Mapping[str, str]"
    for name, option in described.items():
        choices = ", ".join(map(repr, option["range"].split("|")))
        expected = special.get(name) or types.get(option["type"], f"Literal[{choices}]")
        assert stubs[name] == expected, name


def test_options_describe_themselves():
    for option in shardfeed.options():
        assert set(option) == {"name", "type", "default", "range", "openers", "help", "group"}
        assert option["help"]
        assert "\n" not in option["help"]
        assert set(option["openers"].split()) <= {
            *("stream", "mix", "archive", "dataset", "writer")
        }


def test_every_default_is_accepted(tmp_path):
    path = tar_of(3, tmp_path / "t.tar")
    defaults = {
        option["name"]: option["default"]
        for option in shardfeed.options()
        if "stream" in option["openers"]
    }
    assert len(list(shardfeed.Stream(path, **defaults))) == 3


def test_values(tmp_path):
    path = tar_of(3, tmp_path / "t.tar")

    class Index:
        def __index__(self) -> int:
            return 7

    stream = shardfeed.Stream(
        path,
        resample=False,
        concat="yes",
        shuffle=Index(),
        memory=64e6,
        max_member="1.5GiB",
        pipe_timeout=0.5,
        seed=2**64 - 1,
    )
    assert stream.options == {
        "resample": "false",
        "concat": "yes",
        "shuffle": "7",
        "memory": "64000000",
        "max_member": "1.5GiB",
        "pipe_timeout": "0.500000000",
        "seed": "18446744073709551615",
    }
    assert len(list(stream)) == 3


def test_secrets_are_not_shown(tmp_path):
    path = tar_of(3, tmp_path / "t.tar")
    secrets = {"token": "abc-hidden", "headers": {"X-Key": "other-hidden", "X-Name": "n"}}
    stream = shardfeed.Stream(path, seed=1, **secrets)
    assert stream.options["headers"] == "X-Key: other-hidden\nX-Name: n"
    opened = [
        stream,
        stream.recipe,
        shardfeed.mix([shardfeed.Stream(path, **secrets)]),
        shardfeed.Archive(path, **secrets),
        shardfeed.Dataset(path, index="memory", **secrets),
    ]
    for one in opened:
        assert "hidden" not in f"{one} {one!r}"
    assert "token=..." in repr(stream)
    assert "seed=1" in repr(stream)


def test_unknown_keyword_is_a_type_error_with_the_nearest_name():
    with pytest.raises(TypeError, match=r'shufle.*"shuffle"'):
        shardfeed.Stream("x.tar", shufle=1)
    with pytest.raises(TypeError, match=r'expnd.*"expand"'):
        shardfeed.expand_urls("x.tar", expnd=True)


@pytest.mark.parametrize(
    ("opener", "name", "meant"),
    [
        (shardfeed.Stream, "shardshuffle", "shuffle_shards"),
        (shardfeed.Stream, "handler", "on_error"),
        (shardfeed.Stream, "repeat", "epochs"),
        (shardfeed.Stream, "batch_size", "batch"),
        (shardfeed.Stream, "nworkers", "threads"),
        (shardfeed.Stream, "resampled", "resample"),
        (shardfeed.Stream, "cache_dir", "cache"),
        (shardfeed.Dataset, "columns", "fields"),
        (shardfeed.Dataset, "num_threads", "threads"),
        (shardfeed.Archive, "prefetch", "memory"),
    ],
)
def test_names_of_other_loaders_lead_to_the_option(opener, name, meant):
    sentence = f'unknown option "{name}"; help: did you mean "{meant}"'
    with pytest.raises(TypeError, match=sentence):
        opener("x.tar", **{name: 1})


def test_what_is_meant_is_an_option_of_the_one_that_is_asked():
    openers = {option["name"]: option["openers"].split() for option in shardfeed.options()}
    for name in ("shardshuffle", "indx", "take", "batch_size"):
        assert name not in openers
        with pytest.raises(TypeError) as raised:
            shardfeed.Archive("x.tar", **{name: 1})
        assert "archive" in openers[str(raised.value).rpartition('did you mean "')[2][:-2]]


@pytest.mark.parametrize(
    "options",
    [
        {"shuffle": -1},
        {"shuffle": "many"},
        {"shuffle": 1.5},
        {"shuffle": ""},
        {"resample": 2},
        {"on_error": "ignore"},
        {"memory": "12 parsecs"},
        {"seed": 2**64},
        {"world_size": 0},
        {"pipe_timeout": float("nan")},
        {"pipe_timeout": float("inf")},
        {"timeout": -1},
        {"timeout": "soon"},
        {"seed": "1\0"},
    ],
)
def test_bad_value_is_a_usage_error_that_names_the_option(options):
    (name,) = options
    with pytest.raises(ValueError, match=name) as caught:
        shardfeed.Stream("x.tar", **options)
    assert isinstance(caught.value, shardfeed.UsageError)


@pytest.mark.parametrize("value", [None, [1], b"1", object()])
def test_value_of_the_wrong_kind_is_a_type_error(value):
    with pytest.raises(TypeError, match="shuffle"):
        shardfeed.Stream("x.tar", shuffle=value)


def test_features():
    features = shardfeed.features()
    codecs = {"gzip", "bzip2", "xz", "zstd", "lz4", "lzip", "compress"}
    images = {"jpeg", "png", "webp", "gif", "tiff", "jxl", "avif"}
    others = {"pipe", "audio", "video", "http", "libarchive", "feed", "feed_http"}
    assert set(features) == codecs | images | others
    assert features["gzip"]
    assert features["jpeg"]


def test_version():
    assert shardfeed.__version__ == "0.1.0"
