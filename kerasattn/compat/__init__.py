"""Other libraries' names over this one, for people who come from them."""

from kerasattn.compat import bert4keras

__all__ = ["bert4keras"]
