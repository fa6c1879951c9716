"""Names that settings had, with what to do about each; imported only when a key is unknown."""

from typing import Final

from axolotl_server.settings.origins import Keys, dotted

_OLD_NAMES: Final = {
    "all kinds of features are recorded, remove it": "audit.kinds",
    "its value is fixed now, remove it": """
        audit.max_rejections_per_minute audit.timeout_seconds auth.clock_skew_seconds auth.fetch_max_bytes
        auth.jwks_cache_seconds auth.token_cache_size authorization.timeout_seconds console.recent_calls
        health.cache_seconds http.max_head_bytes http.max_headers http.watch_after_seconds
        http.write_timeout_seconds idempotency.claim_seconds idempotency.max_record_bytes
        idempotency.store_timeout_seconds limits.cancel_grace_seconds limits.close_seconds
        limits.loop_stall_seconds limits.max_json_values limits.max_loop_lag_seconds limits.threads_per_tool
        protocol.log_level protocol.log_messages_per_second protocol.page_size protocol.progress_per_second
        protocol.state_ttl_seconds quotas.max_entries quotas.store_retry_seconds
        quotas.store_timeout_seconds redis.connections sessions.max_events sessions.retry_seconds
        sessions.store_timeout_seconds stdio.drain_seconds stdio.end_with_parent
        subscriptions.maximum_per_request subscriptions.maximum_resources telemetry.flush_seconds
    """,
    "use audit.jsonl_path": "audit.sqlite_path",
    "use auth.jwks": "auth.jwks_file auth.jwks_url",
    "without rules and default nothing is restricted; use authorization.default": "authorization.mode",
    "it is /livez now, remove it": "health.live_path",
    "it is /health now, remove it": "health.path",
    "it is /readyz now, remove it": "health.ready_path",
    "it is /startupz now, remove it": "health.startup_path",
    "use http.request_timeout_seconds": "http.body_timeout_seconds http.header_timeout_seconds",
    "use http.max_buffer_bytes": "http.max_buffered_body_bytes http.max_running_body_bytes http.max_unread_bytes",
    "use limits.share_per_caller": """
        http.max_connections_per_address limits.max_inflight_per_principal sessions.maximum_per_principal
        subscriptions.maximum_per_principal
    """,
    "use idempotency.max_bytes": "idempotency.max_entries",
    "it is /metrics now, remove it": "metrics.path",
    "the contract is not published any more, remove it": "server.publish_contract",
    "use sessions.max_total_event_bytes": "sessions.max_event_bytes",
    'use sessions.resumable = "replies"': "sessions.stream_replies",
    "set it in the code of the tool": """
        tools.*.coerce_arguments tools.*.execution tools.*.max_result_bytes tools.*.max_timeout_seconds
        tools.*.pool tools.*.queue_timeout_seconds toolsets.*.max_result_bytes
        toolsets.*.max_timeout_seconds toolsets.*.pool toolsets.*.queue_limit
        toolsets.*.queue_timeout_seconds
    """,
    "the case of tool names is always ignored, remove it": "tools.name_matching",
}
"""The old names by what to do instead; `*` stands for the name of a tool or tool set."""

ADVICE: Final = {name: advice for advice, names in _OLD_NAMES.items() for name in names.split()}


def advice_about(keys: Keys) -> str | None:
    """Return what to do about a key that was a setting once."""
    of_tool = len(keys) == 3 and keys[0] in ("tools", "toolsets")
    return ADVICE.get(dotted((keys[0], "*", keys[2])) if of_tool else dotted(keys))
