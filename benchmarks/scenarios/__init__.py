"""The scenarios, one module each."""

from benchmarks.scenarios import (
    call_many,
    deadlines,
    http_handshake,
    http_stateless,
    keyword_search,
    layers,
    list_many,
    memory,
    register_many,
    start,
    stdio_pipelined,
    stdio_serial,
    workers,
)

SCENARIOS = tuple(
    module.SCENARIO
    for module in (
        http_stateless,
        http_handshake,
        stdio_pipelined,
        stdio_serial,
        start,
        memory,
        register_many,
        list_many,
        call_many,
        keyword_search,
        deadlines,
        layers,
        workers,
    )
)
