import keras

from kerasattn.layers.crf import CRF


@keras.saving.register_keras_serializable(package="kerasattn")
class MaximumEntropyMarkovModel(CRF):
    """A chain whose every step is a distribution of the next tag, given the tag before.

    As `CRF`, but each row of the potentials is normalized, so that the sum over all paths is 1:
    `CRFLoss` is the sum of the cross-entropies of the steps, `CRFDecode` finds the best path. End
    scores shift the last step's distribution only.

    Args, call arguments, shapes and errors are those of `CRF`.

    Example:

    >>> import numpy as np
    >>> from kerasattn import layers
    >>> from kerasattn.ops import crf
    >>> potentials = layers.MaximumEntropyMarkovModel()(np.random.normal(size=(2, 5, 3)))
    >>> bool(np.allclose(crf.log_partition(potentials), 0, atol=1e-5))
    True

    Source: https://www.seas.upenn.edu/~strctlrn/bib/PDF/memm-icml2000.pdf (McCallum, Freitag,
    Pereira 2000), section 2.
    """

    NORMALIZE = True
