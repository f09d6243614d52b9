"""What models of words share that start from pretrained vectors."""

import numpy as np

from kerasattn.models.base import as_numpy, check_range


class WordVectors:
    """Of a model with a table of word vectors: puts others' in their place."""

    def load_vectors(self, ids, vectors, layer="token_embedding"):
        """Puts pretrained vectors in the place of those of some tokens or words.

        Args:
            ids: ints.
            vectors: float (ids, dim).
            layer: str, the name of the embedding.

        Raises:
            ValueError: for vectors of another shape, or ids out of range.
        """
        table = self.get_layer(layer).embeddings
        ids, vectors = np.asarray(ids, "int64"), np.asarray(vectors, "float32")
        if vectors.shape != (len(ids), table.shape[1]):
            raise ValueError(
                f"{len(ids)} vectors of {table.shape[1]} numbers are needed, got the shape "
                f"{vectors.shape}."
            )
        check_range("ids", ids, table.shape[0])
        new = as_numpy(table).copy()
        new[ids] = vectors
        table.assign(new)
