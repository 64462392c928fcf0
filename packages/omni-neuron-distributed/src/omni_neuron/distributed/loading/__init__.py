"""Weights from safetensors folders, each rank reading only its own bytes."""
