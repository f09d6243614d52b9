import numpy as np
import pytest

from kerasattn.data import glove_file, word2vec_file

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


def test_glove_files(tmp_path):
    """Words may have spaces, or be numbers; lines that are no words with numbers are refused."""
    path = tmp_path / "glove.txt"
    path.write_bytes("the 0 1 2\r\n. . . 3 4 5\n1 6 7 8\n\u3000 9 9 9\n".encode())
    words, vectors = glove_file(path)
    assert words == ["the", ". . .", "1", "\u3000"]
    np.testing.assert_array_equal(vectors, [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 9, 9]])
    words, vectors = glove_file(path, words=["1", "unknown"])
    assert words == ["1"] and vectors.tolist() == [[6, 7, 8]]
    assert glove_file(path, words=[])[1].shape == (0, 3)
    for content in ("the\n", "the 1 2\nof 1\n", "the 1 2\nof 1 x\n", "\n"):
        path.write_text(content)
        with pytest.raises(ValueError, match=r"line \d is not a word and its numbers"):
            glove_file(path)
    with pytest.raises(ValueError, match="can't be read"):
        glove_file(tmp_path)
