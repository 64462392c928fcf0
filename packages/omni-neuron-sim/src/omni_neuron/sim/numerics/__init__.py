"""Number formats, arithmetic and activation functions of the engines, on numpy arrays."""
