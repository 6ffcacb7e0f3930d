"""Measures cygnet beside llama.cpp, CTranslate2, onnxruntime, OpenVINO and torch.

    python benchmarks/compare/run.py --bench PEERS/bench.py --home HOME [SUITE ...] [--rounds 5]

PEERS is the folder of the comparison harness, HOME where its set-up put the engines and their models. SUITE is the name of a suite in suite.json or
its beginning (decode, prefill, embed, translate, concurrent: the harness's bench.py with the suite file filled in), or latency, neighbour or start;
without any, everything is measured. Nothing else may run on the machine.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import HERE, arguments, peers_python, suites

SCRIPTS = ("latency", "neighbour", "start")
FIRST_TOKEN = "import cygnet; print(cygnet.load({model!r}, threads={threads}).generate('Hello', max_new_tokens=1).text)"


def side_by_side(args, names):
    """bench.py of the harness on the suites of these names."""
    with tempfile.TemporaryDirectory() as folder:
        filled = Path(folder) / "suite.json"
        filled.write_text(json.dumps(suites(args.home)))
        options = ["--suite-file", filled, "--rounds", args.rounds, "--threads", args.threads]
        options += ["--only", args.only] if args.only else []
        options += ["--json", args.json] if args.json else []
        return run([peers_python(args.home), args.bench, *names, "--home", args.home, *options])


def script(args, name):
    """A script of this folder."""
    rounds = ["--rounds", args.rounds] if name == "neighbour" else []
    return run([sys.executable, HERE / f"{name}.py", "--bench", args.bench, "--home", args.home, "--threads", args.threads, *rounds])


def start(args):
    """Process start to first token: start.py of the harness with cygnet's command."""
    print("\n## start  (process start to the first token of SmolLM2-135M, its file in the page cache)", flush=True)
    code = FIRST_TOKEN.format(model=f"{args.home}/smollm2-Q4_0.gguf", threads=args.threads)
    path = suites(args.home)["decode-smollm2"]["engines"]["cygnet int8"]["env"]["PYTHONPATH"]
    # With bytecode, as an installed package has it and the other engines do: the first, unmeasured start writes it.
    command = f"PYTHONDONTWRITEBYTECODE= PYTHONPATH={shlex.quote(path)} {shlex.join([sys.executable, '-c', code])}"
    return run([peers_python(args.home), Path(args.bench).with_name("start.py"), args.home, f"cygnet int4 (Q4_0)={command}"])


def run(command):
    return subprocess.run([os.fspath(part) if isinstance(part, Path) else str(part) for part in command]).returncode


def main():
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="suites or their beginnings; default: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="engines of the suites side by side, by name, with commas between")
    parser.add_argument("--json", help="file for the figures of the suites side by side")
    args = parser.parse_intermixed_args()
    wanted = args.suites or ["decode", "prefill", "embed", "translate", "concurrent", *SCRIPTS]
    side = [name for name in wanted if name not in SCRIPTS]
    failed = side_by_side(args, side) if side else 0
    for name in SCRIPTS:
        if name in wanted:
            failed = (start(args) if name == "start" else script(args, name)) or failed
    return failed


if __name__ == "__main__":
    sys.exit(main())
