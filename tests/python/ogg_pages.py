"""Pages of Ogg, taken apart and put together (RFC 3533)."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

LAST = 4


def page_crc(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ 0x04C11DB7 if crc & 0x80000000 else crc << 1) & 0xFFFFFFFF
    return crc


@dataclass
class Page:
    flags: int
    granule: int
    serial: int
    number: int
    lacing: bytes
    body: bytes

    def to_bytes(self) -> bytes:
        """The page with its CRC."""
        head = b"OggS\0" + struct.pack("<BqII", self.flags, self.granule, self.serial, self.number)
        rest = bytes([len(self.lacing)]) + self.lacing + self.body
        return head + struct.pack("<I", page_crc(head + bytes(4) + rest)) + rest


def pages(data: bytes) -> list[Page]:
    found = []
    while data:
        flags, granule, serial, number = struct.unpack("<BqII", data[5:22])
        lacing = data[27 : 27 + data[26]]
        begin = 27 + len(lacing)
        end = begin + sum(lacing)
        found.append(Page(flags, granule, serial, number, lacing, data[begin:end]))
        data = data[end:]
    return found


def joined(all_pages: Iterable[Page]) -> bytes:
    return b"".join(page.to_bytes() for page in all_pages)
