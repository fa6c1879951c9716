"""What .gitignore files say, nested ones included."""

from typing import Final

from axolotl_examples.keyword_search.directory import Directory
from axolotl_examples.keyword_search.patterns import PatternRules, parse_pattern
from axolotl_examples.keyword_search.reader import FileReader

__all__ = ["IIgnoreRules", "IgnoreFiles", "NothingIgnored"]
