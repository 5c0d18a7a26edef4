"""Chance that anybody can recompute: a counter and a hash, no state, no library's generator.

A stream belongs to a seed, a name and a purpose. Its key is BLAKE2b-512 of the canonical JSON of
`[seed, name, purpose]`; its block i is BLAKE2b-512, keyed by that, of i as eight big-endian bytes; a block is
eight big-endian 64-bit words. Draw n is word n mod 8 of block n div 8, its upper 53 bits as a fraction.
All of this is fixed for ever: another rule would change what committed specs mean.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct

from generator.structs.values import canonical_json

STEP = 2.0**-53
"""Between neighbouring draws: the finest grid on which doubles below 1 are even."""

_WORDS = Struct(">8Q")
_COUNTER = Struct(">Q")

LONGEST_SORTED = 2**16
"""Up to here a permutation is a sorted list, each as likely as any other; a longer list takes too long."""

_ROUNDS = 6
"""Of mixing in a long permutation: four look random to whoever sees few places; two for good measure."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Endless draws, each found by its number."""

    key: bytes

    def block(self, number: int) -> bytes:
        """Compute 64 bytes, the material of eight draws."""
        return blake2b(_COUNTER.pack(number), key=self.key).digest()

    def words(self, numbers: range) -> list[int]:
        """Draw integers below 2^64 by their numbers, which follow each other."""
        first, last = numbers.start // 8, -(-numbers.stop // 8)
        key = self.key
        found = [
            word
            for number in range(first, last)
            for word in _WORDS.unpack(blake2b(_COUNTER.pack(number), key=key).digest())
        ]
        return found[numbers.start - 8 * first : numbers.stop - 8 * first]

    def uniforms(self, numbers: range) -> list[float]:
        """Draw fractions, 0 included and 1 not, by their numbers, which follow each other."""
        return [(word >> 11) * STEP for word in self.words(numbers)]

    def below(self, number: int, limit: int) -> int:
        """Draw an integer from 0 to limit - 1; a whole block decides, so no value is favoured by 2^-400.

        The block is the number's own: a stream serves either this or the fractions.
        """
        return int.from_bytes(self.block(number), "big") % limit


def stream(seed: int, name: str, *, purpose: str) -> Stream:
    """Find the stream of a seed, of what it is for (a parameter, say), and of the use that is made of it."""
    return Stream(blake2b(canonical_json([seed, name, purpose]).encode()).digest())


def shuffled(chance: Sequence[int]) -> list[int]:
    """Sort the numbers of some words by these; of equal words the first goes first."""
    return sorted(range(len(chance)), key=chance.__getitem__)


def permutation(seed: int, name: str, count: int) -> Callable[[int], int]:
    """Give a bijection of range(count) onto itself, which answers for any position without the others."""
    assert count >= 1
    if count <= LONGEST_SORTED:
        return shuffled(stream(seed, name, purpose="order").words(range(count))).__getitem__
    return _mixing(seed, name, count)


def _mixing(seed: int, name: str, count: int) -> Callable[[int], int]:
    """Mix two halves of a position in turn: a Feistel network on a rectangle barely larger than count."""
    width = math.isqrt(count - 1) + 1
    height = -(-count // width)
    rounds = [stream(seed, name, purpose=f"order-{number}") for number in range(_ROUNDS)]
    pairs = list(zip(rounds[::2], rounds[1::2], strict=True))

    def at(position: int) -> int:
        assert 0 <= position < count
        while True:
            high, low = divmod(position, width)
            for even, odd in pairs:
                low = (low + even.below(high, width)) % width
                high = (high + odd.below(low, height)) % height
            position = high * width + low
            # Outside: walk on along the cycle, which must come back inside, as it began there.
            if position < count:
                return position

    return at
