"""The project under test: its settings file, and a fresh container for each block."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from dependency_injector import containers, providers

from axolotl_core.errors import ConfigurationError
from axolotl_core.names import did_you_mean
from axolotl_server.hosting.container_loading import load_container
from axolotl_server.settings.settings_file import FileSettings, find_file, read_settings_file

ContainerSource: TypeAlias = containers.Container | Callable[[], containers.Container] | str
"""A container class, a function that makes a container, a target such as `pkg.module:Container`, or a container."""

SettingsSource: TypeAlias = Mapping[str, Any] | str | Path
"""Settings in the form of the settings file, or the path of another settings file."""

DEFAULT_PROFILE = "test"
"""The profile that fixtures use if the settings file has it."""

_NOT_IN_TESTS = ("audit", "telemetry")
"""Sections that tests leave out, so that they neither write to the audit log of production nor send anything."""


class OpenProject(NamedTuple):
    """A container with its overrides, and the settings that it is started with."""

    container: containers.Container
    file: FileSettings
    flags: Mapping[str, Any]


class Project:
    """The project that a test belongs to: that of the nearest settings file above the test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def settings_file(self, settings: SettingsSource | None, profile: str | None) -> FileSettings:
        """Read the settings file and select a profile; the default profile may be missing."""
        if isinstance(settings, str | Path):
            file = read_settings_file(Path(settings).absolute())
        else:
            file = find_file(self.directory)
        is_missing = profile == DEFAULT_PROFILE and profile not in file.profiles
        return file.select(None if is_missing else profile)

    @contextmanager
    def open(
        self,
        source: ContainerSource | None,
        *,
        overrides: Mapping[str, Any],
        settings: SettingsSource | None,
        profile: str | None,
    ) -> Iterator[OpenProject]:
        """Make the container and override providers; reset the overrides after the block.

        The block runs in the directory of the settings file, like the commands. The settings file applies only to the
        project's own container, and without the sections `audit` and `telemetry`, unless the profile has them too.
        """
        has_file = source is None or isinstance(settings, str | Path)
        file = self.settings_file(settings, profile).without(*_NOT_IN_TESTS) if has_file else FileSettings()
        flags = settings if isinstance(settings, Mapping) else {}
        with ExitStack() as stack:
            if file.path is not None and file.path.parent != Path.cwd():
                stack.enter_context(chdir(file.path.parent))
            container = _make(self._target(file) if source is None else source)
            for name, value in overrides.items():
                stack.callback(_override(container, name, value))
            yield OpenProject(container, file, flags)

    def _target(self, file: FileSettings) -> str:
        if file.target is not None:
            return file.target
        place = f"{file.path} has no target" if file.path else f"there is no axolotl.toml in {self.directory} or above"
        raise ConfigurationError(
            f'There is no container: {place}. Write target = "pkg.module:Container" there, or pass a container to the '
            "fixture"
        )


def override(provider: Any, value: Any) -> Callable[[], object]:
    """Override a provider with another provider or an object, and return the function that undoes it."""
    provider.override(value if isinstance(value, providers.Provider) else providers.Object(value))
    undo: Callable[[], object] = provider.reset_last_overriding
    return undo


def _make(source: ContainerSource) -> containers.Container:
    if isinstance(source, str):
        made = load_container(source)
    elif isinstance(source, containers.Container) and not isinstance(source, type):
        made = source
    elif callable(source):
        made = source()
    else:
        raise TypeError(f"{source!r} is not a container, a container class or a target")
    made.reset_singletons()  # a target may name a container that other tests have used
    return made


def _override(container: containers.Container, name: str, value: Any) -> Callable[[], object]:
    """Override the provider with a dotted name."""
    found: Any = container
    names = name.split(".")
    for number, part in enumerate(names):
        known: Mapping[str, Any] = getattr(found, "providers", {})
        if part not in known:
            there_are = f"; there are {', '.join(sorted(known)) or 'none'}"
            hint = did_you_mean(name, _provider_names(container), there_are)
            place = f"The container {'.'.join(names[:number])!r}" if number else "The container"
            raise ConfigurationError(f"overrides: {place} has no provider {part!r}{hint}")
        found = known[part]
    return override(found, value)


def _provider_names(container: Any, prefix: str = "") -> Iterator[str]:
    for name, provider in container.providers.items():
        yield f"{prefix}{name}"
        if isinstance(provider, providers.Container):
            yield from _provider_names(provider, f"{prefix}{name}.")
