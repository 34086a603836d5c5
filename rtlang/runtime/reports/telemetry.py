"""Records the engine's metrics: counters and gauges per step, latencies per token and per request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rtlang.contract.node_work import NodeWork, expected_output
from rtlang.contract.service.metrics import Metrics
from rtlang.engine.drafts.drafter import Drafter
from rtlang.engine.engine import Engine
from rtlang.engine.requests.request import RequestOutput
from rtlang.model.runner import Runner
from rtlang.runtime.reports.principal_meter import PrincipalMeter


class Telemetry:
    """Updates the metrics of one engine. Used on the engine thread."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics, self._principals = metrics, PrincipalMeter(metrics.principals)
        self._seen: dict[str, int] = {}
        self._seen_drafts: dict[str, tuple[int, int]] = {}
        self._last_token_time: dict[int, float] = {}  # by request id, while the request runs
        self._last_step_end: float | None = None

    def after_step(self, engine: Engine, outputs: Sequence[RequestOutput], started: float, ended: float) -> None:
        """Record a step that ran from `started` to `ended`, in seconds of the engine's clock."""
        metrics, cache, scheduler = self._metrics, engine.cache, engine.scheduler
        self._count(
            {
                "engine_steps": engine.num_steps,
                "generation_tokens": engine.num_generated_tokens,
                "prompt_tokens": engine.num_prompt_tokens,
                "num_preemptions": scheduler.num_preemptions,
                "prefix_cache_queries": cache.stats.num_queried_tokens,
                "prefix_cache_hits": cache.stats.num_hit_tokens,
                "retention_refused": cache.retention.num_refused,
                "retention_revoked": cache.retention.num_revoked,
                "cache_evicted_pages": cache.stats.num_evicted_pages,
            }
        )
        if engine.sessions is not None:
            self._count(
                {
                    "returning_tokens": engine.sessions.num_returning_tokens,
                    "returning_tokens_cached": engine.sessions.num_cached_tokens,
                    "suspended_sessions": engine.sessions.residency.num_suspended,
                }
            )
        if cache.states is not None:
            self._count(cache.states.stats.counts)
            metrics.states.set(cache.states.num_slots)
            metrics.states_free.set(cache.states.num_free)
        if engine.drafter is not None:
            self._count_drafts(engine.drafter)
        metrics.step_cost_error.set(engine.step_cost.error)
        for tier in engine.tiers:
            if engine.transfers is not None:
                self._count({f"cache_{tier.name}_loaded_pages": engine.transfers.num_fetched[tier.name]})
                self._count({f"cache_{tier.name}_recomputed_pages": engine.transfers.num_recomputed[tier.name]})
            if tier.name != "host":
                self._count({f"cache_{tier.name}_bad_pages": tier.stats.num_bad})
            if tier.name == "peer":
                metrics.cache_peers_connected.set(tier.stats.num_connected)
            else:
                getattr(metrics, f"cache_{tier.name}_used_bytes").set(tier.stats.num_bytes)
        if engine.transfers is not None and engine.transfers.server is not None:
            self._count({"cache_served_pages": engine.transfers.server.stats.num_pages})
        metrics.num_requests_running.set(len(scheduler.running))
        metrics.num_requests_waiting.set(scheduler.num_waiting)
        metrics.kv_pages.set(cache.num_pages)
        metrics.kv_pages_free.set(cache.num_free)
        metrics.kv_pages_held.set(cache.num_held)
        metrics.kv_cache_usage_perc.set(cache.num_in_use / cache.num_pages)
        if self._last_step_end is not None:
            metrics.engine_step_gap.observe(max(0.0, started - self._last_step_end))
        self._last_step_end = ended if engine.has_work else None
        self._principals.after_step(engine, outputs, started, ended)
        for output in outputs:
            self._observe(output, ended)

    def _observe(self, output: RequestOutput, now: float) -> None:
        metrics, request = self._metrics, output.request
        if output.token_ids:
            before = self._last_token_time.get(request.request_id)
            if before is None:
                metrics.time_to_first_token.observe(now - request.arrival_time)
            else:
                for _ in output.token_ids:  # those of a draft came together
                    metrics.inter_token_latency.observe((now - before) / len(output.token_ids))
            self._last_token_time[request.request_id] = now
        if not output.is_last:
            return
        self._last_token_time.pop(request.request_id, None)
        metrics.e2e_request_latency.observe(now - request.arrival_time)
        if request.stats.first_step_time is not None:
            metrics.request_queue_time.observe(request.stats.first_step_time - request.arrival_time)
        metrics.request_success(str(output.finish_reason))

    def _count_drafts(self, drafter: Drafter) -> None:
        if drafter.model is not None:
            self._count({"draft_model_steps": drafter.model.num_steps})
        for source, num_drafted in drafter.num_drafted.items():
            now = num_drafted, drafter.num_accepted[source]
            before = self._seen_drafts.get(source, (0, 0))
            if now != before:
                self._metrics.draft_tokens(source, now[0] - before[0], now[1] - before[1])
                self._seen_drafts[source] = now

    def _count(self, totals: Mapping[str, int]) -> None:
        for name, total in totals.items():
            grown = total - self._seen.get(name, 0)
            if grown:
                getattr(self._metrics, name).inc(grown)
                self._seen[name] = total


def counters_of_graphs(works_ahead: Sequence[NodeWork]) -> dict[str, int]:
    """Counters of the graphs of a runtime, from the work of the nodes of each that have not begun."""
    return {
        "num_graphs": len(works_ahead),
        "num_prompt_tokens_ahead": round(sum([work.prompt for work in works_ahead])),
        "num_output_tokens_ahead": round(sum([work.output for work in works_ahead])),
    }


def counters(engine: Engine, runner: Runner) -> dict[str, int]:
    """Counters and gauges of an engine and its runner."""
    waiting = list(engine.requests)
    cache, scheduler, drafter = engine.cache, engine.scheduler, engine.drafter
    model = None if drafter is None else drafter.model
    tiers = {
        f"num_pages_{what}_{tier.name}": getattr(tier.stats, field)
        for tier in engine.tiers
        for what, field in (("in", "num_pages"), ("bad_in", "num_bad"))
    }
    if engine.transfers is not None:
        for tier in engine.tiers:
            tiers[f"num_pages_loaded_from_{tier.name}"] = engine.transfers.num_fetched[tier.name]
            tiers[f"num_pages_recomputed_{tier.name}"] = engine.transfers.num_recomputed[tier.name]
            if cache.states is not None:
                tiers[f"num_states_loaded_from_{tier.name}"] = engine.transfers.num_fetched_states[tier.name]
            if tier.name == "peer":
                tiers["num_peers_connected"] = tier.stats.num_connected
        for name, value in zip(("prefill", "fetch"), engine.transfers.ns_per_token, strict=True):
            if value is not None:
                tiers[f"{name}_ns_per_token"] = value
        if engine.transfers.server is not None:
            tiers["num_pages_served"] = engine.transfers.server.stats.num_pages
    states = cache.states
    if states is not None:
        tiers |= {
            "num_states": states.num_slots,
            "num_states_free": states.num_free,
            "num_states_in_use": states.num_private,
        }
        tiers |= {f"num_{name}": value for name, value in states.stats.counts.items()}
    return tiers | {
        "num_drafted_tokens": 0 if drafter is None else drafter.num_drafted.total(),
        "num_accepted_tokens": 0 if drafter is None else drafter.num_accepted.total(),
        "num_draft_model_steps": 0 if model is None else model.num_steps,
        "num_draft_model_pages": 0 if model is None else model.num_pages,
        "num_draft_model_pages_cached": 0 if model is None else model.pages.num_cached,
        "num_steps": engine.num_steps,
        "num_requests_running": len(scheduler.running),
        "num_requests_waiting": scheduler.num_waiting,
        "num_requests_parked": len(scheduler.parked),
        "num_prompt_tokens_waiting": sum(
            [max(0, each.num_target_tokens - each.num_computed_tokens) for each in waiting]
        ),
        "num_output_tokens_waiting": round(
            sum([expected_output(each.spec.params, each.spec.constraint, each.num_output_tokens) for each in waiting])
        ),
        "output_weight_percent": round(100 * (engine.step_cost.output_weight() or 0)),
        "num_preemptions": scheduler.num_preemptions,
        "num_prompt_tokens": engine.num_prompt_tokens,
        "num_cached_tokens": engine.num_cached_tokens,
        "num_generated_tokens": engine.num_generated_tokens,
        "num_pages": cache.num_pages,
        "num_pages_free": cache.num_free,
        "num_pages_cached": cache.num_cached,
        "num_pages_in_use": cache.num_in_use,
        "num_pages_held": cache.num_held,
        "num_tokens_looked_up": cache.stats.num_queried_tokens,
        "num_tokens_hit": cache.stats.num_hit_tokens,
        "num_pages_evicted": cache.stats.num_evicted_pages,
        "num_holds_refused": cache.retention.num_refused,
        "num_holds_revoked": cache.retention.num_revoked,
        "most_pages_in_use": scheduler.most_pages_in_use,
        "num_steps_replayed": runner.num_replayed,
        "num_steps_eager": runner.num_eager,
    }
