"""Takes the screenshots of the console for the documentation: `python -m tests.browser`."""

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.browser.chromium import Browser, find_chromium
from tests.browser.screenshots import take_all


async def main() -> None:
    """Start a browser and take all screenshots."""
    program = find_chromium()
    if program is None:
        sys.exit("There is no Chromium: install it, or name it in CHROMIUM.")
    with TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        browser = Browser(program, Path(directory))
        await browser.start()
        try:
            await take_all(browser)
        finally:
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
