"""Measures cygnet beside llama.cpp, CTranslate2, onnxruntime, OpenVINO and torch: fills in the suite file and runs the comparison.

    python benchmarks/compare/run.py --bench PEERS/bench.py --home HOME decode prefill embed translate concurrent [--rounds 5]

PEERS is the folder of the comparison harness, HOME where its set-up put the engines and their models. Nothing else may run beside it.
Further arguments go to bench.py as they are.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import cygnet

HERE = Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", required=True, help="bench.py of the comparison harness")
    parser.add_argument("--home", required=True, help="folder with the engines and their models")
    args, rest = parser.parse_known_args()
    paths = os.pathsep.join([str(HERE), str(Path(cygnet.__file__).parent.parent)])
    text = (HERE / "suite.json").read_text().replace("$CYGNET_PYTHON", sys.executable).replace("$CYGNET_PATH", paths)
    python = str(Path(args.home) / "venv" / "bin" / "python")
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as suite:
        json.dump(json.loads(text), suite)
    try:
        return subprocess.run([python, args.bench, "--home", args.home, "--suite-file", suite.name, *rest]).returncode
    finally:
        os.unlink(suite.name)


if __name__ == "__main__":
    sys.exit(main())
