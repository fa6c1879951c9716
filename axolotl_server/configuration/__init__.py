"""Where settings come from: flags, the environment, `.env`, a file, the container; the first that speaks is heard."""

from axolotl_server.configuration.loading import Weighed, load_settings, weigh
from axolotl_server.configuration.sourced_values import Layer, Origin
from axolotl_server.configuration.settings_file import FileSettings, find_file

__all__ = ["FileSettings", "Layer", "Origin", "Weighed", "find_file", "load_settings", "weigh"]
