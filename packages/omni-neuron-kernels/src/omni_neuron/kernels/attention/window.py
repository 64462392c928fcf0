"""How far a row's largest score may lie from the number that the kernel subtracts from all of its scores.

A softmax does not change when every score of a row is shifted alike, and bfloat16 has the exponents of
float32: exp(s - c) keeps its relative precision wherever it is a normal number, near 1 or not. So `c` need
not be the row's maximum. It must be near enough that nothing overflows and that what falls below the
smallest normal number, and is flushed to zero, does not matter. Inside that window one `c` serves a whole
block of queries, and no instruction has to subtract a number per row.

Two more facts make this exact instead of likely:

* A row's maximum lies between two numbers that are known before any score is. For a block of keys with mean
  `m` and all keys within `r` of it, every score of query q is at most `q.m + |q| r` (Cauchy and Schwarz), and
  the largest is at least their mean, `q.m`. Offsets that all keys share drop out of the difference, which is
  `|q| r`, where a bound `|q| max|k|` would count them in full. What rounding does to `m` and `q.m` is at most
  `|q| (|m| + r)` DOUBT, which both bounds grant: offsets too large for float32 lead out of the window.
* `c` is a whole number of octaves, n ln 2. Then exp(s - c) = exp(s) / 2^n: its rounding to bfloat16 is the
  same for every n, so results do not depend on which `c` a kernel, a rank or a path chose.

Heads with a block of queries outside the window take the path that follows the maximum of each row.

What is taken for granted: no |q| |k| scale of keys that count beyond 4.6e7 nats (2^26 octaves), where float32
knows a score to no better than a few nats; values that matter between e^-16 and e^16 in size (or zero), in
heads that fill the window; and a hardware whose exponential keeps its relative precision over the window.
"""

import math

KEY_BLOCK = 2048  # keys that are streamed together and share one mean
QUERY_BLOCK = 512  # queries that share one shift: what one PSUM bank holds of their scores

OCTAVE = math.log(2.0)
LEAST, MOST = -126, 128  # octaves that a normal number of float32, and of bfloat16, spans
# Octaves below a row's result that may be flushed: 2^-13 is a thirteenth of one bfloat16 rounding (1.66e-3),
# so that the two roundings of the output grow by less than 0.3 %.
LOST = 13
# Weights times values neither overflow nor are flushed for values from e^-16 to e^16, about 1.1e-7 to 8.9e6.
# For values near 1, float32 ones too, what is flushed weighs nothing: 2^-36.
VALUE_NATS = 16.0
# The shift is rounded to a whole octave: by half of one, or by a whole one where a conversion truncates.
MARGIN_NATS = 1.0
# Relative to |q| |k|: float32 sums of up to 2,048 keys may err by 2^-13 in any order, products with two
# bfloat16 halves of the mean by 2^-18, their sums by 2^-17.
DOUBT = 2.0**-12


def octaves_of(count: int) -> int:
    """The first n with 2^n at least `count`. (Kernels are traced, and a tracer knows no logarithm.)"""
    octaves, reached = 0, 1
    while reached < count:
        octaves, reached = octaves + 1, 2 * reached
    return octaves


def below(keys: int) -> float:
    """Nats that a row's largest score may lie below the shift: S terms, times values, may be flushed."""
    return (-LEAST - LOST - octaves_of(keys)) * OCTAVE - VALUE_NATS - MARGIN_NATS


def above(keys: int) -> float:
    """Nats that it may lie above: S terms of that size, times values, are still finite."""
    return (MOST - octaves_of(keys)) * OCTAVE - VALUE_NATS - MARGIN_NATS


def width(keys: int) -> float:
    """Nats between the least lower and the greatest upper bound of a block that one shift serves."""
    return below(keys) + above(keys)
