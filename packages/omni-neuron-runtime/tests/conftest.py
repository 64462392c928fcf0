import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from omni_neuron.runtime import envs
from omni_neuron.runtime.env_var import declared

PLACEHOLDER = 'raise ImportError("WRONG PACKAGE")\n'


class Site:
    """A folder of installed packages, written file by file as an installer would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    @property
    def path(self) -> list[str]:
        return [str(self.folder)]

    def add(
        self,
        name: str,
        version: str,
        files: Mapping[str, str] | None = None,
        *,
        requires: Sequence[str] = (),
        editable: bool = False,
    ) -> None:
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        for file, text in (files or {}).items():
            (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / file).write_text(text)
        lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
        lines += [f"Requires-Dist: {requirement}" for requirement in requires]
        (info / "METADATA").write_text("\n".join(lines) + "\n\n")
        listed = [*(files or {}), f"{info.name}/METADATA", f"{info.name}/RECORD"]
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in listed))
        if editable:
            (info / "direct_url.json").write_text(
                json.dumps({"url": "file:///source", "dir_info": {"editable": True}})
            )

    def add_placeholder(self, name: str, folder: str | None = None) -> None:
        """What the public index holds: one `__init__.py` that refuses to be imported."""
        self.add(name, "0.0.1", {f"{folder or name}/__init__.py": PLACEHOLDER})

    def add_generation(self) -> None:
        """Everything that `generate` needs."""
        for package in ("runtime", "distributed", "kernels", "platform", "wan22"):
            self.add(f"omni-neuron-{package}", "0.1.0")
        for name, version in {"vllm": "0.30.0", "vllm-omni": "0.30.0", "torch": "2.13.0+cpu"}.items():
            self.add(name, version)
        self.add("torchvision", "0.28.0", requires=["numpy", "torch (==2.13.0)"])
        self.add("diffusers", "0.40.0")
        self.add("transformers", "5.14.1")

    def add_neuron(self) -> None:
        """The wheels of a Neuron host, with a sound Lite build for torch 2.13."""
        self.add("vllm-neuron", "0.29.0.1.2.0", {"vllm_neuron/__init__.py": "", "vllm_neuron/envs.py": ""})
        self.add("neuronx-cc", "2.28.7631.0", {"neuronxcc/__init__.py": "", "neuronxcc/driver.so": ""})
        self.add("nki", "0.7.0", {"nki/__init__.py": "", "nki/language.py": ""})
        self.add(
            "libtorch-neuronx-lite",
            "2.13.0.1.0.2651",
            {"libtorch_neuronx_lite/__init__.py": "", "libtorch_neuronx_lite/_compiler/__init__.py": ""},
        )


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "site-packages")


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    """An empty folder of device nodes."""
    folder = tmp_path / "dev"
    folder.mkdir()
    return folder


@pytest.fixture
def importable(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """The site on `sys.path`; what was imported from it is forgotten again."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(site.folder))
    yield site
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("libtorch_neuronx_lite", "torch_neuronx", "some_interpreter"):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def _no_shared_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in declared(envs):
        # Set first, so that the end of the test restores what the test itself writes.
        monkeypatch.setenv(variable.name, "")
        monkeypatch.delenv(variable.name)
