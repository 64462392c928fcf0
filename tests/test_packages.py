"""One house: the packages agree on version, Python, licence and on one another."""

import re
import tomllib

import pytest
from packages_of_workspace import FOLDERS, PROJECTS, ROOT, VERSION

OURS = re.compile(r"(omni-neuron(?:-[a-z0-9]+)?)(?:\[[a-z0-9,]+\])?(.*)")


def requirements(project):
    extras = project.get("optional-dependencies", {}).values()
    return [*project.get("dependencies", ()), *(item for extra in extras for item in extra)]


@pytest.mark.parametrize("name", PROJECTS)
def test_version_python_and_licence_are_those_of_all(name):
    project, meta = PROJECTS[name], PROJECTS["omni-neuron"]
    assert project["name"] == name
    assert project["version"] == VERSION
    for key in ("requires-python", "license", "license-files", "classifiers", "authors", "urls"):
        assert project.get(key) == meta.get(key), key


@pytest.mark.parametrize("name", PROJECTS)
def test_siblings_are_pinned_to_the_same_version(name):
    siblings = [match for item in requirements(PROJECTS[name]) if (match := OURS.fullmatch(item))]
    assert [match[0] for match in siblings if match[2] != f"=={VERSION}"] == []
    assert {match[1] for match in siblings} <= set(PROJECTS)


@pytest.mark.parametrize("name", PROJECTS)
def test_every_other_requirement_has_a_floor_and_a_ceiling(name):
    loose = [
        item
        for item in requirements(PROJECTS[name])
        if not OURS.fullmatch(item) and "==" not in item and not (">=" in item and "<" in item)
    ]
    assert loose == []


def test_packages_agree_on_what_they_both_require():
    ranges: dict[str, set[str]] = {}
    for project in PROJECTS.values():
        for item in project.get("dependencies", ()):
            name = re.match(r"[a-z0-9-]+", item)[0]
            ranges.setdefault(name, set()).add(item)
    assert [items for items in ranges.values() if len(items) > 1] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_package_is_typed_described_and_tested(folder):
    source = folder / "src" / "omni_neuron"
    (package,) = [path for path in source.iterdir() if (path / "__init__.py").is_file()]
    assert (package / "py.typed").is_file()
    assert not (source / "__init__.py").exists(), "omni_neuron is a namespace of several packages"
    assert (folder / "README.md").read_text().startswith(f"# {folder.name}\n")
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert list((folder / "tests").rglob("test_*.py"))


def test_the_changelog_knows_the_version():
    assert f"\n## {VERSION}" in (ROOT / "CHANGELOG.md").read_text()


def test_a_placeholder_can_never_satisfy_the_extra_for_hardware():
    extra = PROJECTS["omni-neuron"]["optional-dependencies"]["neuron"]
    pins = dict(re.match(r"([a-z-]+)(.*)", item).groups() for item in extra)
    assert set(pins) == {"libtorch-neuronx-lite", "neuronx-cc", "nki", "vllm-neuron"}
    # Placeholders carry small versions such as 0.0.1 or 1.0.
    assert all(pins[name].startswith("==") for name in ("neuronx-cc", "nki", "vllm-neuron"))
    assert pins["libtorch-neuronx-lite"].startswith(">=2.")


def test_the_extra_all_leaves_hardware_out():
    extras = PROJECTS["omni-neuron"]["optional-dependencies"]
    assert extras["all"] == sorted({*extras["sim"], *extras["wan22"]})


def test_ci_installs_a_uv_that_development_accepts():
    pin = (ROOT / ".ci" / "requirements.txt").read_text().strip()
    group = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["dev"]
    low, high = re.search(r"uv>=0\.(\d+),<0\.(\d+)", " ".join(group)).groups()
    assert int(low) <= int(re.fullmatch(r"uv==0\.(\d+)\.\d+", pin)[1]) < int(high)
