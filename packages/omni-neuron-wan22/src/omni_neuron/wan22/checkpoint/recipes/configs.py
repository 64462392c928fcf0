"""The JSON files of a checkpoint, with the fields of the published Wan2.2-T2V-A14B."""

from typing import Any

from omni_neuron.wan22.checkpoint.recipes.geometry import (
    FREQ_DIM,
    LATENT_CHANNELS,
    PATCH_SIZE,
    RELATIVE_BUCKETS,
    VAE_RES_BLOCKS,
    VAE_TEMPORAL,
    VAE_WIDTHS,
    TinyGeometry,
)
from omni_neuron.wan22.models.vae_config import WanVAEConfig

DIFFUSERS_VERSION = "0.35.0.dev0"


def model_index(geometry: TinyGeometry) -> dict[str, Any]:
    """``model_index.json``."""
    transformer = ["diffusers", "WanTransformer3DModel"]
    return {
        "_class_name": "WanPipeline",
        "_diffusers_version": DIFFUSERS_VERSION,
        "boundary_ratio": geometry.boundary_ratio if geometry.two_experts else None,
        "scheduler": ["diffusers", "UniPCMultistepScheduler"],
        "text_encoder": ["transformers", "UMT5EncoderModel"],
        "tokenizer": ["transformers", "T5TokenizerFast"],
        "transformer": transformer,
        "transformer_2": transformer if geometry.two_experts else [None, None],
        "vae": ["diffusers", "AutoencoderKLWan"],
    }


def transformer_config(geometry: TinyGeometry) -> dict[str, Any]:
    """``transformer/config.json``."""
    return {
        "_class_name": "WanTransformer3DModel",
        "_diffusers_version": DIFFUSERS_VERSION,
        "added_kv_proj_dim": None,
        "attention_head_dim": geometry.attention_head_dim,
        "cross_attn_norm": True,
        "eps": 1e-6,
        "ffn_dim": geometry.ffn_dim,
        "freq_dim": FREQ_DIM,
        "image_dim": None,
        "in_channels": LATENT_CHANNELS,
        "num_attention_heads": geometry.num_attention_heads,
        "num_layers": geometry.num_layers,
        "out_channels": LATENT_CHANNELS,
        "patch_size": list(PATCH_SIZE),
        "pos_embed_seq_len": None,
        "qk_norm": "rms_norm_across_heads",
        "rope_max_seq_len": 1024,
        "text_dim": geometry.text_dim,
    }


def vae_config(geometry: TinyGeometry) -> dict[str, Any]:
    """``vae/config.json``; the latents are normalised as in the published VAE."""
    return {
        "_class_name": "AutoencoderKLWan",
        "_diffusers_version": DIFFUSERS_VERSION,
        "attn_scales": [],
        "base_dim": geometry.vae_base_dim,
        "dim_mult": list(VAE_WIDTHS),
        "dropout": 0.0,
        "latents_mean": list(WanVAEConfig.latents_mean),
        "latents_std": list(WanVAEConfig.latents_std),
        "num_res_blocks": VAE_RES_BLOCKS,
        "temperal_downsample": list(VAE_TEMPORAL),
        "z_dim": LATENT_CHANNELS,
    }


def text_encoder_config(geometry: TinyGeometry, vocab_size: int) -> dict[str, Any]:
    """``text_encoder/config.json``."""
    return {
        "architectures": ["UMT5EncoderModel"],
        "d_ff": geometry.text_ffn_dim,
        "d_kv": geometry.text_dim // geometry.text_heads,
        "d_model": geometry.text_dim,
        "decoder_start_token_id": 0,
        "dense_act_fn": "gelu_new",
        "dropout_rate": 0.1,
        "eos_token_id": 1,
        "feed_forward_proj": "gated-gelu",
        "initializer_factor": 1.0,
        "is_encoder_decoder": True,
        "is_gated_act": True,
        "layer_norm_epsilon": 1e-6,
        "model_type": "umt5",
        "num_decoder_layers": geometry.text_layers,
        "num_heads": geometry.text_heads,
        "num_layers": geometry.text_layers,
        "output_past": True,
        "pad_token_id": 0,
        "relative_attention_max_distance": 128,
        "relative_attention_num_buckets": RELATIVE_BUCKETS,
        "scalable_attention": True,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "use_cache": True,
        "vocab_size": vocab_size,
    }


def scheduler_config() -> dict[str, Any]:
    """``scheduler/scheduler_config.json``."""
    return {
        "_class_name": "UniPCMultistepScheduler",
        "_diffusers_version": DIFFUSERS_VERSION,
        "beta_end": 0.02,
        "beta_schedule": "linear",
        "beta_start": 0.0001,
        "disable_corrector": [],
        "dynamic_thresholding_ratio": 0.995,
        "final_sigmas_type": "zero",
        "flow_shift": 3.0,
        "lower_order_final": True,
        "num_train_timesteps": 1000,
        "predict_x0": True,
        "prediction_type": "flow_prediction",
        "rescale_betas_zero_snr": False,
        "sample_max_value": 1.0,
        "solver_order": 2,
        "solver_p": None,
        "solver_type": "bh2",
        "steps_offset": 0,
        "thresholding": False,
        "time_shift_type": "exponential",
        "timestep_spacing": "linspace",
        "trained_betas": None,
        "use_beta_sigmas": False,
        "use_dynamic_shifting": False,
        "use_exponential_sigmas": False,
        "use_flow_sigmas": True,
        "use_karras_sigmas": False,
    }
