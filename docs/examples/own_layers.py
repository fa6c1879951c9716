import logging
from typing import Any

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Context, Refused, ToolError, tool
from axolotl_core.errors import InputRequired, Overloaded
from axolotl_core.features.spec import FeatureSpec
from axolotl_core.layers import Call, ILayer, Invoke

log = logging.getLogger("acme.calls")


# region license
class LicenseLayer(ILayer):
    """Limits calls of tools tagged "cad" to the number of licenses; further calls are refused."""

    def __init__(self, licenses: int) -> None:
        self.free = licenses

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        if "cad" not in spec.feature.tags:
            return call_next

        async def licensed(call: Call) -> Any:
            if self.free == 0:
                raise Overloaded("All licenses are in use; try again", retry_after_seconds=5)
            self.free -= 1
            try:
                return await call_next(call)
            finally:
                call.when_code_ended(self._give_back)

        return licensed

    def _give_back(self) -> None:
        self.free += 1


# endregion license


# region outcome
class OutcomeLayer(ILayer):
    """Logs once how each tool call ended, before the caller gets its answer."""

    def wrap(self, spec: FeatureSpec, call_next: Invoke) -> Invoke:
        if spec.kind != "tool":
            return call_next

        async def noted(call: Call) -> Any:
            call.when_abandoned(lambda: log.info("%s: abandoned (%s)", spec.name, call.cancel_reason))
            try:
                output = await call_next(call)
            except BaseException as error:
                self._note(call, _outcome(error))
                raise
            self._note(call, "done")
            return output

        return noted

    def _note(self, call: Call, outcome: str) -> None:
        if call.abandoned:
            return
        log.info("%s: %s", call.spec.name, f"stopped ({call.cancel_reason})" if call.cancelled else outcome)


def _outcome(error: BaseException) -> str:
    match error:
        case Refused():
            return "refused"
        case ToolError():
            return "returned an error"
        case InputRequired():
            return "asked the user"
        case _:
            return "failed"


# endregion outcome


class Material(BaseModel):
    name: str


@tool(tags=frozenset({"cad"}))
async def draw(part: str, context: Context) -> str:
    """Draw a part."""
    if part == "":
        raise ToolError("Name the part to draw.")
    if part == "bolt":
        return "a bolt"
    return f"{part} of {(await context.ask(Material, 'Of what?')).name}"


# region container
class Container(containers.DeclarativeContainer):
    licenses = providers.Singleton(LicenseLayer, 2)
    layers = providers.List(providers.Singleton(OutcomeLayer), licenses)
    tools = providers.List(providers.Object(draw))


# endregion container
