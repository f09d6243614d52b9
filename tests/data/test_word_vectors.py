import numpy as np
import pytest

from kerasattn.data import word2vec_file

VECTORS = np.arange(6, dtype="<f4").reshape(2, 3)
WHOLE = b"2 3\n" + b"a " + VECTORS[0].tobytes() + "\n北京 ".encode() + VECTORS[1].tobytes()


def test_words_and_vectors_come_back(tmp_path):
    path = tmp_path / "words.vector"
    path.write_bytes(WHOLE)
    words, vectors = word2vec_file(path)
    assert words == ["a", "北京"]
    np.testing.assert_array_equal(vectors, VECTORS)


@pytest.mark.parametrize(
    "content, match",
    [
        (b"", "does not begin with"),
        (b"two words\n", "does not begin with"),
        (b"1000000000000 300\nword ", "is too short for 1000000000000 vectors"),
        (WHOLE[:-1], "ends after 1 of 2 words"),
    ],
)
def test_damaged_files_end_in_one_error(tmp_path, content, match):
    path = tmp_path / "words.vector"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=match):
        word2vec_file(path)
    with pytest.raises(ValueError, match="can't be read"):
        word2vec_file(tmp_path)
