"""All kernels, by name."""

from omni_neuron.kernels.adaln.spec import ADALN
from omni_neuron.kernels.attention.spec import FLASH_ATTENTION, RING_ATTENTION
from omni_neuron.kernels.causal_conv3d.spec import CAUSAL_CONV3D
from omni_neuron.kernels.mlp.spec import MLP
from omni_neuron.kernels.output_projection.spec import OUTPUT_PROJECTION
from omni_neuron.kernels.qkv.spec import QKV
from omni_neuron.kernels.rms_norm.spec import RMS_NORM
from omni_neuron.kernels.spec import KernelSpec

KERNELS: dict[str, KernelSpec] = {
    spec.name: spec
    for spec in (
        ADALN,
        CAUSAL_CONV3D,
        FLASH_ATTENTION,
        MLP,
        OUTPUT_PROJECTION,
        QKV,
        RING_ATTENTION,
        RMS_NORM,
    )
}
