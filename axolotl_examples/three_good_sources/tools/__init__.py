"""The four tools, one per module."""

from axolotl_examples.three_good_sources.tools.get_endorsements import GetEndorsements
from axolotl_examples.three_good_sources.tools.get_provenance import GetProvenance
from axolotl_examples.three_good_sources.tools.get_sources import GetSources
from axolotl_examples.three_good_sources.tools.list_categories import ListCategories

__all__ = ["GetEndorsements", "GetProvenance", "GetSources", "ListCategories"]
