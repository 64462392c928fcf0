from typing import Any

from omni_neuron.runtime.lite_build import LITE_WHEEL, lite_problem, lite_remedy


def test_the_build_of_the_sdk_container_is_named(site: Any) -> None:
    site.add("torch", "2.11.0")
    site.add(
        LITE_WHEEL,
        "2.11.0.1.0.1284",
        {"libtorch_neuronx_lite/__init__.py": "", "libtorch_neuronx_lite/envs.py": ""},
    )
    assert lite_problem(site.path) == (
        "libtorch-neuronx-lite 2.11.0.1.0.1284 has no module _compiler, "
        "like the build in the container of SDK 2.32"
    )
    assert '"libtorch-neuronx-lite>=2.11.0.1.0.2651,==2.11.*"' in lite_remedy(site.path)


def test_a_sound_build_has_no_problem(site: Any) -> None:
    site.add("torch", "2.13.0+cpu")
    site.add_neuron()
    assert lite_problem(site.path) is None


def test_the_compiler_may_be_an_extension_module(site: Any) -> None:
    files = {"libtorch_neuronx_lite/__init__.py": "", "libtorch_neuronx_lite/_compiler.cpython-311.so": ""}
    site.add(LITE_WHEEL, "2.13.0.1.0.2700", files)
    assert lite_problem(site.path) is None


def test_another_release_of_torch(site: Any) -> None:
    site.add("torch", "2.12.1")
    site.add_neuron()
    problem = lite_problem(site.path)
    assert problem is not None
    assert "2.12.1" in problem
    assert "==2.12.*" in lite_remedy(site.path)


def test_what_is_not_real_has_no_build(site: Any) -> None:
    assert lite_problem(site.path) is None
    site.add_placeholder(LITE_WHEEL)
    assert lite_problem(site.path) is None


def test_an_editable_tree_lists_no_files(site: Any) -> None:
    site.add(LITE_WHEEL, "2.13.0", editable=True)
    assert lite_problem(site.path) is None
