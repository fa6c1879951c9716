"""A build hook that adds the software bill of materials to a wheel, if `make dist` has written one."""

from pathlib import Path
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SBOM = "build/axolotl-mcp.cdx.json"


class SbomHook(BuildHookInterface[BuilderConfig]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard" and Path(self.root, SBOM).is_file():
            build_data["sbom_files"].append(SBOM)
