"""Checkpoints in the diffusers folder layout: reading, and building tiny ones."""
