# A server in a container: docker build -t axolotl-mcp:0.1.0 .
# Pin the base image by its digest where you build for production: --build-arg PYTHON=3.13-slim-bookworm@sha256:...
ARG PYTHON=3.13-slim-bookworm

FROM python:${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
WORKDIR /build
# Everything that is installed has a hash in the lock; a file that was changed on its way ends the build.
COPY requirements/runtime.lock requirements/runtime.lock
RUN python -m venv --without-pip /opt/axolotl \
    && pip --python /opt/axolotl/bin/python install --require-hashes --only-binary :all: -r requirements/runtime.lock
COPY LICENSE README.md pyproject.toml ./
COPY axolotl_core axolotl_core
COPY axolotl_server axolotl_server
COPY axolotl_cli axolotl_cli
COPY axolotl_examples axolotl_examples
RUN pip --python /opt/axolotl/bin/python install --no-index --no-deps --no-build-isolation .

FROM python:${PYTHON}
# tini hands signals on and buries orphans, which a process that is the first of its kind has to do.
# It comes from the base image's distribution, which has one version of it at a time.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends tini \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 10001 axolotl \
    && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /srv --shell /usr/sbin/nologin axolotl
COPY --from=build /opt/axolotl /opt/axolotl
# Nobody gets in from outside unless authentication is set up: without it the server refuses to start at this address.
ENV PATH=/opt/axolotl/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    AXOLOTL_HTTP__HOST=0.0.0.0 \
    AXOLOTL_LOG__FORMAT=json
WORKDIR /srv
# By number, so that an orchestrator can see that it is not root.
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["axolotl", "health", "--timeout", "4"]
ENTRYPOINT ["tini", "--", "axolotl"]
CMD ["serve", "--transport", "http"]
