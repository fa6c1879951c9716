"""The command behind `make site`."""

from tests.site.building import build

if __name__ == "__main__":
    build()
    print("site/index.html is ready; serve it with: python -m http.server --directory site --bind 127.0.0.1")
