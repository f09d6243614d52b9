"""Loading pretrained weights: time against reading the file's bytes, memory against the model's.

    python benchmarks/loading.py [--small]

Saves a BERT (base: 438 MB of safetensors), then, each in a process of its own that has built a
tiny model before, reads the bytes of the file, builds the model, and loads it. The file is in the
system's cache. The last line is JSON:

    seconds_share  of `from_pretrained`, of the seconds for building the model + 1.5 × reading: the
                   promise is 1 at most
    memory_share   of the peak while loading beyond the process before it, of the model's weights +
                   2 × the largest tensor + 100 MB: the promise is 1 at most
    bfloat16       the size of the weights with load_in="bfloat16", of that in float32
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

BASE = dict(vocabulary_size=30522)
SMALL = dict(vocabulary_size=2000, num_layers=2, num_heads=2, hidden_dim=128, intermediate_dim=512)
MEGABYTE = 2**20


def resident():
    """Bytes of memory that are the process's own: pages of files can go at any time."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this kernel does not tell RssAnon: run on Linux")


class Peak:
    """The largest `resident` within a `with` statement, looked at every millisecond."""

    def __enter__(self):
        self.before = self.bytes = resident()
        self.going = True
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self):
        while self.going:
            self.bytes = max(self.bytes, resident())
            time.sleep(0.001)

    def __exit__(self, *_):
        self.going = False
        self.thread.join()
        self.bytes = max(self.bytes, resident())


def measure(what, folder, sizes):
    """Seconds, bytes of weights and peak bytes of one of the three; in a new process."""
    import kerasattn
    from kerasattn.models import BERT

    with tempfile.TemporaryDirectory() as other:  # what is done once in a process is not counted
        BERT(20, num_layers=1, num_heads=1, hidden_dim=8, intermediate_dim=8).save_pretrained(other)
        kerasattn.from_pretrained(other)
    with Peak() as peak:
        began = time.perf_counter()
        if what == "read":
            made = (folder / "model.safetensors").read_bytes()
        elif what == "build":
            made = BERT(**sizes)
        else:
            made = kerasattn.from_pretrained(
                folder, **({} if what == "load" else {"load_in": what})
            )
        seconds = time.perf_counter() - began
    result = {"seconds": seconds, "peak": peak.bytes - peak.before}
    if what != "read":
        sizes = [v.value.dtype.size * v.value.shape.num_elements() for v in made.weights]
        result |= {"weights": sum(sizes), "largest": max(sizes)}
    return result


def in_process(what, folder, sizes):
    """`measure`, in a process of its own."""
    if sizes == SMALL and what != "load":  # to see that it runs
        return measure(what, folder, sizes)
    code = f"import json, loading, pathlib; print(json.dumps(loading.measure({what!r}, "
    code += f"pathlib.Path({str(folder)!r}), {sizes!r})))"
    paths = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="a small model, to see that it runs")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    sizes = SMALL if options.small else BASE
    rounds = 1 if options.small else options.rounds
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        save(folder, sizes)
        (folder / "model.safetensors").read_bytes()
        kinds = ("read", "build", "load", "bfloat16")
        results = {kind: [] for kind in kinds}
        for _ in range(rounds):
            for kind in kinds:
                results[kind].append(in_process(kind, folder, sizes))
    seconds = {k: statistics.median(r["seconds"] for r in rows) for k, rows in results.items()}
    peaks = {k: max(r["peak"] for r in rows) for k, rows in results.items()}
    built, narrow = results["load"][0], results["bfloat16"][0]
    print(f"{'':12}{'seconds':>10}{'peak MB':>10}")
    for kind in kinds:
        print(f"{kind:12}{seconds[kind]:10.2f}{peaks[kind] / MEGABYTE:10.0f}")
    allowed = built["weights"] + 2 * built["largest"] + 100 * MEGABYTE
    ratios = {
        "seconds_share": seconds["load"] / (seconds["build"] + 1.5 * seconds["read"]),
        "memory_share": peaks["load"] / allowed,
        "bfloat16": narrow["weights"] / built["weights"],
    }
    print("\n" + json.dumps({name: round(value, 3) for name, value in ratios.items()}))
    return ratios


def save(folder, sizes):
    """The folder that is loaded, written in a process of its own: this one's memory stays small."""
    if sizes == SMALL:
        from kerasattn.models import BERT

        return BERT(**sizes).save_pretrained(folder)
    code = f"from kerasattn.models import BERT; BERT(**{sizes!r}).save_pretrained({str(folder)!r})"
    return subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    main()
