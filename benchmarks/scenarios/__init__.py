"""The scenarios, one module each."""

from benchmarks.scenarios import (
    call_many,
    deadlines,
    http_handshake,
    http_layers,
    http_stateless,
    keyword_search,
    layers,
    list_many,
    memory,
    overload,
    register_many,
    sizes,
    start,
    stdio_pipelined,
    stdio_serial,
    streams,
    tasks,
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
        streams,
        http_layers,
        layers,
        sizes,
        call_many,
        list_many,
        register_many,
        workers,
        tasks,
        overload,
        deadlines,
        keyword_search,
    )
)
