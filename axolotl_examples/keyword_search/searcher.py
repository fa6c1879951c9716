"""The search: walks the trees, reads the files and collects matches up to the limits of its settings."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from pydantic import DirectoryPath, Field, NonNegativeFloat, PositiveInt
from pydantic_settings import BaseSettings, SettingsConfigDict

from axolotl_core import Context
from axolotl_examples.keyword_search.allowed_roots import SearchRoot
from axolotl_examples.keyword_search.directory import FileReader
from axolotl_examples.keyword_search.findings import Findings, Tally
from axolotl_examples.keyword_search.ignore_rules import IgnoreRules
from axolotl_examples.keyword_search.matcher import KeywordMatcher
from axolotl_examples.keyword_search.models import KeywordQuery, SearchReport
from axolotl_examples.keyword_search.patterns import Selection
from axolotl_examples.keyword_search.walk import FoundFile, OutOfTime, Progress, TreeWalk


class SearchSettings(BaseSettings):
    """Directories and limits of the search. Environment variables: for example `KEYWORD_SEARCH_MAX_DEPTH=8`."""

    model_config = SettingsConfigDict(frozen=True, env_prefix="KEYWORD_SEARCH_")

    allowed_roots: tuple[DirectoryPath, ...] = Field(default_factory=lambda: (Path.cwd(),), min_length=1)
    """The directories that may be searched recursively. A JSON list in the environment variable."""
    max_file_bytes: PositiveInt = 1024 * 1024
    """Larger files are skipped."""
    max_line_characters: PositiveInt = 300
    """Longer lines are cut around the keyword."""
    max_report_bytes: PositiveInt = 2 * 1024 * 1024
    """The matches of a report stop at this size, which must fit into `max_result_bytes` of the server."""
    max_depth: int = Field(64, ge=1, le=200)
    """Directories nested more deeply are not entered, because each level keeps a descriptor open."""
    progress_seconds: NonNegativeFloat = 0.25
    """The interval of progress notifications."""


class KeywordSearcher:
    """Searches directory trees file by file. It blocks, so it must run in a worker thread."""

    def __init__(self, settings: SearchSettings, reader: FileReader) -> None:
        self._settings = settings
        self._reader = reader

    def search(self, query: KeywordQuery, roots: Sequence[SearchRoot], context: Context) -> SearchReport:
        """Find the keyword. Paths that cannot be read are listed in the report.

        If the time runs out, the report contains what was found until then. Raises `ToolError` if a pattern is invalid,
        and `ToolCancelled` if the call was cancelled.
        """
        tally = Tally()
        findings = Findings(query.offset, query.max_results, self._settings.max_report_bytes)
        walk = TreeWalk(
            Selection(query.include, query.exclude),
            IgnoreRules(self._reader) if query.respect_ignore_files else None,
            tally,
            Progress(context, self._settings.progress_seconds),
            self._settings.max_depth,
        )
        timed_out = False
        with closing(walk.files(roots)) as files:
            try:
                self._collect(files, KeywordMatcher(query, self._settings.max_line_characters), tally, findings)
            except OutOfTime:
                timed_out = True
        return SearchReport(
            match_count=findings.match_count,
            file_count=len(findings.files),
            files_searched=tally.files_searched,
            truncated=findings.truncated,
            next_offset=findings.next_offset,
            timed_out=timed_out,
            files=findings.files,
            skipped=tally.skipped,
            unreadable=tally.unreadable,
        )

    def _collect(self, files: Iterable[FoundFile], matcher: KeywordMatcher, tally: Tally, findings: Findings) -> None:
        for file in files:
            data = self._read(file, tally)
            if data is not None and matcher.may_occur_in(data):
                findings.add(file.path, matcher.matches(data))
                if findings.truncated:
                    return

    def _read(self, file: FoundFile, tally: Tally) -> bytes | None:
        """Read a file, or count it as skipped and return None."""
        try:
            data = self._reader.read(file.directory, file.name)
        except OSError as error:
            tally.fail(file.path, error)
            return None
        if isinstance(data, bytes):
            tally.files_searched += 1
            return data
        tally.skip(data)
        return None
