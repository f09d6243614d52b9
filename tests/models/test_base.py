"""What all models share."""

import keras
import numpy as np
import pytest
from keras import ops

from kerasattn import models
from kerasattn.models import T5
from kerasattn.models.base import BaseModel


def array(x):
    return np.asarray(ops.convert_to_numpy(x))


class Counting(BaseModel):
    """Embeds ids, with a dropout that nobody can miss."""

    def __init__(self):
        ids = keras.Input((None,), dtype="int32", name="token_ids")
        other = keras.Input((None,), dtype="int32", name="other", optional=True)
        x = keras.layers.Embedding(5, 400, embeddings_initializer="ones")(ids)
        super().__init__({"token_ids": ids, "other": other}, keras.layers.Dropout(0.5)(x))
        self._id_ranges = {"token_ids": 5}

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return ops.std(y_pred)  # 0 without dropout, 1 with


def test_training_reaches_the_layers():
    """In a call, in fit, and not in evaluate and predict."""
    model, ids = Counting(), np.ones((4, 3), "int32")
    assert array(model(ids)).std() == 0
    assert array(model(ids, training=False)).std() == 0
    assert array(model(ids, training=True)).std() > 0.5
    model.compile(keras.optimizers.SGD(0.0), jit_compile=True)
    assert model.fit(ids, verbose=0).history["loss"][0] > 0.5
    assert model.evaluate(ids, verbose=0) == 0
    assert array(model.predict(ids, verbose=0)).std() == 0
    outer = keras.Input((None,), dtype="int32")
    nested = keras.Model(outer, model(outer))
    assert array(nested(ids, training=True)).std() > 0.5


class Compiled(Counting):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return ops.mean(y_pred)


WRONG = [
    ([[1, 5]], "ids from 0 to 4, got 5"),
    (np.array([[1, -1]]), "ids from 0 to 4, got -1"),
    ({"token_ids": np.array([[1, 2], [3, 7]])}, "ids from 0 to 4, got 7"),
    (np.array([[1.5]]), "takes integers, got the dtype float"),
    ([[1, 2], [1]], "rows are of one length"),
    ([["a"]], "token_ids takes numbers, got <U1"),
    ("a", "token_ids takes numbers, got <U1"),
    ({"other": np.array([[1]])}, r"needs token_ids, got \['other'\] without"),
    (None, "needs token_ids"),
]


@pytest.mark.parametrize("wrong, message", WRONG)
def test_ids_are_checked_before_they_are_tensors(wrong, message):
    """A compiled step reads garbage for an id beyond its table, and says nothing."""
    model = Compiled()
    model.compile("sgd", jit_compile=False)
    for method in (
        model.fit,
        model.evaluate,
        model.predict,
        model.train_on_batch,
        model.test_on_batch,
        model.predict_on_batch,
        lambda ids: model.fit(np.ones((1, 2), "int32"), validation_data=(ids,), verbose=0),
    ):
        with pytest.raises(ValueError, match=message):
            method(wrong)


def test_lists_of_ids_train_as_arrays_do():
    model = Compiled()
    model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
    for ids in ([[1, 2]], {"token_ids": [[1, 2]]}):
        expected = model.evaluate(np.array([[1, 2]]), verbose=0)
        assert model.evaluate(ids, verbose=0) == expected
        assert np.isfinite(model.fit(ids, verbose=0).history["loss"]).all()
        assert model.predict(ids, verbose=0).shape == (1, 2, 400)


def test_a_file_keeps_what_compile_was_told():
    """ "auto" is for the machine that loads to decide."""
    for given, kept in (("auto", "auto"), (False, False), (True, True)):
        model = Compiled()
        model.compile("sgd", jit_compile=given)
        assert model.get_compile_config()["jit_compile"] == kept
        again = Compiled()
        again.compile_from_config(model.get_compile_config())
        assert again.jit_compile == model.jit_compile


def test_hidden_states_are_made_once():
    model = Counting()
    model._hidden = [model.layers[1].output]
    first = model.hidden_states([[1, 2]])
    count = len(model.layers)
    assert model._hidden_model is model._hidden_model
    np.testing.assert_array_equal(array(model.hidden_states([[1, 2]])[0]), array(first[0]))
    assert len(model.layers) == count


def test_inputs():
    model = Counting()
    expected = array(model({"token_ids": np.array([[1, 2]]), "other": None}))
    for inputs in ([[1, 2]], np.array([[1, 2]]), {"token_ids": [[1, 2]]}):
        np.testing.assert_array_equal(array(model(inputs)), expected)
    for wrong, message in (
        ({"tokens": [[1]]}, r"inputs \['token_ids', 'other'\], got also \['tokens'\]"),
        ([[1.7]], "takes integers, got the dtype float"),
        ([[[1]]], r"takes the shape \(None, None\), got \(1, 1, 1\) of rank 3"),
        ([[5]], "ids from 0 to 4, got 5"),
        ([[-1]], "ids from 0 to 4, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            model(wrong)


def test_arrays_beside_tensors():
    model = Counting()
    given = {"token_ids": [[1, 2]], "other": ops.convert_to_tensor([[1, 2]])}
    assert model(given).shape == (1, 2, 400)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="SavedModels are TensorFlow's")
def test_export_of_keras(tmp_path):
    """`check_model` saves in a cheaper way; this is the one that users take."""
    import tensorflow as tf

    model = T5(9, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=6)
    inputs = {"token_ids": [[3, 4, 5], [6, 0, 0]], "decoder_token_ids": [[0, 2], [0, 7]]}
    inputs = {name: tf.constant(ids, tf.int32) for name, ids in inputs.items()}
    signature = {name: tf.TensorSpec([None, None], tf.int32, name=name) for name in inputs}
    model.export(tmp_path, input_signature=[signature], verbose=False)
    loaded = tf.saved_model.load(str(tmp_path))  # the owner of the variables
    found = loaded.serve(inputs)
    for name, expected in model(inputs).items():
        np.testing.assert_allclose(found[name], expected, atol=1e-5)


# === Labels ===
def classifier(**options):
    sizes = dict(num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=6)
    model = models.BERT(30, **sizes, heads=("class",), num_classes=2)
    model.compile("sgd", run_eagerly=True, **options)
    return model


TEXTS, CLASSES = np.full((4, 3), 7), np.array([0, 1, 1, -100])


def from_logits():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-100)


def test_metrics_and_a_loss_of_the_one_output_that_is_trained():
    model = classifier(metrics=["accuracy"])
    own = model.test_on_batch(TEXTS, CLASSES, return_dict=True)
    assert own["accuracy"] in (pytest.approx(1 / 3), pytest.approx(2 / 3))
    by_name = model.test_on_batch(TEXTS, {"class_logits": CLASSES}, return_dict=True)
    assert by_name["loss"] == pytest.approx(own["loss"])
    for loss in (from_logits(), {"class_logits": from_logits()}):
        model.compile("sgd", loss, run_eagerly=True)
        for y in (CLASSES[:3], {"class_logits": CLASSES[:3]}):
            found = model.test_on_batch(TEXTS[:3], y, return_dict=True)
            assert found["loss"] == pytest.approx(own["loss"], rel=1e-5)
        assert found["accuracy"] == pytest.approx(own["accuracy"])
    model.compile("sgd", run_eagerly=True)  # the earlier loss is not kept
    assert model.test_on_batch(TEXTS, CLASSES) == pytest.approx([own["loss"], own["accuracy"]])


def test_a_loss_by_name_of_the_one_output_that_there_is():
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    model = BaseModel({"token_ids": ids}, {"hidden": keras.layers.Embedding(9, 1)(ids)})
    model.compile("sgd", "mse", run_eagerly=True)
    expected = np.mean((array(model(TEXTS)["hidden"]) - 1) ** 2)
    assert model.test_on_batch(TEXTS, np.ones((4, 3, 1))) == pytest.approx(expected, rel=1e-5)


def test_a_loss_of_probabilities_or_of_several_outputs_is_refused():
    with pytest.raises(ValueError, match="class_logits are logits, and loss='sparse_categ"):
        classifier(loss="sparse_categorical_crossentropy")
    model = models.BERT(30, 1, 2, 8, 6, heads=("mlm", "nsp"))
    with pytest.raises(ValueError, match="give metrics as a dict by their names"):
        model.compile(metrics=["accuracy"])


@pytest.mark.parametrize("bad", [CLASSES + 1, CLASSES.tolist()[:3] + [-1], np.array(list("abcd"))])
def test_labels_that_no_class_has_are_refused(bad):
    model = classifier()
    wanted = "y of class_logits takes ids from 0 to 1|Labels of class_logits are numbers"
    for y in (bad, {"class_logits": bad}):
        for method in (model.fit, model.evaluate, model.train_on_batch, model.test_on_batch):
            with pytest.raises(ValueError, match=wanted):
                method(TEXTS, y)
    with pytest.raises(ValueError, match=wanted):
        model.fit(TEXTS, CLASSES, validation_data=(TEXTS, bad))


def test_tags_that_do_not_exist_are_refused_where_there_are_tokens():
    model = models.BiLSTMCRF(30, num_tags=3, embedding_dim=4, hidden_dim=4)
    model.compile("sgd", run_eagerly=True)
    texts, tags = np.array([[7, 8, 0]]), np.array([[0, 2, 99]])
    assert np.isfinite(model.test_on_batch(texts, tags))
    with pytest.raises(ValueError, match="y takes ids from 0 to 2, got 99"):
        model.train_on_batch(texts, tags[:, ::-1])
