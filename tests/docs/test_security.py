"""Every claim of the threat model in SECURITY.md is checked by tests, which this file names.

Sentences that only give advice, or say what is not claimed, are listed in `ADVICE`.
"""

from __future__ import annotations

import ast
import hmac
import re
from functools import cache
from pathlib import Path

import pytest

from rtlang.contract.config import ServeConfig
from rtlang.serve.network.key_table import KeyTable

ROOT = Path(__file__).parents[2]

CLAIMS: dict[str, tuple[str, ...]] = {
    "`rtlang questions --port` listens": (
        "tests/console/questions/test_page.py::test_other_sites_and_names_are_refused",
    ),
    "Questions, which a model may have written": (
        "tests/console/questions/test_page.py::test_the_page_has_a_form_for_each_question_and_escapes_texts",
    ),
    "Answers are checked against": (
        "tests/console/questions/test_page.py::test_forms_give_checked_answers",
        "tests/console/questions/test_page.py::test_the_api_gives_checked_answers",
    ),
    "Clients are not trusted.": ("tests/system/test_fuzz.py", "tests/system/test_abuse.py"),
    "Messages are limited in bytes": (
        "tests/protocol/test_serialization.py::test_malformed_msgpack_is_one_error",
        "tests/protocol/test_serialization.py::test_malformed_json_is_one_error",
        "tests/protocol/test_serialization.py::test_nested_announcements_do_not_reserve_memory",
        "tests/serve/http/test_body.py::test_a_body_that_turns_out_too_long_is_refused",
        "tests/serve/test_connection.py::test_no_sequence_of_messages_raises",
    ),
    "Graphs are limited in nodes": (
        "tests/contract/graph/test_checks.py::test_a_broken_rule_names_node_and_field",
        "tests/contract/graph/test_checks.py::test_control_nodes_nest_to_a_stated_depth",
        "tests/contract/test_params.py::test_a_wrong_value_is_refused_by_name",
        "tests/runtime/test_admission.py::test_what_does_not_fit_is_refused_whole_and_what_never_fits_is_another_error",
    ),
    "Constraints are limited in size": (
        "tests/grammars/spec/test_limits.py",
        "tests/grammars/api/test_rtlang_backend.py::test_limits_bound_a_compile",
        "tests/engine/constraints/test_compiler.py::test_a_compilation_that_takes_too_long_fails_and_is_not_kept",
    ),
    "A constraint compiles beside the engine": (
        "tests/engine/constraints/test_lanes.py::test_hostile_patterns_hold_up_a_small_one_by_one_slice",
        "tests/system/test_abuse.py::test_hostile_constraints",
    ),
    "Responses, conversations and background runs are limited": (
        "tests/serve/responses/test_store.py::test_the_bound_holds_under_random_use",
        "tests/serve/responses/test_conversations.py::test_a_conversation_that_outgrows_its_share_stays_as_it_was",
        "tests/serve/http/test_background_responses.py::test_unfinished_ones_are_bounded_and_old_events_are_dropped",
        "tests/serve/http/test_background_responses.py::test_nobody_else_sees_it",
        "tests/serve/responses/test_conversations.py::test_items_are_added_and_removed_for_the_owner_only",
    ),
    "The opaque items of `/v1/responses`": (
        "tests/serve/responses/test_sealing.py::test_a_sealed_value_opens_for_its_owner_and_purpose",
        "tests/serve/responses/test_sealing.py::test_a_changed_text_does_not_open",
    ),
    "Files and batches are limited": (
        "tests/serve/batch/test_file_store.py::test_bytes_of_all_files_of_a_principal_are_bounded",
        "tests/serve/batch/test_file_store.py::test_a_file_belongs_to_its_principal_until_it_is_deleted_or_expires",
        "tests/serve/batch/test_batches.py::test_the_batches_of_a_principal_are_bounded",
        "tests/serve/batch/test_batches.py::test_results_beyond_the_quota_fail_the_batch_and_keep_what_there_is",
        "tests/serve/http/routes/test_files.py::test_a_file_is_uploaded_listed_read_and_deleted_by_its_principal_alone",
    ),
    "A batch is checked as a whole": (
        "tests/serve/batch/test_batches.py::test_a_bad_file_fails_before_a_request_runs",
        "tests/serve/batch/test_batches.py::test_each_request_runs_once_at_the_lowest_priority_and_within_a_share_of_the_limits",
    ),
    "Sessions and the token history belong to one key": (
        "tests/engine/sessions/test_session_table.py::test_many_tiny_chains_are_bounded_and_leave_others_theirs",
        "tests/engine/sessions/test_token_chain.py::test_digests_depend_on_the_prefix_and_the_root_only",
        "tests/model/text/test_token_history.py::test_tokens_of_one_principal_or_salt_are_never_those_of_another",
        "tests/model/text/test_token_history.py::test_memory_is_bounded_for_each_principal_and_for_all",
        "tests/serve/http/routes/test_live_view.py::test_sessions_are_listed_for_those_who_may_see_them",
    ),
    "The names that clients give to sessions": (
        "tests/engine/sessions/test_engine_sessions.py::test_marks_of_calls_keys_and_principals_are_noted",
        "tests/engine/sessions/test_session_table.py::test_sessions_are_those_of_string_prefixes",
    ),
    "The server calls tools of the MCP servers": (
        "tests/serve/http/test_mcp_rounds.py::test_what_is_not_listed_is_refused_by_name",
        "tests/serve/responses/test_mcp_servers.py::test_labels_and_servers_are_checked",
    ),
    "The rounds, the tools and the results": ("tests/serve/http/test_mcp_rounds.py::test_calls_and_tools_are_limited",),
    "The server writes the uploads": (
        "tests/serve/batch/test_file_store.py::test_a_file_belongs_to_its_principal_until_it_is_deleted_or_expires",
        "tests/serve/batch/test_file_store.py::test_a_later_process_finds_what_was_whole",
    ),
    "New folders are readable": (
        "tests/serve/batch/test_file_store.py::test_a_file_belongs_to_its_principal_until_it_is_deleted_or_expires",
    ),
    "Names in the folder are made by the server": (
        "tests/serve/http/routes/test_files.py::test_a_file_is_uploaded_listed_read_and_deleted_by_its_principal_alone",
        "tests/serve/batch/test_file_store.py::test_a_folder_that_cannot_be_used_is_named",
    ),
    "`rtlang mcp --http` listens on loopback only": ("tests/console/mcp/test_commands.py::test_a_mistake_is_one_line",),
    "The arguments of a call are checked": (
        "tests/console/mcp/test_program_server.py::test_what_fails_is_a_result_with_the_message",
    ),
    "Work on texts takes turns between keys.": (
        "tests/work/test_fair_queue.py",
        "tests/test_forbidden.py::test_work_of_requests_takes_turns_between_principals",
    ),
    "However many long texts one key sends": (
        "tests/system/test_fair_turns.py::test_tokenizations_of_one_key_hold_up_no_request_of_another",
        "tests/fleet/host/test_engine_host.py::test_calls_take_turns_between_principals_and_dropped_ones_are_not_answered",
    ),
    "Work is refused only for the key": (
        "tests/system/test_fair_turns.py::test_a_key_that_fills_its_queue_is_refused_and_another_is_not",
        "tests/work/test_fair_queue.py::test_an_owner_is_refused_for_its_own_jobs_only",
    ),
    "No reference is fetched.": (
        "tests/test_forbidden.py::test_no_part_that_a_request_passes_starts_processes_or_fetches",
    ),
    "Connections, streams and waiting requests are limited": (
        "tests/serve/network/test_socket_counts.py::test_limits_hold_in_total_and_for_each_address",
        "tests/serve/test_service_keys.py::test_connections_of_one_principal_are_limited",
        "tests/serve/test_connection.py::test_too_many_streams_are_refused_one_by_one",
        "tests/runtime/test_admission.py::test_no_client_can_take_all_places",
        "tests/runtime/test_admission.py::test_limits_of_a_principal_hold_for_all_of_its_clients",
    ),
    "So are the bytes that wait": (
        "tests/serve/test_websocket.py::test_a_backlogged_client_is_closed_without_affecting_others",
        "tests/serve/test_websocket.py::test_a_client_that_sends_but_never_reads_is_closed",
        "tests/serve/test_resumable.py::test_all_logs_together_stay_within_their_memory",
        "tests/serve/websocket_mode/test_socket.py::test_a_client_that_does_not_read_is_closed_and_its_response_cancelled",
        "tests/serve/websocket_mode/test_lanes.py::test_what_waits_and_the_names_of_lanes_are_bounded",
    ),
    "Functions of values are priced before they run": (
        "tests/contract/graph/test_function_costs.py::test_every_function_has_a_price_that_grows_with_the_sum_of_its_arguments",
        "tests/contract/graph/test_function_costs.py::test_a_result_that_is_too_large_is_refused_before_it_is_built",
        "tests/runtime/executors/test_value_nodes.py::test_many_references_to_one_large_value_end_in_a_value_or_a_typed_error",
    ),
    "Long ones run beside the engine.": (
        "tests/runtime/executors/test_value_nodes.py::test_work_above_a_small_price_leaves_the_engine_thread",
    ),
    "The memory of values is limited by graph and by key.": (
        "tests/runtime/executors/test_value_nodes.py::test_the_memory_of_values_is_limited_and_given_back",
        "tests/runtime/executors/test_value_nodes.py::test_loops_branches_calls_and_known_outcomes_count",
    ),
    "A request fails alone": (
        "tests/model/test_sampler.py::test_a_row_that_is_not_finite_fails_alone",
        "tests/engine/constraints/test_compiler.py::test_a_bad_constraint_fails_its_own_requests_with_an_error_each",
        "tests/engine/constraints/test_compiler.py::test_a_matcher_that_fails_fails_its_own_session_only",
    ),
    "Each row of logits is checked": ("tests/model/test_sampler.py::test_a_row_that_is_not_finite_fails_alone",),
    "Keys are compared in constant time.": ("tests/docs/test_security.py::test_each_key_is_compared_in_constant_time",),
    "Without a key, or an option that allows it": (
        "tests/contract/test_config.py::test_listening_beyond_loopback_needs_a_key_or_consent",
        "tests/contract/test_config.py::test_an_empty_key_is_no_key",
    ),
    "There it answers to loopback host names only": (
        "tests/serve/network/test_access.py::test_loopback_answers_to_no_other_name",
        "tests/serve/http/middleware/test_access_middleware.py::test_another_host_name_is_refused",
        "tests/serve/http/middleware/test_access_middleware.py::test_a_page_of_another_origin_is_refused",
        "tests/system/test_abuse.py::test_pages_of_other_sites_reach_no_route",
    ),
    "No text of a request becomes a label": (
        "tests/contract/service/test_metrics.py::test_reasons_are_those_of_the_engine_and_nothing_else_becomes_a_label",
    ),
    "Without `--tls-certificate` the server speaks plain HTTP.": (
        "tests/serve/network/test_tls.py::test_without_a_certificate_there_is_no_tls",
        "tests/serve/network/test_tls.py::test_clients_that_trust_the_certificate_are_served",
    ),
    "Clients without a key of their own share one namespace": (
        "tests/serve/network/test_key_table.py::test_without_keys_everybody_is_local",
        "tests/cache/test_scope.py::test_without_a_namespace_nothing_changes",
    ),
    "A `cache_salt` divides": (
        "tests/serve/http/routes/test_cache_salt.py::test_a_prefix_is_found_with_the_salt_that_stored_it_alone",
        "tests/cache/test_scope.py::test_forgotten_namespaces_share_nothing_with_their_later_selves",
    ),
    "[Keys](docs/serving.md#keys) have namespaces": (
        "tests/cache/test_scope.py::test_random_sequences_find_those_of_their_namespace_and_public_starts",
        "tests/serve/test_service_keys.py::test_graphs_carry_the_principal_of_their_key",
        "tests/runtime/test_principal_cache.py::test_a_principal_keeps_its_share_and_no_more",
    ),
    "Text from users is encoded without special tokens": (
        "tests/model/text/test_tokenizer.py::test_text_never_becomes_a_special_token_unless_allowed",
        "tests/model/text/test_chat.py::test_names_of_special_tokens_in_contents_stay_plain_text",
        "tests/model/text/test_chat.py::test_a_template_cannot_be_made_to_put_together_a_special_token",
    ),
    "Weights are read from safetensors and GGUF files only.": (
        "tests/model/test_loader.py::test_pickled_weights_are_refused",
        "tests/model/loading/test_hub.py::test_repositories_without_safetensors_are_refused_by_their_list_of_files",
    ),
    "The header of a GGUF file is checked": (
        "tests/model/loading/gguf/test_header.py::test_a_fault_is_named",
        "tests/model/loading/gguf/test_header.py::test_limits_hold_in_huge_files",
        "tests/model/loading/gguf/test_header.py::test_headers_have_a_limit",
    ),
    "The first load of a model on an H100 or H200 starts": (
        "tests/kernels/triton/attention/test_prompt_trial.py::test_what_a_broken_process_printed_counts",
    ),
    "Its figures are JSON in `RTLANG_CACHE_DIR`": (
        "tests/kernels/triton/attention/test_prompt_trial.py::test_a_choice_is_made_once_and_kept",
    ),
    "Pickled checkpoints, also of draft heads, are never loaded": (
        "tests/test_forbidden.py::test_nothing_runs_data_as_code",
    ),
    "A chat template, which a request may also bring": (
        "tests/test_forbidden.py::test_templates_are_rendered_in_a_sandbox",
        "tests/model/text/test_chat_template.py::test_what_would_not_end_or_fill_the_memory_or_leave_the_sandbox_is_an_error",
        "tests/model/text/test_chat_template.py::test_the_time_of_a_rendering_is_limited",
    ),
    "The files of `grammar_cache_dir` are arrays and JSON": (
        "tests/grammars/storage/test_disk_cache.py::test_every_truncation_and_every_changed_byte_is_seen",
        "tests/test_forbidden.py::test_nothing_runs_data_as_code",
    ),
    "`rtlang_grammars` runs object code from its wheel": (
        "tests/grammars/machine/native/test_shipped_code.py::test_a_wheel_masks_without_a_compiler",
        "tests/grammars/machine/native/test_code_files.py::test_code_is_written_to_the_first_folder_that_can_be_written_to",
    ),
    "Code is run only if this user, root or the owner": (
        "tests/grammars/machine/native/test_code_files.py::test_what_others_may_have_written_is_not_run",
    ),
    "A file is named by a digest of the sources": (
        "tests/grammars/machine/native/test_native_code.py::test_code_is_named_by_what_it_is_made_from",
    ),
    "Damaged files and code for another processor are ignored.": (
        "tests/grammars/machine/native/test_code_compiler.py::test_code_of_another_processor_is_refused",
        "tests/grammars/machine/native/test_code_compiler.py::test_a_file_is_read_as_it_was_written_or_not_at_all",
    ),
    "Files that are damaged, of another version": (
        "tests/grammars/storage/test_disk_cache.py::test_files_that_are_no_entries_are_removed_and_said_once",
        "tests/grammars/storage/test_disk_cache.py::test_what_others_may_write_is_not_read",
        "tests/grammars/storage/test_grammar_store.py::test_the_key_is_of_all_that_the_tables_depend_on",
    ),
    "`rtlang run FILE` executes the file.": ("tests/console/test_source.py",),
    "A server never receives code": (
        "tests/test_forbidden.py::test_nothing_runs_data_as_code",
        "tests/contract/graph/test_plain_form.py",
    ),
    "The search for a `stop_regex` is bounded in time.": (
        "tests/system/test_abuse.py::test_stop_patterns_that_backtrack",
    ),
}
"""By the beginning of a sentence, the tests that would fail if it were false: whole files or functions."""

ADVICE = (
    "Who may write to the folder of a journal",
    "Each claim of this section has tests",
    "A command of `--mcp-servers` or `rt.mcp` runs with your rights.",
    "All clients share one session with a listed server",
    "The model chooses the arguments of a call",
    "The result of a tool may hold instructions",
    "Everything they send is bounded and validated before the engine sees it:",
    "Not protected:",
    "The compiled constraints are shared by all.",
    "Beyond loopback, set it or put a reverse proxy in front.",
    "rtlang constrains the form of a text, not its meaning.",
    "A checksum is not a signature: keep the directory writable for trusted users only.",
    "Nothing signs this code:",
    "A changed one can choose a slower or less exact kernel",
    "A program is your own Python code and runs with your rights.",
)


def sentences() -> list[str]:
    """The sentences of the threat model."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("## Threat model")[2]
    blocks = re.split(r"\n\s*\n|\n(?=- )", text)
    joined = [" ".join(block.removeprefix("- ").split()) for block in blocks if block.strip() and "###" not in block]
    return [
        each for block in joined for each in re.split(r"(?<=[.:]) (?=[A-Z`\[]|rtlang )|(?<=\.\)) (?=[A-Z`])", block)
    ]


@cache
def names_in(path: str) -> set[str]:
    """The names of the tests of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    return {each.name for each in functions if each.name.startswith("test_")}


def test_every_sentence_is_a_claim_with_tests_or_advice() -> None:
    begins = [*CLAIMS, *ADVICE]
    unknown = [each for each in sentences() if not any(each.startswith(begin) for begin in begins)]
    gone = [begin for begin in begins if not any(each.startswith(begin) for each in sentences())]
    assert (unknown, gone) == ([], [])


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_tests_of_a_claim_exist(claim: str) -> None:
    for test in CLAIMS[claim]:
        path, _, name = test.partition("::")
        assert names_in(path), path
        assert not name or name in names_in(path), test


def test_each_key_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(given: bytes, expected: bytes) -> bool:
        compared.append(expected)
        return given == expected

    table = KeyTable(ServeConfig(api_key="one"))
    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert table.principal_of("one") is not None
    assert table.principal_of("two") is None
    assert len(compared) == 2  # the one key, for each question
