"""A container whose code writes to standard output in every possible way."""

import os
import subprocess
import sys

from dependency_injector import containers, providers

from axolotl_core import tool


def make_noise() -> None:
    """Write through Python, through the file descriptor and from a child process."""
    print("noise from print")
    os.write(1, b"noise from the descriptor\n")
    subprocess.run([sys.executable, "-c", "print('noise from a child')"], check=True)


make_noise()


@tool
def shout(text: str) -> str:
    """Make noise and then shout.

    Args:
        text: What is shouted.
    """
    make_noise()
    return text.upper()


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(shout))
