"""A loop that a signal interrupts again and again."""

import random
import signal


def collect(iterator, most):
    """What an iterator gives, at most `most` items, while an exception out of a signal handler ends
    the loop at any point, and the next loop continues.
    """

    class InterruptError(Exception):
        pass

    def interrupt(number, frame):
        raise InterruptError

    # What the loop has received is stored by the for statement itself, without a call after which
    # the handler could run. The timer fires once a round, so that nothing else is interrupted.
    seen = [None] * (most + 1)
    taken = interrupts = 0
    delays = random.Random(1)
    previous = signal.signal(signal.SIGALRM, interrupt)
    finished = False
    try:
        while not finished:
            try:
                signal.setitimer(signal.ITIMER_REAL, delays.uniform(20e-6, 400e-6))
                for seen[taken] in iterator:
                    taken += 1
                finished = True
                signal.setitimer(signal.ITIMER_REAL, 0)  # here too an interrupt is caught
            except InterruptError:
                interrupts += 1
                if seen[taken] is not None:
                    taken += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert interrupts > 0
    return seen[:taken]
