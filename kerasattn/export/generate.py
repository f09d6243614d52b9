"""A SavedModel that turns a batch of strings into what a model writes for them."""

from kerasattn import decoding
from kerasattn.decoding import checks
from kerasattn.decoding.decoder import as_decoder
from kerasattn.export.saving import draw_uniforms, make_folder, save_functions
from kerasattn.models.language_model import LanguageModel
from kerasattn.models.writing import Writing, writing_options


def export_generate(
    model,
    tokenizer,
    strategy,
    folder,
    max_length=64,
    max_new_tokens=32,
    end_id=None,
    stop=(),
    processors=(),
    banned=(),
    forced=None,
    min_new_tokens=0,
):
    """Writes a SavedModel with the function and signature `generate`.

    It holds the tokenizer, needs only `tensorflow` and `tensorflow_text` to be imported where it
    is loaded, and takes batches of any size:

        generate(text: string (batch,)) -> {"text": string (batch,), "scores": float32 (batch,)}

    with a second axis of num_return for `Beam(num_return=n)`. For `Sampling` there is a second
    input, seed: int32 (), by which row i draws what it draws in any batch (and not what
    `generate(seed=...)` draws).

    A language model goes on behind the text, as the tokenizer encodes it but for the end token; an
    encoder-decoder, or an encoder with application="unilm", reads it with that.

    Args:
        model: a model with `generate`: a language model, an encoder-decoder, an encoder that
            writes.
        tokenizer: an object of `kerasattn.tokenizers` that runs in the graph.
        strategy: `decoding.Greedy()`, `Sampling(...)`, `Beam(...)`, `Contrastive(...)`; None for
            greedy.
        folder: path of the folder to write; what it holds of an older SavedModel is replaced.
        max_length: int >= 1, the tokens that are read, special ones too; longer texts are cut.
        max_new_tokens: int >= 1.
        end_id: as that of `decoding.generate`; by default the model's, else the tokenizer's.
        stop, processors, banned, forced, min_new_tokens: as those of `decoding.generate`, for all
            rows alike.

    Raises:
        ValueError: if the tokenizer calls Python, the model has no positions for so many tokens, or
            the folder can't be written.

    Example:
    >>> import tempfile
    >>> import keras, pytest
    >>> if keras.backend.backend() != "tensorflow":
    ...     pytest.skip("SavedModels need TensorFlow")
    >>> import tensorflow as tf
    >>> from kerasattn import decoding
    >>> from kerasattn.export import export_generate
    >>> from kerasattn.models import GPT2
    >>> from kerasattn.tokenizers import CharacterTokenizer
    >>> tokenizer = CharacterTokenizer.build(["今日好熱", "今日落雨"])
    >>> model = GPT2(tokenizer.vocabulary_size, num_layers=1, num_heads=2, hidden_dim=8,
    ...              intermediate_dim=8, pad_id=0)
    >>> folder = tempfile.mkdtemp()
    >>> export_generate(model, tokenizer, decoding.Greedy(), folder, 8, max_new_tokens=4)
    >>> loaded = tf.saved_model.load(folder)
    >>> found = loaded.generate(tf.constant(["今日", "落雨"]))
    >>> found["text"].shape, found["scores"].shape
    (TensorShape([2]), TensorShape([2]))
    """
    import tensorflow as tf

    strategy = decoding.strategies.as_strategy(strategy)
    for name, value in (("max_length", max_length), ("max_new_tokens", max_new_tokens)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}.")
    model.check_writes(max_length, strategy, max_new_tokens)
    folder = make_folder(folder)
    decoder, vocabulary_size = as_decoder(model), model.vocabulary_size
    ends = [model.end_id, tokenizer.end_id] if end_id is None else [end_id]
    end_id = next((one for one in ends if one is not None), None)
    unknown = range(len(tokenizer.vocabulary), vocabulary_size)  # that it could not tell
    options = dict(
        end_ids=checks.ids("end_id", [] if end_id is None else end_id, vocabulary_size),
        pad_id=writing_options(model, {"end_id": end_id})["pad_id"],
        stop_ids=checks.stop_ids(stop, 1, vocabulary_size),
        processors=checks.processors(processors),
        banned_ids=checks.ids("banned", [*banned, *unknown], vocabulary_size),
        forced_ids=checks.forced_ids(forced, 1, vocabulary_size),
        min_new_tokens=checks.count("min_new_tokens", min_new_tokens),
    )
    # What a text without a token starts from; there may be several ends.
    fallback = [model.start_id, *options["end_ids"].tolist(), 0]
    fallback = next(one for one in fallback if one is not None)

    def generate(text, seed=None):
        token_ids = tokenizer.encode_tensor(text, max_length)  # (batch, max_length)
        real = token_ids != tokenizer.pad_id
        history = None
        if isinstance(model, Writing):
            if isinstance(model, LanguageModel) and tokenizer.end_id is not None:
                real &= token_ids != tokenizer.end_id
            order = tf.argsort(tf.cast(real, "int32"), axis=1, stable=True)  # padding first
            token_ids, real = (tf.gather(x, order, batch_dims=1) for x in (token_ids, real))
            last = tf.where(real[:, -1:], token_ids[:, -1:], fallback)
            token_ids = tf.concat([token_ids[:, :-1], last], axis=1)
            real = tf.concat([real[:, :-1], tf.ones_like(real[:, :1])], axis=1)
            history = tf.where(real, token_ids, -1)
        inputs, start_ids = model.writing_inputs(token_ids, real)
        request = decoding.make_request(
            strategy,
            start_ids=start_ids,
            max_new_tokens=max_new_tokens,
            history=history,
            **options,
        )
        if seed is not None:
            request["uniforms"] = draw_uniforms(seed, tf.shape(text)[0], max_new_tokens)
        found, scores, _ = strategy.decode(
            decoder, inputs, request, max_new_tokens, options["processors"]
        )
        texts = tokenizer.detokenize(tf.reshape(found, (-1, max_new_tokens)))
        return {"text": tf.reshape(texts, tf.shape(scores)), "scores": scores}

    specs = [tf.TensorSpec([None], tf.string, name="text")]
    if strategy.needs_uniforms:
        specs.append(tf.TensorSpec([], tf.int32, name="seed"))
    save_functions(model, folder, {"generate": (generate, specs, None)})
