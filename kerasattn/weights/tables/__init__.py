"""The tables themselves, one file a family: names of tensors and sizes, no Python classes."""
