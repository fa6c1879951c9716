# Build: docker build -t axolotl-mcp:0.1.0 .
# The digest is that of the index for all architectures. Dependabot updates it.
ARG PYTHON=3.13-slim-trixie@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

FROM python:${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
WORKDIR /build
# Every package has a hash in the lock file; the build fails if a download was changed.
# The image cannot write bytecode, and without it every start compiles all modules: pip compiles them here.
COPY requirements/runtime.lock requirements/runtime.lock
RUN python -m venv --without-pip /opt/axolotl \
    && pip --python /opt/axolotl/bin/python install --compile --require-hashes --only-binary :all: -r requirements/runtime.lock
COPY LICENSE README.md pyproject.toml ./
COPY axolotl_core axolotl_core
COPY axolotl_server axolotl_server
COPY axolotl_cli axolotl_cli
COPY axolotl_testing axolotl_testing
COPY axolotl_examples axolotl_examples
# Nothing needs the build tools of the lock file afterwards, so they do not become part of the image.
RUN pip --python /opt/axolotl/bin/python install --compile --no-index --no-deps --no-build-isolation . \
    && pip --python /opt/axolotl/bin/python uninstall --yes hatchling packaging pluggy trove-classifiers

FROM python:${PYTHON}
# tini runs as PID 1: it forwards signals and reaps orphaned processes.
# The distribution of the base image offers a single version, so the version is not pinned.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 10001 axolotl \
    && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /srv --shell /usr/sbin/nologin axolotl \
    && install --directory --owner 10001 --group 10001 --mode 0700 /var/lib/axolotl
COPY --from=build /opt/axolotl /opt/axolotl
# Without authentication, the server refuses to start on this address.
ENV PATH=/opt/axolotl/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    AXOLOTL_HTTP__HOST=0.0.0.0 \
    AXOLOTL_LOG__FORMAT=json
WORKDIR /srv
# A numeric id lets an orchestrator verify that it is not root.
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["axolotl", "health", "--timeout", "4"]
# The image has no target: a derived image or the command names one, and without it the server does not start.
ENTRYPOINT ["tini", "--", "axolotl"]
CMD ["serve", "--transport", "http"]
