import numpy as np

from kerasattn.compat.bert4keras.tokenizer import Tokenizer
from kerasattn.tokenizers.sentencepiece_model import UNKNOWN, read_model, read_pieces


class SpTokenizer(Tokenizer):
    """SentencePiece with bert4keras' arguments and results.

    `SentencePieceTokenizer` is the one for new code: it adds what each family adds, and runs in
    the graph.

    Args:
        sp_model_path: path of the model's file.
        token_start, token_end: pieces around a text, None for none. T5 has None and "</s>".
        pre_tokenize: function of a text to its words, which are put together with spaces.
        token_translate: dict of pieces to put in place of others.

    Raises:
        ValueError: if there is no such file, or it is no SentencePiece model.

    Example:

    >>> from kerasattn.compat.bert4keras import SpTokenizer
    >>> SpTokenizer("spiece.model", token_start=None, token_end="</s>")
    Traceback (most recent call last):
    ValueError: There is no SentencePiece model spiece.model.
    """

    def __init__(
        self,
        sp_model_path,
        token_start="[CLS]",
        token_end="[SEP]",
        pre_tokenize=None,
        token_translate=None,
    ):
        model = read_model(sp_model_path)
        pieces = read_pieces(model)
        kinds = [kind for _, kind in pieces]
        ids = {}
        for i, (piece, _) in enumerate(pieces):
            ids.setdefault(piece, i)
        super().__init__(
            ids,
            token_start=token_start,
            token_end=token_end,
            pre_tokenize=pre_tokenize,
            token_translate=token_translate,
        )
        self._pieces_of_ids = [piece for piece, _ in pieces]
        self._vocab_size = len(pieces)
        self._token_unk = pieces[kinds.index(UNKNOWN)][0]
        self._token_unk_id = kinds.index(UNKNOWN)
        self._token_pad = next((p for p in ("<pad>", "[PAD]") if p in ids), None)
        if self._token_pad is not None:
            self._token_pad_id = ids[self._token_pad]
        self._processors = {}
        self._model = model

    def id_to_token(self, i):
        """The piece of an id, "" of one beyond the model's."""
        return self._pieces_of_ids[i] if i < self._vocab_size else ""

    def decode(self, ids, tokens=None):
        """Ids, or pieces, to a text, of which control pieces are no part."""
        pieces = self.ids_to_tokens(ids) if tokens is None else tokens
        pieces = [self._token_translate_inv.get(piece, piece) for piece in pieces]
        pieces = np.array([piece for piece in pieces if piece], "object")
        return self._processor("string").detokenize(pieces).numpy().decode("utf-8")

    def rematch(self, text, tokens):
        """Not of pieces: see `SentencePieceTokenizer.offsets`."""
        raise NotImplementedError(
            "rematch is for WordPiece. kerasattn.tokenizers.SentencePieceTokenizer has offsets."
        )

    def _tokenize(self, text, pre_tokenize=True):
        if pre_tokenize and self._pre_tokenize is not None:
            text = " ".join(self._pre_tokenize(text))
        pieces = self._processor("string").tokenize(text).numpy()
        return [piece.decode("utf-8") for piece in pieces]

    def _processor(self, dtype):
        import tensorflow as tf
        import tensorflow_text

        if dtype not in self._processors:
            self._processors[dtype] = tensorflow_text.SentencepieceTokenizer(
                self._model, out_type=tf.as_dtype(dtype)
            )
        return self._processors[dtype]
