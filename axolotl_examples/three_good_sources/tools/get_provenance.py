"""A tool that names the curator and explains how to verify the registry."""

from typing import Final

from axolotl_core import Context, ITool, NoArguments, ToolAnnotations
from axolotl_examples.three_good_sources.loading import RegistryFile, Seal

_COMMAND: Final = f"python -m {__package__.rpartition('.')[0]} verify"


class GetProvenance(ITool[NoArguments, str]):
    """Returns the curator and the signature of the registry."""

    name = "get_provenance"
    title = "Get provenance"
    description = (
        "Get curator identity and verification information for this registry. Returns the curator's name, PKARR public "
        "key (when available), registry version, and instructions for cryptographic verification of source "
        "authenticity. No parameters required."
    )
    annotations = ToolAnnotations(read_only=True, idempotent=True, open_world=False)

    def __init__(self, registry_file: RegistryFile) -> None:
        self._file = registry_file

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        registry = self._file.registry
        identity = (
            f"Curator: {registry.curator.name}\n"
            f"Public Key: {registry.curator.pubkey or 'Not yet configured'}\n"
            f"Registry Version: {registry.version}\n"
            f"Last Updated: {registry.updated}\n"
            f"Endorsements: {len(registry.endorsements)} endorsement(s)\n"
        )
        seal = self._file.seal
        return f"{identity}\nVerification:\n{self._unsigned() if seal is None else self._signed(seal)}"

    def _signed(self, seal: Seal) -> str:
        return (
            f"This registry is curated by {self._file.registry.curator.name}. Source authenticity can be verified\n"
            "using the PKARR public key above. Each source is manually researched\n"
            "and vetted for quality. The registry is cryptographically signed to\n"
            "prevent tampering.\n"
            "\n"
            f"Signed File: {self._file.name}\n"
            f"Digest: {self._file.digest}\n"
            f"Signature (Ed25519): {seal.signature}\n"
            f"Command: {_COMMAND}"
        )

    def _unsigned(self) -> str:
        return (
            f"This registry is curated by {self._file.registry.curator.name}. It is not signed yet, so its\n"
            "author cannot be verified.\n"
            "\n"
            f"File: {self._file.name}\n"
            f"Digest: {self._file.digest}"
        )
