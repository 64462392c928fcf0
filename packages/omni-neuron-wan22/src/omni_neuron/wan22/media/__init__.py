"""Videos and pictures on disk."""
