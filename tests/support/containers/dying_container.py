"""A container whose process dies while it starts."""

import os

os._exit(7)
