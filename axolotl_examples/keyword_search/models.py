"""The input and output models of the search."""

import os
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field

Glob = Annotated[str, Field(min_length=1, max_length=256)]
GivenPath = Annotated[str, Field(min_length=1, max_length=4096)]


def readable(path: str) -> str:
    """Escape bytes of a file name that are not valid UTF-8, because JSON cannot represent them."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


FoundPath = Annotated[str, BeforeValidator(readable)]


class KeywordQuery(BaseModel):
    """A keyword, the places to search, and options."""

    keyword: str = Field(
        min_length=1,
        max_length=1000,
        pattern=r"^[^\r\n]+$",
        description="The text to find, taken literally. It cannot span lines.",
        examples=["TODO"],
    )
    root_paths: list[GivenPath] = Field(
        min_length=1,
        max_length=100,
        description="Directories to search recursively, or single files. "
        "Relative paths start at the first directory that the server may read.",
        examples=[["."]],
    )
    include: list[Glob] = Field(
        default=[],
        max_length=50,
        description="Search only files that match one of these .gitignore-style patterns.",
        examples=[["*.py", "docs/**/*.md"]],
    )
    exclude: list[Glob] = Field(
        default=[],
        max_length=50,
        description="Skip files and directories that match one of these .gitignore-style patterns.",
        examples=[["tests/", "*.min.js"]],
    )
    respect_ignore_files: bool = Field(
        default=True, description="Skip the .git directory and everything that .gitignore files exclude."
    )
    case_sensitive: bool = Field(default=True, description="Whether case matters.")
    whole_word: bool = Field(default=False, description="Find the keyword only where it is not part of a longer word.")
    max_results: int = Field(default=100, ge=1, le=1000, description="Stop after this many matching lines.")
    offset: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="Skip this many matching lines. To continue a search, pass the next_offset of its report.",
    )
    context_lines: int = Field(
        default=0, ge=0, le=10, description="How many lines to return before and after each matching line."
    )


class LineMatch(BaseModel):
    """A line that contains the keyword."""

    line_number: int = Field(description="The number of the line, counted from 1.")
    text: str = Field(description="The line, or the part around the keyword if the line is very long.")
    before: list[str] = Field(description="The context lines before it.")
    after: list[str] = Field(description="The context lines after it.")


class FileMatches(BaseModel):
    """A file that contains the keyword."""

    file: FoundPath = Field(description="The path of the file, starting with the given root path.")
    match_count: int = Field(description="How many lines of the file are listed.")
    matches: list[LineMatch] = Field(description="The matching lines, from top to bottom.")


class SkippedFiles(BaseModel):
    """How many files and directories were skipped, by reason."""

    binary: int = Field(default=0, description="Files that are not text.")
    too_large: int = Field(default=0, description="Files that exceed the size limit.")
    ignored: int = Field(default=0, description="The .git directory and everything that .gitignore files exclude.")
    links: int = Field(default=0, description="Symbolic links; they are not followed.")
    special: int = Field(default=0, description="Pipes, sockets and devices.")
    unreadable: int = Field(default=0, description="Paths that could not be read.")


SkipReason: TypeAlias = Literal["binary", "too_large", "ignored", "links", "special", "unreadable"]
"""A field of `SkippedFiles`."""


class UnreadablePath(BaseModel):
    """A path that could not be read."""

    path: FoundPath = Field(description="The path, starting with the given root path.")
    reason: str = Field(description="The error message of the operating system.")


class SearchReport(BaseModel):
    """The matches, sorted by path, and the files that were skipped."""

    match_count: int = Field(description="How many matching lines are listed, in all files.")
    file_count: int = Field(description="How many files contain them.")
    files_searched: int = Field(description="How many files were read.")
    truncated: bool = Field(description="Whether the search stopped at a limit although there are more matches.")
    next_offset: int | None = Field(description="The offset that continues the search, if it is truncated.")
    timed_out: bool = Field(description="Whether the time ran out, so that some files were not searched.")
    files: list[FileMatches] = Field(description="The files that contain the keyword.")
    skipped: SkippedFiles = Field(description="The numbers of skipped files and directories.")
    unreadable: list[UnreadablePath] = Field(description="The first paths that could not be read, with the reasons.")
