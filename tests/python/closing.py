"""Closing what other threads are using."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol


class Closable(Protocol):
    def close(self) -> None: ...


def errors_of_closing(opened: Closable, use: Callable[[], None]) -> list[BaseException]:
    """Closes it while four threads use it over and over, until use() says that it is closed.

    What else use() raised.
    """
    strange: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                use()
        except BaseException as error:
            if not isinstance(error, ValueError) or "closed" not in str(error):
                strange.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.01)
    opened.close()
    for thread in threads:
        thread.join()
    return strange
