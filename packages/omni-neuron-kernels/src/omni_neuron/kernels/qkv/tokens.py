"""Values: tokens on partitions, as the second product of attention takes them."""

from dataclasses import dataclass
from typing import Any

from omni_neuron.kernels.limits import BANK_COLUMNS, PARTITIONS
from omni_neuron.kernels.nki import nisa, nl
from omni_neuron.kernels.qkv.setting import next_bank, token_tiles


@dataclass
class Tokens(nl.NKIObject):
    """The columns of v: their first, heads of `dim`, where they go, the bias on all partitions or None."""

    column: int
    heads: int
    dim: int
    out: Any  # [heads, T, D]
    bias: Any

    def token_major(self) -> bool:
        return True

    def pieces(self) -> int:
        """A phase makes whole heads."""
        return self.heads

    def at_once(self) -> int:
        return BANK_COLUMNS // self.dim

    def span(self, first: int, count: int) -> tuple[int, int]:
        return self.column + first * self.dim, count * self.dim

    def banks(self, setting: Any, block: int, first: int, count: int) -> list[Any]:
        """One for each tile of tokens."""
        found = []
        for _, rows in token_tiles(setting.blocks[block][1]):
            found.append(next_bank(setting)[0:rows, 0 : count * self.dim])
        return found

    def multiply(self, setting: Any, block: int, step: int, tile: Any, row: int, banks: list[Any]) -> None:
        inputs = setting.transposed[step]
        for start, rows in token_tiles(setting.blocks[block][1]):
            bank = banks[start // PARTITIONS]
            moving = tile[:, row, 0 : bank.shape[1]]
            nisa.nc_matmul(bank, inputs[:, nl.ds(start, rows)], moving, accumulate=step > 0)


def take_tokens(setting: Any, section: Any, block: int, first: int, count: int, banks: list[Any]) -> None:
    """Add the bias to finished values, round them and store them."""
    begin, tokens = setting.blocks[block]
    dim, total = section.dim, section.out.shape[1]
    for start, rows in token_tiles(tokens):
        done = nl.ndarray((rows, count * dim), section.out.dtype)
        bank = banks[start // PARTITIONS]
        if section.bias is None:
            nisa.tensor_copy(done, bank, engine=nisa.engine.vector)
        else:
            shift = section.bias[0:rows, nl.ds(first * dim, count * dim)]
            nisa.tensor_tensor(done, bank, shift, nl.add)
        pattern = [[dim, rows], [total * dim, count], [1, dim]]
        offset = (first * total + begin + start) * dim
        nisa.dma_copy(section.out.ap(pattern, offset=offset), done)
