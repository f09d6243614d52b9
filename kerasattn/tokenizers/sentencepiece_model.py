"""Reads what a SentencePiece model file says about its pieces; nothing in it is executed.

The file is a protocol buffer; only the few fields that a tokenizer needs are read. Source:
https://protobuf.dev/programming-guides/encoding/ and the field numbers of
https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
"""

from pathlib import Path

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # types of pieces
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
MAX_SIZE = 256 * 2**20  # bytes; published models have at most 5 MB


def read_model(path):
    """The bytes of a model file.

    Raises:
        ValueError: if there is no such file, or it can't be one.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MAX_SIZE:
            raise ValueError(f"{path} has {size} bytes, too many for a SentencePiece model.")
        return path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"There is no SentencePiece model {path}.") from None
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}.") from None


def read_pieces(model):
    """The (piece, type) of each id of a serialized model.

    Raises:
        ValueError: if the bytes are no SentencePiece model, or a truncated one.
    """
    pieces = []
    try:
        for number, _, value in _fields(model):
            if number == 1:
                fields = {n: v for n, _, v in _fields(value)}
                pieces.append((bytes(fields[1]).decode("utf-8"), fields.get(3, NORMAL)))
    except (IndexError, KeyError, TypeError, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise ValueError(f"This is no whole SentencePiece model: {reason}.") from None
    if not pieces:
        raise ValueError("This is no SentencePiece model: it has no pieces.")
    return pieces


def _fields(data):
    """Yields (number, wire type, value) of a message; a value is an int or a view of bytes."""
    data, place = memoryview(data), 0
    while place < len(data):
        key, place = _varint(data, place)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, place = _varint(data, place)
        elif wire in (BYTES, FIXED64, FIXED32):
            size = {FIXED64: 8, FIXED32: 4}.get(wire)
            if size is None:
                size, place = _varint(data, place)
            if size > len(data) - place:
                raise ValueError(f"it ends at byte {len(data)}, inside of a field")
            value, place = data[place : place + size], place + size
        else:
            raise ValueError(f"byte {place} begins no field")
        yield number, wire, value


def _varint(data, place):
    value = 0
    for shift in range(0, 70, 7):
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
    raise ValueError(f"the number before byte {place} does not end")
