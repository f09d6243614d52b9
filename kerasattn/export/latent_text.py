"""A SavedModel that turns strings into latents and latents into strings."""

from kerasattn import decoding
from kerasattn.export.saving import draw_uniforms, make_folder, save_functions


def export_latent_text(model, folder, strategy=None):
    """Writes a SavedModel with the functions and signatures `encode` and `decode`.

    It holds the tokenizer, needs only `tensorflow` and `tensorflow_text` to be imported where it
    is loaded, and takes batches of any size:

        encode(text: string (batch,)) -> latents: float32 (batch, num_latent_layers, latent_dim)
        decode(latents) -> text: string (batch,)
        decode(latents, lengths: int32 (batch,)) for a model of length="conditioned", in tokens
            with [CLS] and [SEP]

    With `Sampling`, `decode` takes another input behind them, seed: int32 (), by which row i draws
    what it draws in any batch.

    Args:
        model: a `UniVAE` with a tokenizer, or a model with its methods.
        folder: path of the folder to write; what it holds of an older SavedModel is replaced.
        strategy: `decoding.Greedy()` (the default), `Sampling(...)`, `Contrastive(...)` or
            `Beam(...)` with its one best sentence.

    Raises:
        ValueError: if the model has no tokenizer, the strategy gives several sentences, or the
            folder can't be written.

    Example:
    >>> import tempfile
    >>> import keras, pytest
    >>> if keras.backend.backend() != "tensorflow":
    ...     pytest.skip("SavedModels need TensorFlow")
    >>> import tensorflow as tf
    >>> from kerasattn.export import export_latent_text
    >>> from kerasattn.models import UniVAE
    >>> from kerasattn.tokenizers import CharacterTokenizer
    >>> tokenizer = CharacterTokenizer.build(["今日好熱", "今日落雨"])
    >>> model = UniVAE(tokenizer.vocabulary_size, num_layers=2, num_heads=2, hidden_dim=8,
    ...                intermediate_dim=8, num_latent_layers=1, latent_dim=4, max_length=8,
    ...                tokenizer=tokenizer)
    >>> folder = tempfile.mkdtemp()
    >>> export_latent_text(model, folder)
    >>> loaded = tf.saved_model.load(folder)
    >>> latents = loaded.encode(tf.constant(["今日好熱", "落雨"]))
    >>> latents.shape, loaded.decode(latents).shape
    (TensorShape([2, 1, 4]), TensorShape([2]))
    >>> sorted(loaded.signatures)
    ['decode', 'encode']
    """
    import tensorflow as tf

    tokenizer, strategy = model.tokenizer, decoding.strategies.as_strategy(strategy)
    if tokenizer is None:
        raise ValueError("Strings need a tokenizer: build the model with tokenizer=...")
    if getattr(strategy, "num_return", 1) != 1:
        raise ValueError(f"This SavedModel gives one sentence a latent, got {strategy}.")
    folder = make_folder(folder)
    decoder = decoding.decoder.as_decoder(model)

    def encode(text):
        token_ids = tokenizer.encode_tensor(text, model.max_length)  # (batch, max_length)
        return model.encoder(token_ids, training=False)

    def decode(latents, lengths=None, seed=None):
        if lengths is None:
            lengths = tf.fill([tf.shape(latents)[0]], model.max_length)
        start_ids = tf.fill([tf.shape(latents)[0]], model.cls_id)  # (batch,)
        request = decoding.make_request(
            strategy,
            start_ids=start_ids,
            max_new_tokens=model.max_length - 1,
            end_ids=[model.sep_id],
            pad_id=model.pad_id,
            banned_ids=model._banned_ids(),
        )
        if seed is not None:
            batch = tf.shape(latents)[0]
            request["uniforms"] = draw_uniforms(seed, batch, model.max_length - 1)
        inputs = {"latents": latents, "start": lengths}
        token_ids = strategy.decode(decoder, inputs, request, model.max_length - 1)[0]
        return tokenizer.detokenize(token_ids)

    text = tf.TensorSpec([None], tf.string, name="text")
    specs = [tf.TensorSpec([None, *model.latent_shape], tf.float32, name="latents")]
    write = decode
    if model.length == "conditioned":
        specs.append(tf.TensorSpec([None], tf.int32, name="lengths"))
    else:
        write = lambda latents, seed=None: decode(latents, seed=seed)
    if strategy.needs_uniforms:
        specs.append(tf.TensorSpec([], tf.int32, name="seed"))
    functions = {"encode": (encode, [text], "latents"), "decode": (write, specs, "text")}
    save_functions(model, folder, functions)
