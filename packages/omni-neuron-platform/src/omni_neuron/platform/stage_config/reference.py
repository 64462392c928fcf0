"""The tables of the documentation, made from the table of keys.

`python -m omni_neuron.platform.stage_config.reference docs/stage-configuration.md` updates the page.
"""

from __future__ import annotations

import sys
from pathlib import Path

from omni_neuron.platform.stage_config.key import LEGACY_STAGE, STAGE, Feature, Key
from omni_neuron.platform.stage_config.table import TABLE
from omni_neuron.platform.stage_config.values import as_written

BEGIN = "<!-- tables: begin -->"
END = "<!-- tables: end -->"


def tables() -> str:
    """Both tables in Markdown."""
    keys = [
        "| 0.30 form | 0.24 form | value | who acts on it | flag |",
        "|---|---|---|---|---|",
        *(
            f"| {_places(e.places.deploy)} | {_places(e.places.legacy)} | {e.kind.rule} | {e.acts} "
            f"| {f'`{e.flag}`' if e.flag else '-'} |"
            for e in TABLE
            if isinstance(e, Key)
        ),
    ]
    features = [
        "| 0.30 form | 0.24 form | accepted | otherwise refused because | do this |",
        "|---|---|---|---|---|",
        *(
            f"| {_places(e.places.deploy)} | {_places(e.places.legacy)} | {_neutral(e)} | {e.reason} "
            f"| {e.remedy} |"
            for e in TABLE
            if isinstance(e, Feature)
        ),
    ]
    return "\n".join(
        ["### Keys that something acts on", "", *keys, "", "### Keys of what we lack", "", *features]
    )


def updated(page: str) -> str:
    """The page with its tables replaced.

    Raises:
        ValueError: the page lacks the marks around the tables.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page must hold {BEGIN} and {END}.")
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


def _places(places: tuple[str, ...]) -> str:
    if not places:
        return "-"
    lists = {STAGE: f"{STAGE}[0]", LEGACY_STAGE: f"{LEGACY_STAGE}[0]"}
    shown = []
    for place in places:
        first, dot, rest = place.partition(".")
        shown.append(f"`{lists.get(first, first)}{dot}{rest}`")
    return ", ".join(shown)


def _neutral(feature: Feature) -> str:
    off = "" if feature.neutral is None else f"`{as_written(feature.neutral)}`, "
    return f"{off}empty"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(updated(target.read_text(encoding="utf-8")), encoding="utf-8")
