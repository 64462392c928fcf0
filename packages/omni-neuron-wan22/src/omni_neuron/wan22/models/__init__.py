"""Wan2.2 in torch, written as a paper would describe it."""
