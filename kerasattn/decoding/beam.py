def decode_beams(*args):
    raise NotImplementedError
