"""LMDB: an entry for each field, whose name is that of a member, KEY.FIELD.

LMDB keeps entries in the order of their names, as bytes: samples come back in that order. Names
have at most 511 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ._rows import ReadOptions, Row, Samples, package, refuse, shown
from ._target import new_folder

MAP_BYTES = 1 << 40  # of addresses; the file grows with what is in it
COMMIT_BYTES = 64 << 20


def split_name(name: str) -> tuple[str, str]:
    """Key and field: the key ends at the first dot behind the last slash."""
    base = name.rfind("/") + 1
    dot = name.find(".", base)
    return (name, "") if dot < 0 else (name[:dot], name[dot + 1 :])


def read(path: Path, options: ReadOptions) -> Iterator[Row]:
    lmdb = package("lmdb", "lmdb")
    environment = lmdb.open(
        str(path), subdir=path.is_dir(), readonly=True, lock=False, readahead=False
    )
    with environment, environment.begin(buffers=False) as transaction:
        sample: dict[str, bytes] = {}
        current = None
        for entry, data in transaction.cursor():
            key, field = split_name(entry.decode("utf-8", "surrogateescape"))
            if not field:
                if not options.field:
                    refuse(
                        f"{path}: the entry {shown(key)} has no field in its name",
                        "--field jpg says what such entries are",
                    )
                field = options.field
            if current is not None and key != current:
                yield current, sample
                sample = {}
            current = key
            sample[field] = data
        if current is not None:
            yield current, sample


def write(path: Path, samples: Samples) -> None:
    lmdb = package("lmdb", "lmdb")
    with new_folder(path) as partial:
        environment = lmdb.open(str(partial), map_size=MAP_BYTES, lock=False, sync=False)
        longest = environment.max_key_size()
        transaction = environment.begin(write=True)
        try:
            size = 0
            for key, fields in samples.read():
                for field, data in fields.items():
                    name = f"{key}.{field}".encode("utf-8", "surrogateescape")
                    if len(name) > longest:
                        refuse(
                            f"{shown(key)}.{shown(field)} has {len(name)} bytes, and names in LMDB "
                            f"have at most {longest}",
                            "give shorter keys with cat --rekey",
                        )
                    if split_name(f"{key}.{field}") != (key, field):
                        refuse(
                            f"the key {shown(key)} has a dot, and would be another one in LMDB",
                            "give other keys with cat --rekey",
                        )
                    if not transaction.put(name, data, overwrite=False):
                        refuse(
                            f"the sample {shown(key)} comes twice, and LMDB has every name once",
                            "give new keys with cat --rekey",
                        )
                    size += len(data)
                if size >= COMMIT_BYTES:
                    transaction.commit()
                    transaction = environment.begin(write=True)
                    size = 0
            transaction.commit()
            environment.sync(True)
        except BaseException:
            transaction.abort()
            raise
        finally:
            environment.close()
