"""Number formats: how each is stored, read into fp32 and written with one rounding.

Floats round to nearest even. What the documentation leaves open is decided here:
  fp32 -> fp8   finite values saturate at the largest finite number; infinities stay where the format has them
  fp32 -> int   nearest even, saturating (documented); NaN becomes 0
  bool          any value but 0 is stored as 1
  denormal      fp32, tf32 and bf16 results below 2^-126 become 0, as is reported of probabilities in bf16
"""

from typing import Any, Literal, Self

import ml_dtypes
import numpy as np
import numpy.typing as npt
import torch

Array = npt.NDArray[Any]
Kind = Literal["float", "int", "bool", "packed"]


class DType(str):
    """A number format of NKI. It is its own name, so kernels can compare and print it."""

    storage: np.dtype[Any]
    itemsize: int
    kind: Kind
    element: "DType | None"  # of a packed format: what four of are packed

    def __new__(cls, name: str, storage: Any, kind: Kind, element: "DType | None" = None) -> Self:
        self = super().__new__(cls, name)
        self.storage = np.dtype(storage)
        self.itemsize = self.storage.itemsize
        self.kind = kind
        self.element = element
        return self

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "bool")

    @property
    def largest(self) -> float:
        """The largest finite number."""
        if self.kind == "float":
            return float(ml_dtypes.finfo(self.storage).max)  # type: ignore[no-untyped-call]
        return 1.0 if self.kind == "bool" else float(np.iinfo(self.storage).max)

    def __repr__(self) -> str:
        return f"nl.{self!s}"


bool_ = DType("bool", np.uint8, "bool")
int8 = DType("int8", np.int8, "int")
uint8 = DType("uint8", np.uint8, "int")
int16 = DType("int16", np.int16, "int")
uint16 = DType("uint16", np.uint16, "int")
int32 = DType("int32", np.int32, "int")
uint32 = DType("uint32", np.uint32, "int")
float32 = DType("float32", np.float32, "float")
tfloat32 = DType("tfloat32", np.float32, "float")
bfloat16 = DType("bfloat16", ml_dtypes.bfloat16, "float")
float16 = DType("float16", np.float16, "float")
float8_e4m3 = DType("float8_e4m3", ml_dtypes.float8_e4m3, "float")
float8_e4m3fn = DType("float8_e4m3fn", ml_dtypes.float8_e4m3fn, "float")
float8_e5m2 = DType("float8_e5m2", ml_dtypes.float8_e5m2, "float")
float8_e8m0fnu = DType("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, "float")
float8_e4m3fn_x4 = DType("float8_e4m3fn_x4", np.uint32, "packed", float8_e4m3fn)
float8_e5m2_x4 = DType("float8_e5m2_x4", np.uint32, "packed", float8_e5m2)
float4_e2m1fn = DType("float4_e2m1fn", ml_dtypes.float4_e2m1fn, "float")
float4_e2m1fn_x4 = DType("float4_e2m1fn_x4", np.uint16, "packed", float4_e2m1fn)

FORMATS: dict[str, DType] = {
    str(dtype): dtype
    for dtype in (
        bool_, int8, uint8, int16, uint16, int32, uint32, float32, tfloat32, bfloat16, float16,
        float8_e4m3, float8_e4m3fn, float8_e5m2, float8_e8m0fnu,
        float8_e4m3fn_x4, float8_e5m2_x4, float4_e2m1fn_x4,
    )
}  # fmt: skip
FP8 = (float8_e4m3, float8_e4m3fn, float8_e5m2)
PE_WIDE = (float32, tfloat32)
EIGHT_EXPONENT_BITS = (float32, tfloat32, bfloat16)
SMALLEST_NORMAL = np.float32(2.0**-126)


def as_dtype(value: Any) -> DType:
    """The format named by an NKI dtype, a string, or a numpy, ml_dtypes or torch dtype.

    Raises TypeError for a format that NKI does not have (float64, int64).
    """
    if isinstance(value, DType):
        return value
    name = value if isinstance(value, str) else _foreign_name(value)
    name = {"bool_": "bool"}.get(name, name)
    if name not in FORMATS:
        raise TypeError(f"NKI has no dtype {name}: use one of {', '.join(FORMATS)}.")
    return FORMATS[name]


def _foreign_name(value: Any) -> str:
    text = str(value)
    if text.startswith("torch."):
        return text.removeprefix("torch.")
    try:
        return str(np.dtype(value).name)
    except TypeError:
        return text


def storage_of(dtype: DType, precise: bool) -> np.dtype[Any]:
    """How elements are kept. In relaxed mode every float but a scale is kept in fp32, without rounding."""
    if precise or not dtype.is_float or dtype is float8_e8m0fnu:
        return dtype.storage
    return np.dtype(np.float32)


def to_float32(stored: Array) -> npt.NDArray[np.float32]:
    """Stored elements as fp32, the format in which the engines compute."""
    if stored.dtype == np.float16:
        return _through_torch(stored, torch.float32)
    return stored if stored.dtype == np.float32 else stored.astype(np.float32)


def _through_torch(values: Array, dtype: torch.dtype) -> Array:
    """Conversions of fp16, which torch vectorises and numpy does not; the rounding is the same."""
    return np.asarray(torch.from_numpy(np.require(values, requirements="W")).to(dtype).numpy())


def encode(
    values: Array, dtype: DType, precise: bool = True, random: np.random.Generator | None = None
) -> Array:
    """Values with the one rounding that a write does, as they are stored.

    Integers (int64 arrays) stay exact on their way to an integer format and saturate there. With `random`
    floats of 8 and 16 bits round up or down by chance.
    """
    storage = storage_of(dtype, precise)
    if dtype.kind == "packed":
        return values.astype(storage, copy=False)
    if dtype.kind == "bool":
        return np.asarray(values != 0, np.uint8)
    if dtype.kind == "int":
        return _to_integer(values, storage)
    wide = values.astype(np.float32, copy=False)
    if precise and dtype in EIGHT_EXPONENT_BITS:
        wide = _flush(wide)
    if storage == np.float32:
        return _round_tfloat32(wide) if precise and dtype is tfloat32 else wide
    if dtype in FP8:
        wide = saturate(wide, dtype)
    if random is not None:
        return _stochastic(wide, storage, random)
    if dtype is float16:
        return _through_torch(wide, torch.float16)
    with np.errstate(over="ignore"):
        return wide.astype(storage)


def _stochastic(wide: Array, storage: np.dtype[Any], random: np.random.Generator) -> Array:
    """One of the two neighbours, each with the probability that makes the result right on average.

    The codes of a float format without its sign are in the order of its numbers. What the nearest number
    would be infinite for, or not a number, stays so.
    """
    size = np.abs(wide).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = wide.astype(storage)
        codes = nearest.view(f"u{storage.itemsize}")
        below = codes - (np.abs(nearest.astype(np.float64)) > size)
        low, high = (
            np.abs(c.astype(codes.dtype).view(storage).astype(np.float64)) for c in (below, below + 1)
        )
        up = random.random(wide.shape) * (high - low) < size - low
        rounded = np.where(np.isfinite(nearest.astype(np.float32)), below + up, codes)
    return rounded.astype(codes.dtype).view(storage)


def _flush(wide: Array) -> Array:
    small = np.abs(wide) < SMALLEST_NORMAL
    return np.where(small, np.float32(0), wide) if small.any() else wide


def saturate(wide: Array, dtype: DType) -> Array:
    """Finite values held to the largest finite number of an fp8 format."""
    limit = np.float32(dtype.largest)
    if dtype is float8_e4m3fn:
        return np.clip(wide, -limit, limit)
    return np.where(np.isfinite(wide), np.clip(wide, -limit, limit), wide)


def _to_integer(values: Array, storage: np.dtype[Any]) -> Array:
    limits = np.iinfo(storage)
    if not np.issubdtype(values.dtype, np.integer):
        values = np.nan_to_num(np.rint(values.astype(np.float64)), nan=0.0, posinf=2.0**40, neginf=-(2.0**40))
    return np.clip(values, limits.min, limits.max).astype(storage)


def _round_tfloat32(wide: Array) -> Array:
    """10 bits of mantissa, nearest even."""
    bits = np.ascontiguousarray(wide).view(np.uint32)
    rounded = (bits + np.uint32(0x0FFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(wide), rounded.view(np.float32), wide)
