"""The sums of a request are those of its parts, in this process and in others."""

from __future__ import annotations

from rtlang.contract.accounts.request_account import RequestAccount, Tokens, Wait, WorkKind
from rtlang.contract.events import Completion, NodeFinished, Timing, note_end
from rtlang.contract.params import FinishReason, Usage


def account(num_tokens: int, seconds: float) -> RequestAccount:
    made = RequestAccount()
    made.add_tokens(Tokens.OUTPUT, num_tokens)
    made.add_wait(Wait.ROW, seconds)
    made.add_work(WorkKind.STEPS, 2 * seconds)
    return made


def test_nothing_is_noted_of_nothing() -> None:
    assert account(0, 0.0).to_plain() == {}


def test_accounts_add_up() -> None:
    whole = account(3, 1.0)
    whole.add(account(4, 0.5))
    assert whole.to_plain() == {"tokens": {"output": 7}, "waits": {"row": 1.5}, "work": {"steps": 3.0}}
    assert RequestAccount.from_plain(whole.to_plain()) == whole


def test_a_difference_holds_what_is_new() -> None:
    before, now = account(3, 1.0), account(5, 1.25)
    now.add_tokens(Tokens.PROMPT, 2)
    assert now.since(before).to_plain() == {
        "tokens": {"output": 2, "prompt": 2},
        "waits": {"row": 0.25},
        "work": {"steps": 0.5},
    }
    assert now.since(None) is now
    assert before.since(now).to_plain() == {}


def test_the_first_token_is_the_earliest_of_all_nodes() -> None:
    made = RequestAccount()
    for run_s, first_s in ((5.0, 2.0), (6.0, 1.0)):
        completion = Completion("x", (1,), FinishReason.STOP)
        note_end(made, NodeFinished(1, 1, None, (completion,), Usage(1, 0, 1), Timing(0.0, first_s, 3.0)), run_s)
    assert made.first_token_s == 4.0
    assert made.finish_reasons == {"stop": 2}
