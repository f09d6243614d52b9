"""Tables of rules: which tensor of a foreign checkpoint belongs to which of our variables.

A rule is one row, and the same row loads and saves:

    Rule("block_{i}/self_attention/query/kernel",
         "roformer.encoder.layer.{i}.attention.self.query.weight", "transpose")

In a template `{i}` (or any other name in braces) stands for a number, the same on both sides, and
`{path}` for any text. The first rule that matches a variable's path counts.
"""

import dataclasses
import fnmatch
import functools
import re
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass(frozen=True)
class Transform:
    """How a foreign array becomes ours, and how ours becomes it again.

    Args:
        load: a function from the foreign numpy array to ours.
        save: its inverse.
        part: int or None, which part of the foreign tensor ours is. Parts of one tensor have the
            same name, and are saved joined.
        axis: int, along which axis of the foreign tensor.

    Example:
    >>> import numpy as np
    >>> from kerasattn.weights import Rule, Transform
    >>> halved = Transform(load=lambda array: array / 2, save=lambda array: array * 2)
    >>> Rule("scale", "layer.scale", halved).load(np.array([4.0])).tolist()
    [2.0]
    """

    load: Callable
    save: Callable
    part: int | None = None
    axis: int = -1


def part(index, count):
    """Ours is one of `count` equal parts along the foreign tensor's last axis."""
    return Transform(
        load=lambda array: np.split(array, count, axis=-1)[index],
        save=lambda array: array,
        part=index,
    )


def row(i):
    """Ours is number i along the first axis of a tensor that has those of all layers."""
    return Transform(load=lambda array: array[i], save=lambda array: array[None], part=i, axis=0)


# Add to it by name; a rule also takes a Transform itself, for one that needs numbers of its own.
TRANSFORMS = {
    "identity": Transform(load=lambda array: array, save=lambda array: array),
    "transpose": Transform(load=lambda array: array.T, save=lambda array: array.T),
    "squeeze": Transform(load=lambda array: np.squeeze(array, 0), save=lambda array: array[None]),
    "query_of_3": part(0, 3),  # queries, keys and values in one tensor
    "key_of_3": part(1, 3),
    "value_of_3": part(2, 3),
}


@functools.cache
def _pattern(template):
    """The regular expression that a template stands for."""
    pattern = ""
    seen = set()
    for text, name in re.findall(r"([^{}]*)(?:\{(\w+)\})?", template):
        pattern += re.escape(text)
        if name:
            kind = ".+" if name == "path" else r"\d+"
            pattern += f"(?P={name})" if name in seen else f"(?P<{name}>{kind})"
            seen.add(name)
    return re.compile(pattern)


@dataclasses.dataclass(frozen=True)
class Rule:
    """One row of a table.

    Args:
        ours: template of the path of a variable in the model.
        theirs: template of the name of the tensor in the file, the one that is written.
        transform: a name in `TRANSFORMS`, a `Transform`, or a function that makes one of the
            numbers in our path, as `row` does of `i`.
        aliases: templates of other names under which files hold the same tensor: legacy names and
            tied duplicates. Any one of the names is enough; if several are there, they must agree.

    Example:
    >>> from kerasattn.weights import Rule
    >>> rule = Rule("block_{i}/norm/gamma", "layer.{i}.norm.weight", aliases=("layer.{i}.norm.g",))
    >>> rule.names("block_11/norm/gamma")
    ('layer.11.norm.weight', 'layer.11.norm.g')
    >>> rule.names("block_11/norm/beta") is None
    True
    """

    ours: str
    theirs: str
    transform: str | Transform | Callable = "identity"
    aliases: tuple = ()

    def __post_init__(self):
        if isinstance(self.transform, str) and self.transform not in TRANSFORMS:
            raise ValueError(
                f"The rule for {self.ours} names the transform {self.transform!r}; there are "
                f"{', '.join(TRANSFORMS)}. Give a Transform or add it to weights.TRANSFORMS."
            )

    def names(self, path):
        """The names that a variable's tensor may have, the written one first; None if no match."""
        match = _pattern(self.ours).fullmatch(path)
        if match is None:
            return None
        numbers = match.groupdict()
        return tuple(template.format(**numbers) for template in (self.theirs, *self.aliases))

    def path(self, name):
        """The path of the one variable that a foreign tensor belongs to; None if there is none."""
        for template in (self.theirs, *self.aliases):
            match = _pattern(template).fullmatch(name)
            if match and _pattern(self.ours).groupindex.keys() <= match.groupdict().keys():
                return self.ours.format(**match.groupdict())
        return None

    def at(self, path):
        """The rule with the transform that a variable's path asks for."""
        if isinstance(self.transform, (str, Transform)):
            return self
        numbers = _pattern(self.ours).fullmatch(path).groupdict()
        transform = self.transform(**{name: int(number) for name, number in numbers.items()})
        return dataclasses.replace(self, transform=transform)

    def load(self, array):
        """The foreign tensor as our variable holds it."""
        return self._transform.load(array)

    def save(self, array):
        """Our variable's value as the foreign tensor holds it."""
        return self._transform.save(array)

    @property
    def part(self):
        """Which part of the foreign tensor ours is; None for the whole of it."""
        return self._transform.part

    @property
    def axis(self):
        """Along which axis of the foreign tensor parts are joined."""
        return self._transform.axis

    @property
    def _transform(self):
        return TRANSFORMS.get(self.transform, self.transform)


@dataclasses.dataclass(frozen=True)
class Table:
    """The rules of one family in one format.

    Args:
        rules: tuple of `Rule`.
        ignored: tuple of shell patterns, of tensors in the file that hold nothing of ours: buffers,
            optimizer slots, heads that we do not have.
        prefix: text that some files leave out at the start of every name, such as "roformer." in
            one saved from the bare encoder.

    Example:
    >>> from kerasattn.weights import Rule, Table
    >>> table = Table((Rule("embedding", "wte.weight"),), ignored=("*.attn.bias",))
    >>> table.find("embedding")[1]
    ('wte.weight',)
    >>> table.ignores("h.0.attn.bias")
    True
    """

    rules: tuple
    ignored: tuple = ()
    prefix: str = ""

    def __add__(self, other):
        """The rules of both, those of the left first."""
        return Table(
            self.rules + other.rules, self.ignored + other.ignored, self.prefix or other.prefix
        )

    def without_prefix(self):
        """The table of a bare encoder's files, whose names leave the prefix out."""
        rules = tuple(
            dataclasses.replace(rule, theirs=rule.theirs.removeprefix(self.prefix))
            for rule in self.rules
        )
        return dataclasses.replace(self, rules=rules)

    def find(self, path):
        """The rule for a variable's path and the names that its tensor may have, or None."""
        for rule in self.rules:
            names = rule.names(path)
            if names:
                return rule.at(path), names + self._bare(names)
        return None

    def ignores(self, name):
        """Whether a foreign tensor of this name is none of the model's."""
        return any(fnmatch.fnmatchcase(name, p) for p in self.ignored + self._bare(self.ignored))

    def owners(self, name):
        """The paths of all variables that a foreign tensor of this name may belong to."""
        paths = (rule.path(n) for rule in self.rules for n in (name, self.prefix + name))
        return tuple(dict.fromkeys(path for path in paths if path))

    def _bare(self, names):
        """Those names that begin with the prefix, without it."""
        if not self.prefix:
            return ()
        return tuple(n.removeprefix(self.prefix) for n in names if n.startswith(self.prefix))


def torch_dense(ours, theirs):
    """The two rules of a dense layer that PyTorch saved: weight (out, in) and bias."""
    return (
        Rule(f"{ours}/kernel", f"{theirs}.weight", "transpose"),
        Rule(f"{ours}/bias", f"{theirs}.bias"),
    )


def torch_norm(ours, theirs):
    """The two rules of a layer normalization that PyTorch saved, also with its names of 2018."""
    return (
        Rule(f"{ours}/gamma", f"{theirs}.weight", aliases=(f"{theirs}.gamma",)),
        Rule(f"{ours}/beta", f"{theirs}.bias", aliases=(f"{theirs}.beta",)),
    )


def keras_layer(ours, theirs, *attributes):
    """Rules for attributes that are called and laid out as ours: kernel, bias, gamma, beta."""
    return tuple(Rule(f"{ours}/{name}", f"{theirs}/{name}") for name in attributes)
