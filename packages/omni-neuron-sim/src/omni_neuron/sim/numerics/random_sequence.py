"""A sequence of random numbers whose state is four words, so that kernels can keep it and go back to it."""

from collections.abc import Sequence

import numpy as np

WORDS = 4
_WORD = 32


class RandomSequence:
    """Instruction n of the sequence draws from Philox under `key`, at a distance of 2^64 n blocks."""

    def __init__(self, key: int) -> None:
        self.key = key % 2**64
        self.step = 0

    def next(self) -> np.random.Generator:
        """The numbers of one instruction."""
        generator = np.random.Generator(np.random.Philox(key=self.key, counter=self.step << 64))
        self.step += 1
        return generator

    @property
    def words(self) -> list[int]:
        """The state: key and step, low words first."""
        return [value >> shift & 0xFFFFFFFF for value in (self.key, self.step) for shift in (0, _WORD)]

    @words.setter
    def words(self, state: Sequence[int]) -> None:
        low_key, high_key, low_step, high_step = state
        self.key, self.step = low_key | high_key << _WORD, low_step | high_step << _WORD
