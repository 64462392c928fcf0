from __future__ import annotations

import subprocess
import sys
from collections import Counter

from omni_neuron.platform.stage_config.key import LEGACY_STAGE, STAGE
from omni_neuron.platform.stage_config.table import TABLE, blocks_of, by_place, places_of


def test_no_name_and_no_place_stands_for_two_things():
    assert [name for name, n in Counter(entry.name for entry in TABLE).items() if n > 1] == []
    for form in (STAGE, LEGACY_STAGE):
        places = [place for entry in TABLE for place in places_of(entry, form)]
        assert [place for place, n in Counter(places).items() if n > 1] == []


def test_every_entry_has_a_place():
    assert [entry.name for entry in TABLE if not (entry.places.deploy or entry.places.legacy)] == []


def test_a_block_is_no_key():
    for form in (STAGE, LEGACY_STAGE):
        assert not blocks_of(form) & set(by_place(form))


def test_importing_the_package_loads_no_engine():
    engine = "{'torch', 'vllm', 'vllm_omni'}"
    code = f"import sys, omni_neuron.platform.stage_config; print(*{engine} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == ""
