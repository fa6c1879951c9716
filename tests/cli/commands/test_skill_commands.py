"""Skills in `axolotl list`, `inspect`, `check` and `policy explain`."""

import json
from textwrap import dedent

from tests.cli.conftest import CommandLine

CODE = """
    from pathlib import Path
    from dependency_injector import containers, providers

    class Container(containers.DeclarativeContainer):
        skills = providers.Object(Path(__file__).parent / "skills")
"""
PAGE = """\
---
name: {name}
description: Write letters. Use it for letters.
{more}---
See [one](templates/plain.md), [two](templates), [three](missing.md#part), [four](https://example.com/x), [five](#top)
and `[six](code.md)`.

```
[seven](code.md)
```
"""


def write_skills(cli: CommandLine) -> None:
    cli.write("writer.py", dedent(CODE))
    cli.write("skills/letters/SKILL.md", PAGE.format(name="letters", more="allowed-tools: Bash\n"))
    cli.write("skills/letters/templates/plain.md", "Dear")


def test_list_and_inspect(cli: CommandLine) -> None:
    """A skill has one line, with the number of its files; `inspect` shows the files."""
    write_skills(cli)
    lines = [" ".join(line.split()) for line in cli("list", "writer").stdout.splitlines()]
    assert "skill://letters/SKILL.md Write letters. 2 – loop 30 s" in lines
    assert lines[-1] == "1 skill"
    listed = json.loads(cli("list", "writer", "--json").stdout)
    assert (listed["resources"], listed["skills"][0]["files"]) == ([], "2")
    shown = cli("inspect", "writer").stdout
    assert "skill://letters/templates/plain.md  4 bytes" in " ".join(shown.split(" ")).replace("   ", "  ")
    assert shown.splitlines()[-1] == "1 skill; --json shows the complete schemas"


def test_check(cli: CommandLine) -> None:
    """Equal names and allowed-tools are warnings; what clients refuse is an error."""
    write_skills(cli)
    cli.write("skills/office/letters/SKILL.md", "---\nname: letters\ndescription: Write more.\n---\n")
    assert messages(cli) == [
        "Skill 'skill://letters/SKILL.md' has allowed-tools, which hosts ignore in skills of a server",
        "Skill 'skill://office/letters/SKILL.md' has the same name as 'skill://letters/SKILL.md': hosts show both as "
        "'letters'",
    ]
    cli.write("skills/wrong/SKILL.md", "---\nname: other\ndescription: yes\n---\n")
    cli.write("skills/letters/SKILL.md", "---\nname: wrong\ndescription: 'Write.'\n---\n")
    one, two = messages(cli)
    assert "letters/SKILL.md: name is 'wrong', but its folder is 'letters'" in one
    assert "wrong/SKILL.md: the front matter is not valid: line 3: write 'yes' in quotes" in two


def messages(cli: CommandLine) -> list[str]:
    return [finding["message"] for finding in json.loads(cli("check", "writer", "--json").stdout)["findings"]]


def test_policy(cli: CommandLine) -> None:
    """`policy explain` knows the files of skills."""
    write_skills(cli)
    cli.write("axolotl.toml", '[authorization]\ndefault = "deny"\n')
    answer = cli(
        "policy",
        "explain",
        "skill://letters/templates/plain.md",
        "--as",
        "ann",
        "--kind",
        "skill",
        "--target",
        "writer",
    )
    assert "denied" in answer.stdout
    listed = json.loads(cli("list", "writer", "--as", "ann", "--json").stdout)
    assert listed["skills"] == []
