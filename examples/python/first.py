"""Streams shards and prints each sample's key and fields.

python first.py 'train-{000..003}.tar'
"""

import sys

import shardfeed

with shardfeed.Stream(sys.argv[1:]) as stream:
    for sample in stream:
        print(sample.key, *(f"{name}:{len(data)}" for name, data in sample.items()))
