"""Memory that a process keeps."""

import json
import platform
import subprocess
import sys

import pytest

from kerasattn.training import memory

SCRIPT = """
import importlib.util, json, resource
spec = importlib.util.spec_from_file_location("memory", {file!r})  # without all of TensorFlow
memory = importlib.util.module_from_spec(spec)
spec.loader.exec_module(memory)
block = bytes(2**26)

def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        bytearray(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(json.dumps([pages(), memory.keep_memory(), pages(), pages()]))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc that is told")
def test_freed_memory_is_taken_again():
    """Blocks of 64 MB are new pages each time, and once it is kept, hardly any."""
    script = SCRIPT.format(file=memory.__file__)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    before, kept, _, after = json.loads(run.stdout)
    assert kept
    assert after < before / 10
