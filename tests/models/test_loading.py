"""Files that are no models: each ends in one error that names the file."""

import zipfile

import pytest

from kerasattn.models import load_model


def archive(path):
    """A zip archive that looks like a `.keras` file from outside."""
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("config.json", "{}")
    return bytearray(path.read_bytes())


@pytest.mark.parametrize("place, value", [(8, 1), (10, 8), (10, 99)])
def test_an_archive_that_is_packed_in_no_known_way(tmp_path, place, value):
    """Encrypted, deflated though it is not, of an unknown method: each another kind of error."""
    path = tmp_path / "model.keras"
    whole = archive(path)
    whole[whole.index(b"PK\x01\x02") + place] = value
    path.write_bytes(whole)
    with pytest.raises(
        ValueError, match=r"model.keras is (no .keras file, or a truncated one|damaged at)"
    ):
        load_model(path)


def test_an_archive_of_something_else(tmp_path):
    path = tmp_path / "model.keras"
    archive(path)
    with pytest.raises(ValueError, match=r"model.keras can't be loaded"):
        load_model(path)
