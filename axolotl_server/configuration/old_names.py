"""Names that settings had, with what to do about each; imported only when a key is unknown."""

from typing import Final

from axolotl_server.configuration.origins import Keys, dotted

_FIXED: Final = "its value is fixed now, remove it"
_IN_CODE: Final = "set it in the code of the tool"
_SHARE: Final = "use limits.share_per_caller"
_BUFFER: Final = "use http.max_buffer_bytes"
_REQUEST: Final = "use http.request_timeout_seconds"

_ADVICE: Final = {
    "audit.kinds": "all kinds of features are recorded, remove it",
    "audit.max_rejections_per_minute": _FIXED,
    "audit.sqlite_path": "use audit.jsonl_path",
    "audit.timeout_seconds": _FIXED,
    "auth.clock_skew_seconds": _FIXED,
    "auth.fetch_max_bytes": _FIXED,
    "auth.jwks_cache_seconds": _FIXED,
    "auth.jwks_file": "use auth.jwks",
    "auth.jwks_url": "use auth.jwks",
    "auth.token_cache_size": _FIXED,
    "authorization.mode": "without rules and default nothing is restricted; use authorization.default",
    "authorization.timeout_seconds": _FIXED,
    "console.recent_calls": _FIXED,
    "health.cache_seconds": _FIXED,
    "health.live_path": "it is /livez now, remove it",
    "health.path": "it is /health now, remove it",
    "health.ready_path": "it is /readyz now, remove it",
    "health.startup_path": "it is /startupz now, remove it",
    "http.body_timeout_seconds": _REQUEST,
    "http.header_timeout_seconds": _REQUEST,
    "http.max_buffered_body_bytes": _BUFFER,
    "http.max_connections_per_address": _SHARE,
    "http.max_head_bytes": _FIXED,
    "http.max_headers": _FIXED,
    "http.max_running_body_bytes": _BUFFER,
    "http.max_unread_bytes": _BUFFER,
    "http.watch_after_seconds": _FIXED,
    "http.write_timeout_seconds": _FIXED,
    "idempotency.claim_seconds": _FIXED,
    "idempotency.max_entries": "use idempotency.max_bytes",
    "idempotency.max_record_bytes": _FIXED,
    "idempotency.store_timeout_seconds": _FIXED,
    "limits.cancel_grace_seconds": _FIXED,
    "limits.close_seconds": _FIXED,
    "limits.loop_stall_seconds": _FIXED,
    "limits.max_inflight_per_principal": _SHARE,
    "limits.max_json_values": _FIXED,
    "limits.max_loop_lag_seconds": _FIXED,
    "limits.threads_per_tool": _FIXED,
    "metrics.path": "it is /metrics now, remove it",
    "protocol.log_level": _FIXED,
    "protocol.log_messages_per_second": _FIXED,
    "protocol.page_size": _FIXED,
    "protocol.progress_per_second": _FIXED,
    "protocol.state_ttl_seconds": _FIXED,
    "quotas.max_entries": _FIXED,
    "quotas.store_retry_seconds": _FIXED,
    "quotas.store_timeout_seconds": _FIXED,
    "redis.connections": _FIXED,
    "server.publish_contract": "the contract is not published any more, remove it",
    "sessions.max_event_bytes": "use sessions.max_total_event_bytes",
    "sessions.max_events": _FIXED,
    "sessions.maximum_per_principal": _SHARE,
    "sessions.retry_seconds": _FIXED,
    "sessions.store_timeout_seconds": _FIXED,
    "sessions.stream_replies": 'use sessions.resumable = "replies"',
    "stdio.drain_seconds": _FIXED,
    "stdio.end_with_parent": _FIXED,
    "subscriptions.maximum_per_principal": _SHARE,
    "subscriptions.maximum_per_request": _FIXED,
    "subscriptions.maximum_resources": _FIXED,
    "telemetry.flush_seconds": _FIXED,
    "tools.*.coerce_arguments": _IN_CODE,
    "tools.*.execution": _IN_CODE,
    "tools.*.max_result_bytes": _IN_CODE,
    "tools.*.max_timeout_seconds": _IN_CODE,
    "tools.*.pool": _IN_CODE,
    "tools.*.queue_timeout_seconds": _IN_CODE,
    "tools.name_matching": "the case of tool names is always ignored, remove it",
    "toolsets.*.max_result_bytes": _IN_CODE,
    "toolsets.*.max_timeout_seconds": _IN_CODE,
    "toolsets.*.pool": _IN_CODE,
    "toolsets.*.queue_limit": _IN_CODE,
    "toolsets.*.queue_timeout_seconds": _IN_CODE,
}
"""What to do instead, by old name; `*` stands for the name of a tool or tool set."""


def advice_about(keys: Keys) -> str | None:
    """Return what to do about a key that was a setting once."""
    of_tool = len(keys) == 3 and keys[0] in ("tools", "toolsets")
    return _ADVICE.get(dotted((keys[0], "*", keys[2])) if of_tool else dotted(keys))
