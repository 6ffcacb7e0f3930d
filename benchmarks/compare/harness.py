"""The comparison harness from here: entries of the suite file filled in, one engine in its own process, asked over pipes."""

import argparse
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import cygnet

HERE = Path(__file__).resolve().parent


def suites(home):
    """The suite file with this Python, this checkout and the folder of models filled in: name of suite -> its entry."""
    paths = os.pathsep.join([str(HERE), str(Path(cygnet.__file__).parent.parent)])
    text = (HERE / "suite.json").read_text()
    for name, value in {"$CYGNET_PYTHON": sys.executable, "$CYGNET_PATH": paths, "$HOME_PEERS": str(home)}.items():
        text = text.replace(name, value)
    return json.loads(text)


def workloads(bench):
    """The module workloads.py of the harness: the texts and token ids that every engine gets."""
    sys.path.insert(0, str(Path(bench).resolve().parent))
    return importlib.import_module("workloads")


def arguments(about):
    """The parser of a script that asks engines: where the harness and the models are, and the threads of each engine."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--bench", required=True, help="bench.py of the comparison harness")
    parser.add_argument("--home", required=True, help="folder with the engines and their models")
    parser.add_argument("--threads", type=int, default=2)
    return parser


def peers_python(home):
    return str(Path(home) / "venv" / "bin" / "python")


class Worker:
    """A process of the harness's worker.py that has loaded one engine; a context manager that ends it.

    Parameters
    ----------
    bench : path
        bench.py of the harness; worker.py and the adapters of the peers lie beside it.
    home : path
        The engines and their models.
    entry : dict
        The engine's entry in the suite file.
    threads : int
    """

    def __init__(self, bench, home, entry, threads):
        entry = dict(entry)
        python = entry.pop("python", peers_python(home))
        count = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        environment = {**os.environ, **count, "TOKENIZERS_PARALLELISM": "true", "HF_HUB_OFFLINE": "1", **entry.pop("env", {})}
        command = [python, str(Path(bench).with_name("worker.py")), json.dumps({**entry, "threads": threads})]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, **pipes, text=True, env=environment)
        if not self.process.stdout.readline():
            raise RuntimeError(f"{entry['engine']} did not start with {entry['model']}")

    def seconds(self, operation, *arguments):
        """What the adapter's method returns."""
        self.process.stdin.write(json.dumps({"op": operation, "args": arguments}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline() or '{"error": "the process died"}')
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["seconds"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(20)
