import pytest

from omni_neuron.runtime import envs
from omni_neuron.runtime.env_var import declared, documented
from omni_neuron.runtime.errors import InputError


def test_every_variable_has_its_default_when_unset() -> None:
    assert {variable.name: variable() for variable in declared(envs)} == {
        variable.name: variable.default for variable in declared(envs)
    }


def test_names_are_distinct_and_documented() -> None:
    variables = declared(envs)
    assert len({variable.name for variable in variables}) == len(variables)
    assert all(variable.meaning.endswith(".") for variable in variables)
    assert [row[0] for row in documented(envs)] == [variable.name for variable in variables]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("cpu_mode", "1", True),
        ("backend", "neuron_native", "neuron_native"),
        ("visible_devices", "0-3,8", (0, 1, 2, 3, 8)),
        ("rt_visible_cores", "5", (5,)),
        ("logical_nc_config", "1", 1),
        ("libtorch_neuronx_lite", "0", False),
        ("platform_target_override", "trn3pre", "trn3pre"),
    ],
)
def test_values(monkeypatch: pytest.MonkeyPatch, name: str, text: str, value: object) -> None:
    variable = getattr(envs, name)
    monkeypatch.setenv(variable.name, text)
    assert variable() == value


@pytest.mark.parametrize(
    ("name", "text"), [("backend", "xla"), ("logical_nc_config", "3"), ("visible_devices", "all")]
)
def test_a_bad_value_names_its_variable(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    variable = getattr(envs, name)
    monkeypatch.setenv(variable.name, text)
    with pytest.raises(InputError, match=f"{variable.name}='{text}'"):
        variable()
