"""What the search takes and what it gives."""

import os
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

Glob = Annotated[str, Field(min_length=1, max_length=256)]
GivenPath = Annotated[str, Field(min_length=1, max_length=4096)]


def _readable(path: str) -> str:
    """Write the bytes of a name that are no UTF-8 as escapes: JSON has no room for them."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


FoundPath = Annotated[str, BeforeValidator(_readable)]


class KeywordQuery(BaseModel):
    """What to look for, and where."""

    keyword: str = Field(
        min_length=1,
        max_length=1000,
        pattern=r"^[^\r\n]+$",
        description="The text to find. It is taken literally and lies within one line.",
        examples=["TODO"],
    )
    root_paths: list[GivenPath] = Field(
        min_length=1,
        max_length=100,
        description="Directories to search with all below them, or single files. "
        "Relative paths start at the first directory the server may read.",
        examples=[["."]],
    )
    include: list[Glob] = Field(
        default=[],
        max_length=50,
        description="Search only files that match one of these patterns, written as in .gitignore.",
        examples=[["*.py", "docs/**/*.md"]],
    )
    exclude: list[Glob] = Field(
        default=[],
        max_length=50,
        description="Leave out files and directories that match one of these patterns, written as in .gitignore.",
        examples=[["tests/", "*.min.js"]],
    )
    respect_ignore_files: bool = Field(
        default=True, description="Leave out what .gitignore files name, and the directory .git."
    )
    case_sensitive: bool = Field(default=True, description="Whether upper and lower case letters differ.")
    whole_word: bool = Field(default=False, description="Find the keyword only where it is no part of a longer word.")
    max_results: int = Field(default=100, ge=1, le=1000, description="Stop after this many matching lines.")
    context_lines: int = Field(
        default=0, ge=0, le=10, description="How many lines to give before and after each matching line."
    )


class LineMatch(BaseModel):
    """A line that contains the keyword."""

    line_number: int = Field(description="The number of the line, counted from 1.")
    text: str = Field(description="The line; where it is very long, the part around the keyword.")
    before: list[str] = Field(description="The lines before it, as many as were asked for.")
    after: list[str] = Field(description="The lines after it, as many as were asked for.")


class FileMatches(BaseModel):
    """A file that contains the keyword."""

    file: FoundPath = Field(description="The path of the file, below the root path as it was given.")
    match_count: int = Field(description="How many lines of the file are listed.")
    matches: list[LineMatch] = Field(description="The matching lines, from top to bottom.")


class SkippedFiles(BaseModel):
    """How many files and directories were passed over, by reason."""

    binary: int = Field(default=0, description="Files that are no text.")
    too_large: int = Field(default=0, description="Files that are larger than the server reads.")
    ignored: int = Field(default=0, description="Files and directories that .gitignore files name, and .git.")
    links: int = Field(default=0, description="Symbolic links; they are not followed.")
    special: int = Field(default=0, description="Pipes, sockets and devices.")
    unreadable: int = Field(default=0, description="Paths that could not be read.")


class UnreadablePath(BaseModel):
    """A path that could not be read."""

    path: FoundPath = Field(description="The path, below the root path as it was given.")
    reason: str = Field(description="What the operating system said.")


class SearchReport(BaseModel):
    """What was found, in the order of the paths, and what was not looked at."""

    match_count: int = Field(description="How many matching lines are listed, in all files.")
    file_count: int = Field(description="How many files contain them.")
    files_searched: int = Field(description="How many files were read.")
    truncated: bool = Field(description="Whether there are more matches than max_results; the search stopped there.")
    files: list[FileMatches] = Field(description="The files that contain the keyword.")
    skipped: SkippedFiles = Field(description="What was passed over.")
    unreadable: list[UnreadablePath] = Field(description="The first paths that could not be read, and why.")
