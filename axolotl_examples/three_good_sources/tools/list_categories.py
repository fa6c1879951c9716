"""A tool that lists the categories of the registry."""

from axolotl_core import Context, ITool, NoArguments, ToolAnnotations
from axolotl_examples.three_good_sources.registry import Category, Registry


class ListCategories(ITool[NoArguments, str]):
    """Lists all categories, sorted by slug."""

    name = "list_categories"
    title = "List categories"
    description = (
        "List all available topic categories in the registry. Returns each category's slug identifier, display name, "
        "and description. Use this to discover what topics have curated sources before querying. "
        "No parameters required."
    )
    annotations = ToolAnnotations(read_only=True, idempotent=True, open_world=False)

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        categories = self._registry.by_slug
        return "\n".join([f"Categories ({len(categories)}):", "", *map(_entry, categories)])


def _entry(category: Category) -> str:
    return f"- {category.slug}: {category.name}\n  {category.description}\n  Tags: {', '.join(category.tags)}"
