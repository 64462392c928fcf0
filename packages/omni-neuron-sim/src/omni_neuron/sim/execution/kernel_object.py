"""The base of classes in kernels."""


class NKIObject:
    """The one base class that classes in kernels may have."""
