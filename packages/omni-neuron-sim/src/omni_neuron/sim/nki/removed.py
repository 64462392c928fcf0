"""Names of older NKI that 0.6 no longer has, each with what to write instead."""

NKI = {
    "baremetal": "a call of the kernel",
    "benchmark": "nki.simulator.profile",
    "profile": "nki.simulator.profile",
    "simulate_kernel": "nki.simulate(kernel)(...)",
    "trace": "nki.jit",
}
LANGUAGE = {
    "arange": "slices, nl.ds or .ap",
    "mgrid": "slices, nl.ds or .ap",
    "par_dim": "the number alone: dimension 0 of a tile is the partition",
    "spmd_dim": "one number as grid, kernel[2]",
    "nc": "one number as grid, kernel[2]",
    "fp32_min": "nl.fp32.min",
}
ISA = {
    "tensor_copy_dynamic_src": "tensor_copy with .ap(scalar_offset=...)",
    "tensor_copy_dynamic_dst": "tensor_copy with .ap(scalar_offset=...)",
    "local_collective": "nki.collectives",
}
KEYWORDS = {
    "dst_rmw_op": "nisa.dma_compute",
    "imm": "src",
    "mask": "slices of the extents that are valid",
    "num_channels": "channel_ids",
    "use_gpsimd_dma": "dma_engine=nisa.dma_engine.gpsimd_dma",
}


def misfit(error: Exception) -> str:
    """Why a call does not fit its instruction, with what took the place of an older keyword."""
    old = [name for name in KEYWORDS if f"unexpected keyword argument {name!r}" in str(error)]
    return f"its arguments do not fit: {error}" + (f"; use {KEYWORDS[old[0]]}" if old else "")


def missing(module: str, name: str, removed: dict[str, str]) -> AttributeError:
    """The error for a name that a module does not have."""
    hint = f": use {removed[name]}" if name in removed else ""
    return AttributeError(f"{module} has no {name!r}{hint}")
