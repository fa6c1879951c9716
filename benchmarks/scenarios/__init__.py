"""What is measured: one module for each scenario."""

from benchmarks.scenarios import (
    call_many,
    deadlines,
    http_legacy,
    http_modern,
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
        http_modern,
        http_legacy,
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
