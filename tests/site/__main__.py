"""The command that builds the site: `python -m tests.site`."""

import logging

from tests.site.building import ROOT, build

if __name__ == "__main__":
    logging.disable(logging.CRITICAL)  # the errors of the reference are provoked
    folder = build().relative_to(ROOT)
    print(f"{folder}/index.html is ready; serve it with: python -m http.server --directory {folder} --bind 127.0.0.1")
