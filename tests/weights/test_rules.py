"""Templates, transforms and tables."""

import numpy as np
import pytest

from kerasattn.weights import TRANSFORMS, Rule, Table, Transform
from kerasattn.weights.rules import keras_layer, torch_dense, torch_norm


def test_a_template_stands_for_any_number_and_nothing_else():
    rule = Rule("block_{i}/query/kernel", "layer.{i}.self.query.weight", "transpose")
    assert rule.names("block_0/query/kernel") == ("layer.0.self.query.weight",)
    assert rule.names("block_23/query/kernel") == ("layer.23.self.query.weight",)
    for path in ("block_x/query/kernel", "block_0/query/kernel/more", "a/block_0/query/kernel"):
        assert rule.names(path) is None


def test_special_characters_in_a_template_are_themselves():
    assert Rule("a.b+{i}", "x").names("a.b+3") == ("x",)
    assert Rule("a.b+{i}", "x").names("acbb3") is None


def test_two_indices_and_a_repeated_one():
    rule = Rule("group_{g}/inner_{i}/kernel", "groups.{g}.layers.{i}.weight")
    assert rule.names("group_1/inner_20/kernel") == ("groups.1.layers.20.weight",)
    rule = Rule("a_{i}/b_{i}", "ab.{i}")
    assert rule.names("a_3/b_3") == ("ab.3",)
    assert rule.names("a_3/b_4") is None


def test_a_path_template_takes_the_rest():
    assert Rule("{path}", "extra.{path}").names("codes/usage") == ("extra.codes/usage",)


WHOLE = [name for name, transform in TRANSFORMS.items() if transform.part is None]


@pytest.mark.parametrize("name", WHOLE)
def test_transforms_have_inverses(name):
    array = np.arange(3).reshape(1, 3)
    rule = Rule("a", "b", name)
    np.testing.assert_array_equal(rule.save(rule.load(array)), array)


def test_an_unknown_transform_is_named():
    with pytest.raises(ValueError, match=r"'rotate'.*identity, transpose"):
        Rule("a", "b", "rotate")


def test_a_transform_of_ones_own():
    rule = Rule("a", "b", Transform(load=lambda x: x + 1, save=lambda x: x - 1))
    assert rule.load(1) == 2 and rule.save(2) == 1


def test_the_first_rule_counts_and_names_come_in_order():
    table = Table(
        (
            Rule("norm/gamma", "m.norm.weight", aliases=("m.norm.gamma",)),
            Rule("{path}", "m.{path}"),
        ),
        ignored=("m.*.position_ids",),
        prefix="m.",
    )
    names = ("m.norm.weight", "m.norm.gamma", "norm.weight", "norm.gamma")
    assert table.find("norm/gamma") == (table.rules[0], names)
    assert table.find("other")[0] is table.rules[1]
    assert Table(table.rules[:1]).find("other") is None
    assert table.ignores("m.embeddings.position_ids") and table.ignores("embeddings.position_ids")
    assert not table.ignores("m.embeddings.weight")


def test_tables_add_up():
    both = Table((Rule("a", "x"),), ("i",), "p.") + Table((Rule("b", "y"),), ("j",))
    assert [rule.ours for rule in both.rules] == ["a", "b"]
    assert both.ignored == ("i", "j") and both.prefix == "p."


def test_rules_of_common_layers():
    kernel, bias = torch_dense("block_{i}/dense", "layer.{i}.dense")
    assert kernel.names("block_2/dense/kernel") == ("layer.2.dense.weight",)
    assert kernel.transform == "transpose" and bias.transform == "identity"
    gamma, beta = torch_norm("norm", "LayerNorm")
    assert gamma.names("norm/gamma") == ("LayerNorm.weight", "LayerNorm.gamma")
    assert beta.names("norm/beta") == ("LayerNorm.bias", "LayerNorm.beta")
    assert [r.theirs for r in keras_layer("a", "b", "kernel", "bias")] == ["b/kernel", "b/bias"]
