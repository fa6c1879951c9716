"""Settings with their origins, and environment variables that nothing reads."""

import json
import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.text import Text

from axolotl_cli.options import VARIABLES
from axolotl_cli.output import facts_grid, show, table
from axolotl_cli.target import ChosenTarget
from axolotl_cli.text import number, one_line
from axolotl_server.host import ServerHost
from axolotl_server.settings.calls import ToolOverrides
from axolotl_server.settings.effective import EffectiveValue, effective_values, masked
from axolotl_server.settings.environment import unknown_variables
from axolotl_server.settings.origins import DEFAULT, TOOL
from axolotl_server.settings.server import COMMON


async def values_of(host: ServerHost) -> list[EffectiveValue]:
    """List all settings of a started server, including values that only its tools set."""
    values = [*effective_values(host.loaded_settings)]
    for binding in host.assembly.tools.bindings():
        spec, overrides = binding.spec, host.settings.tools.overrides_for(binding.spec.name)
        for key in ToolOverrides.model_fields:
            own = getattr(spec.feature, key, None)
            if own is not None and getattr(overrides, key) is None and own == getattr(spec.limits, key, None):
                values.append(EffectiveValue(("tools", spec.name, key), masked(own), TOOL))
    sections = list(dict.fromkeys(value.keys[0] for value in values))
    return sorted(values, key=lambda value: sections.index(value.keys[0]))


def setting_as_dict(value: EffectiveValue) -> dict[str, Any]:
    """Describe a setting for JSON."""
    origin = {"source": value.origin.source.value, "place": value.origin.place or None}
    return {"setting": value.name, "value": value.value, "origin": origin}


def print_values(facts: Mapping[str, str], values: Sequence[EffectiveValue], total: int, *, with_origin: bool) -> None:
    """Print settings as a table, section by section."""
    head = facts_grid({name: Text(one_line(fact)) for name, fact in facts.items()})
    columns = ("Setting", "Value", "Origin") if with_origin else ("Setting", "Value")
    listed = table(columns, ())
    for _, section in groupby(values, key=lambda value: value.keys[0]):
        for value in section:
            style = "dim" if value.origin == DEFAULT else ""
            origin = value.origin.place or str(value.origin)
            cells = [_name(value), Text(_text(value.value), style), Text(one_line(origin), style)]
            listed.add_row(*cells[: len(columns)])
        listed.add_section()
    changed = sum(value.origin != DEFAULT for value in values)
    summary = f"{number(total, 'setting')}, {changed} of them set"
    show(head, "", *([listed] if values else []), "", summary)


def _name(value: EffectiveValue) -> Text:
    section, _, key = one_line(value.name).rpartition(".")
    style = "bold cyan" if value.name in COMMON else "cyan"
    return Text.assemble((f"{section}." if section else "", "dim cyan"), (key, style))


def _text(value: Any) -> str:
    return "–" if value is None else one_line(json.dumps(value, ensure_ascii=False))


def unknown_variables_of(target: ChosenTarget) -> list[str]:
    """Describe variables that begin with `AXOLOTL_` but set nothing, in the environment and in the `.env` file."""
    file = target.file.env_file
    unknown = list(unknown_variables(os.environ, VARIABLES))
    if file is not None:
        for name in file.variables:
            unknown += [f"{text} ({file.locate(name)})" for text in unknown_variables([name], VARIABLES)]
    return unknown
