"""Trains softmax regression on streamed, shuffled, decoded batches of the digits of make_digits.py.

python train_digits.py URL...      the first shard is held out, and the accuracy on it printed
"""

import sys
import time

import numpy as np
import shardfeed

EPOCHS, RATE, DECAY = 40, 0.5, 1e-4
DECODE = "png:image/l, cls:int"  # grey images of float32 in 0..1, and labels


def inputs(images: np.ndarray) -> np.ndarray:
    """A row for each image: its pixels, and a one for the bias."""
    pixels = images.reshape(len(images), -1)
    return np.hstack([pixels, np.ones((len(pixels), 1), np.float32)])


def softmax(scores: np.ndarray) -> np.ndarray:
    """Probabilities from scores, for each row."""
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


held_out, *training = shardfeed.expand_urls(sys.argv[1:])
start = time.perf_counter()
weights = np.zeros((8 * 8 + 1, 10), np.float32)
samples = 0
with shardfeed.Stream(training, shuffle=1000, shuffle_shards=True, seed=1, decode=DECODE) as stream:
    for _ in range(EPOCHS):
        for batch in stream.batches(64):
            x, labels = inputs(batch["png"]), batch["cls"]
            error = softmax(x @ weights)
            error[np.arange(len(labels)), labels] -= 1
            weights -= RATE * (x.T @ error / len(labels) + DECAY * weights)
            samples += len(batch)
took = time.perf_counter() - start

right = total = 0
with shardfeed.Stream(held_out, decode=DECODE) as stream:
    for batch in stream.batches(256):
        right += int(((inputs(batch["png"]) @ weights).argmax(axis=1) == batch["cls"]).sum())
        total += len(batch)
print(f"trained on {samples} images in {took:.1f} s; {right / total:.3f} of {total} others right")
if right < 0.9 * total:
    sys.exit("that is less than 0.9")
