"""Skills that are read from folders."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from axolotl_core import ConfigurationError
from axolotl_core.resources.skills import (
    MAX_SKILL_BYTES,
    MAX_SKILL_DESCRIPTION,
    MAX_SKILL_FILES,
    ISkill,
    SkillFolder,
    skill_folder,
)
from axolotl_server.extensions.skills.folder_reading import MAX_FRONT_MATTER_BYTES, read_front_matter
from axolotl_server.extensions.skills.published_skill import PublishedSkill, read_skills

PAGE = "---\nname: {name}\ndescription: Use it often.\n---\nText.\n"


def write_skill(folder: Path, page: str | None = None, **files: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(PAGE.format(name=folder.name) if page is None else page)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


async def read(source: Path | SkillFolder) -> list[PublishedSkill]:
    skills, findings = await read_skills([source])
    assert findings == []
    return skills


async def findings_about(*items: Any) -> list[str]:
    return (await read_skills(items))[1]


async def test_skills_at_any_depth(tmp_path: Path) -> None:
    """The path of a skill below the folder is its URI; a skill in a skill is listed too, and its files twice.

    Files that Python and editors make are left out.
    """
    write_skill(tmp_path / "letters")
    write_skill(tmp_path / "acme" / "refunds", rules=b"none")
    write_skill(tmp_path / "acme" / "refunds" / "partial")
    (tmp_path / "acme" / "refunds" / "__pycache__").mkdir()
    (tmp_path / "acme" / "refunds" / "__pycache__" / "x.pyc").write_bytes(b"")
    (tmp_path / "acme" / "refunds" / ".SKILL.md.swp").touch()
    (tmp_path / "acme" / "refunds" / "rules~").touch()
    (tmp_path / "__init__.py").touch()
    outer, inner, letters = await read(tmp_path)
    assert [outer.uri, inner.uri, letters.uri] == [
        "skill://acme/refunds/SKILL.md",
        "skill://acme/refunds/partial/SKILL.md",
        "skill://letters/SKILL.md",
    ]
    paths = [file.uri.removeprefix("skill://acme/refunds/") for file in outer.files]
    assert paths == ["SKILL.md", "rules", "partial/SKILL.md"]
    assert outer.files[2] is inner.files[0]
    assert (inner.files[0].name, inner.files[0].description) == ("partial", "Use it often.")


async def test_prefix(tmp_path: Path) -> None:
    """A folder that is a skill itself is served, below a prefix."""
    [skill] = await read(skill_folder(write_skill(tmp_path / "letters"), prefix="/acme/office/"))
    assert skill.uri == "skill://acme/office/letters/SKILL.md"


async def test_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package is found without an `__init__.py` in its folder of skills."""
    write_skill(tmp_path / "bakery" / "skills" / "bread")
    monkeypatch.syspath_prepend(tmp_path)
    [skill] = await read(skill_folder("bakery.skills"))
    assert skill.uri == "skill://bread/SKILL.md"
    [finding] = await findings_about(skill_folder("bakery.skill"))
    assert finding.startswith("skill_folder('bakery.skill'): there is no such package")


@pytest.mark.parametrize(
    ("line", "finding"),
    [
        ("n: " + "1" * 5000, "the front matter is not valid: Exceeds the limit"),
        ('n: ["\\ud800"]', "n[0] has half of a surrogate pair"),
        ('"\\ud800": n', "the key '\\ud800' has half of a surrogate pair"),
    ],
)
async def test_values_that_cannot_be_sent(tmp_path: Path, line: str, finding: str) -> None:
    """A value that Python reads but no reply can contain is a finding, not a failure of every list."""
    write_skill(tmp_path / "odd", f"---\nname: odd\ndescription: d\n{line}\n---\n")
    [found] = await findings_about(tmp_path)
    assert found.startswith(f"{tmp_path}/odd/SKILL.md: {finding}")


async def test_what_is_wrong(tmp_path: Path) -> None:
    """Everything that is wrong is reported at once, with its file."""
    write_skill(tmp_path / "fine")
    write_skill(tmp_path / "other", "---\nname: another\ndescription: ''\n---\n")
    write_skill(tmp_path / "Loud", "---\nname: Loud\ndescription: " + "x" * (MAX_SKILL_DESCRIPTION + 1) + "\n---\n")
    write_skill(tmp_path / "bare", "Text without front matter.")
    write_skill(tmp_path / "dated", "---\nname: dated\ndescription: d\nsince: 2026-01-01\n---\n")
    write_skill(tmp_path / "hidden")
    (tmp_path / "hidden" / ".env").write_text("secret")
    (tmp_path / "empty").mkdir()
    found = [finding.removeprefix(f"{tmp_path}/") for finding in await findings_about(tmp_path)]
    assert found == [
        "empty: there is no SKILL.md in it",
        "Loud/SKILL.md: name is 'Loud'; use 1 to 64 of a-z, 0-9 and single hyphens, with a letter or digit at both "
        "ends",
        "Loud/SKILL.md: the description has 1025 characters; at most 1024 are allowed",
        "bare/SKILL.md: it does not begin with front matter: a line ---, YAML with name and description, ---",
        "dated/SKILL.md: the front matter is not valid: line 4: write '2026-01-01' in quotes, because parsers of YAML "
        "read it differently",
        "hidden/.env: files whose names begin with a dot are not served; remove it",
        "other/SKILL.md: name is 'another', but its folder is 'other'; both must be the same",
        "other/SKILL.md: it has no description: write when a model should use the skill",
    ]


async def test_links(tmp_path: Path) -> None:
    """Links out of the folder, and to folders, are refused; links inside of it are files."""
    (tmp_path / "secret").write_text("key")
    root = tmp_path / "skills"
    skill = write_skill(root / "linked", rules=b"none")
    (skill / "same").symlink_to(skill / "rules")
    [read_skill] = await read(root)
    assert [file.content for file in read_skill.files][1:] == [b"none", b"none"]
    for target in (tmp_path / "secret", skill):
        (skill / "link").symlink_to(target)
        [finding] = await findings_about(root)
        assert "linked/link: links to folders, and links out of" in finding
        (skill / "link").unlink()
    os.mkfifo(skill / "pipe")
    [finding] = await findings_about(root)
    assert finding.endswith("linked/pipe is not a regular file; remove it")


async def test_number_of_files(tmp_path: Path) -> None:
    """A skill has at most 512 files."""
    skill = write_skill(tmp_path / "many")
    for number in range(MAX_SKILL_FILES - 1):
        (skill / str(number)).touch()
    assert len((await read(tmp_path))[0].files) == MAX_SKILL_FILES
    (skill / "one-more").touch()
    assert (await findings_about(tmp_path))[0].endswith("many: the skill has more than 512 files")


async def test_size_of_files(tmp_path: Path) -> None:
    """The files of a skill have at most 16 MiB."""
    skill = write_skill(tmp_path / "large")
    rest = MAX_SKILL_BYTES - len((skill / "SKILL.md").read_bytes())
    with (skill / "data").open("wb") as data:
        data.truncate(rest)
    assert (await read(tmp_path))[0].files[1].size == rest
    with (skill / "data").open("wb") as data:
        data.truncate(rest + 1)
    [finding] = await findings_about(tmp_path)
    assert finding.endswith(f"large: the files of the skill have more than {MAX_SKILL_BYTES} bytes")


def test_front_matter_is_bounded() -> None:
    """Large and deep front matter is refused, and aliases, which could make it larger than it looks."""
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
    for text, problem in (
        ("name: " + "x" * MAX_FRONT_MATTER_BYTES, f"at most {MAX_FRONT_MATTER_BYTES} are allowed"),
        ("name: " + "[" * 1000 + "]" * 1000, "line 2: it is nested more than 16 levels deep"),
        (bomb, "line 3: aliases are not allowed; write the value again"),
        ("name: !!python/name:os.system ''", "the type 'python/name:os.system' is not allowed"),
        ("a: 1\na: 2", "'a' is there twice"),
        ("- a", "the front matter is not a mapping: write name: … and description: …"),
    ):
        with pytest.raises(ConfigurationError) as caught:
            read_front_matter(f"---\n{text}\n---\n".encode())
        assert problem in str(caught.value)


@pytest.mark.parametrize("value", ["yes", "off", "010", "0o10", "1e3", "0x1f", "12:30", "1_000", ".inf", "<<", "1."])
def test_ambiguous_values(value: str) -> None:
    """Values that parsers read differently must be in quotes, because clients compare the front matter."""
    with pytest.raises(ConfigurationError, match="in quotes"):
        read_front_matter(f"---\nname: {value}\n---\n".encode())
    assert read_front_matter(f"---\nname: '{value}'\n---\n".encode()) == {"name": value}


@pytest.mark.parametrize(("text", "value"), [("3", 3), ("-1.5", -1.5), ("true", True), ("", None), ("a b", "a b")])
def test_values(text: str, value: object) -> None:
    """Other values have their JSON form."""
    assert read_front_matter(f"\ufeff---\r\nname: {text}\r\n---\r\n".encode()) == {"name": value}


class Own(ISkill):
    """A skill in code, with files that the test sets."""

    uri = "skill://own/SKILL.md"
    frontmatter: Mapping[str, Any] = {"name": "own", "description": "d"}

    def __init__(self, **files: bytes) -> None:
        self._files = files

    async def files(self) -> Mapping[str, bytes]:
        return self._files


async def test_skills_in_code() -> None:
    """A skill in code is checked like a folder."""
    page = {"SKILL.md": b"---\nname: own\n"}
    assert await findings_about(Own()) == ["Skill 'skill://own/SKILL.md': files() returned no SKILL.md"]
    for path in ("../x", "/x", "a//b", ".env", "a\\b"):
        [finding] = await findings_about(Own(**page, **{path: b""}))
        assert f"it has a file {path!r}; use a relative path" in finding
    [finding] = await findings_about(Own(**page, **{str(number): b"" for number in range(MAX_SKILL_FILES)}))
    assert finding.endswith("it has 513 files; at most 512 are allowed")
    [finding] = await findings_about(Own(**page, data=bytes(MAX_SKILL_BYTES)))
    assert finding.endswith(f"at most {MAX_SKILL_BYTES} are allowed")
    dated = Own(**page)
    dated.frontmatter = {"name": "own", "description": "d", "since": {"day": object(), "score": float("nan")}}
    assert await findings_about(dated) == [
        "Skill 'skill://own/SKILL.md': since.day is of type object, which JSON does not have; write it in quotes",
        "Skill 'skill://own/SKILL.md': since.score is of type float, which JSON does not have; write it in quotes",
    ]
    wrong = Own(**page)
    wrong.uri = "skill://own"
    assert "write one such as" in (await findings_about(wrong))[0]
    assert await findings_about(Own, "skills") == [
        f"The role skills contains {Own!r}, which is not a skill: use an instance",
        "The role skills contains 'skills', which is not a skill: "
        'use skill_folder("pkg.skills"), a Path or an ISkill',
    ]
