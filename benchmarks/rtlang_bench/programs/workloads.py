"""The programs that are measured, as a user would write them: a tree of thought, a judge of essays, agents that wait for tools, votes.

Texts have exact lengths in the model's own tokens, and generations fixed lengths, so that token counts do not depend on what the model
writes. Where a value decides what follows, generations are greedy or have seeds.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from rtlang.bench.language import users_program
from rtlang.bench.workloads.text import Encoder, TextMaker
from rtlang.lang import control
from rtlang.lang.program_state import expr as rt
from rtlang_bench.programs.meter import Meter, checked

DELAY_LIMIT_S = 300.0
DECIDED = 0.02  # a temperature at which samples agree
TREE_ROWS, AGENT_PAGES, AGENT_PAGE_SIZE = 6, 160, 8
SCORES = [str(number) for number in range(10)]
TOOLS = ["search", "weather", "calculator"]


@dataclass(frozen=True, slots=True)
class ProgramWorkload:
    """Programs that run at once.

    Attributes:
        play: runs them; called with the meter and the options of a run (`passes`).
        baselines: other ways to run it, by name: what a user writes who does not know the feature that it shows.
    """

    name: str
    summary: str
    play: Callable[[Meter, Mapping[str, Any]], None]
    baselines: Mapping[str, Callable[[Meter, Mapping[str, Any]], None]] = field(default_factory=dict)


def _written(name: str, num_tokens: int, **options: Any) -> Any:
    """A generation of exactly so many tokens."""
    return rt.gen(name, max_tokens=num_tokens, min_tokens=num_tokens, ignore_eos=True, **options)


# -- tree of thought


@users_program
def facts(s: Any, problem: str) -> Any:
    """List the given facts; every branch that needs them calls this program."""
    s += rt.user("List what is given.\n", problem)
    s += rt.assistant(_written("facts", 16))
    return s["facts"]


@users_program
def thoughts(s: Any, problem: str, depths: tuple[int, ...]) -> Any:
    """Branches of unequal depth, each rated; continues with the best."""
    s += rt.user("Solve step by step.\n", problem)
    branches = s.fork(len(depths))
    for number, (branch, depth) in enumerate(zip(branches, depths, strict=True)):
        branch += rt.user("Given: ", facts(problem=problem), "\nApproach ", number, ".")
        for level in range(depth):
            branch += rt.assistant(
                "Step ", level, ": ", _written(f"step {level}", 12), "\nCheck: ", _written(f"check {level}", 6)
            )
            branch += rt.user("Refine it.")
        branch += rt.assistant(
            "Result: ", _written("result", 8), "\nScore: ", rt.gen("score", choices=SCORES, max_tokens=4)
        )
    best = control.best(
        [branch["result"] for branch in branches],
        by=[control.call(int, branch["score"]) for branch in branches],
    )
    s += rt.user("The best result is ", best, ". Explain.")
    s += rt.assistant(_written("answer", 16))
    return s["answer"]


def tree(encoder: Encoder, *, seed: int, quick: bool) -> ProgramWorkload:
    """Several trees of thought, on few rows, so that the order of their requests matters."""
    maker = TextMaker(encoder, seed)
    num_trees, depths = (2, (2, 1)) if quick else (4, (4, 1, 2))
    inputs = [{"problem": maker.text(96), "depths": depths} for _ in range(num_trees)]

    def play(meter: Meter, options: Mapping[str, Any]) -> None:
        checked(thoughts.run_batch(inputs, runtime=meter.target, **options))

    summary = (
        f"{num_trees} problems of 96 tokens, {len(depths)} branches of {', '.join(map(str, depths))} steps each, the best goes on; "
        f"{TREE_ROWS} rows"
    )
    return ProgramWorkload("tree", summary, play)


# -- judge


@users_program
def judge(s: Any, essay: str, rubric: str, criteria: tuple[str, ...]) -> None:
    """Judges an essay under each criterion; the batch asks for the scores only."""
    s += rt.user("Essay:\n", essay, rt.text("\nRubric:\n", rubric), order="free")
    for fork, criterion in zip(s.fork(len(criteria)), criteria, strict=True):
        fork += rt.user("Criterion: ", criterion)
        fork += rt.assistant(
            "Good: ", _written("good", 10), "\nBad: ", _written("bad", 10), "\nScore: ", rt.select("score", SCORES)
        )
        fork += rt.user("How could it be better?")
        fork += rt.assistant(_written("advice", 12))


def judged(encoder: Encoder, *, seed: int, quick: bool) -> ProgramWorkload:
    """Essays under one rubric. The rubric follows the essay. The program also generates advice that no output needs."""
    maker = TextMaker(encoder, seed)
    num_essays, criteria = (2, ("style",)) if quick else (5, ("style", "argument"))
    rubric = maker.text(160)
    inputs = [{"essay": maker.text(120), "rubric": rubric, "criteria": criteria} for _ in range(num_essays)]

    def play(meter: Meter, options: Mapping[str, Any]) -> None:
        checked(judge.run_batch(inputs, runtime=meter.target, outputs=["score"], **options))

    summary = (
        f"{num_essays} essays of 120 tokens, one rubric of 160 (order free), {len(criteria)} criteria, scores asked for"
    )
    return ProgramWorkload("judge", summary, play)


# -- agents


@users_program
async def breaking_agent(s: Any, task: str, num_turns: int, tool: Callable[[int, str], str]) -> None:
    """An agent whose Python code waits for each call and calls the tool itself."""
    s += rt.system("You use tools.")
    s += rt.user(task)
    for turn in range(num_turns):
        s += rt.assistant(
            _written(f"thought {turn}", 8), "\nCall: ", rt.gen(f"call {turn}", choices=TOOLS, max_tokens=8)
        )
        s += rt.user("Result: ", await asyncio.to_thread(tool, turn, await s[f"call {turn}"]))
    s += rt.assistant(_written(f"thought {num_turns}", 8))


@users_program
def whole_agent(s: Any, task: str, num_turns: int, tool: Callable[[int, str], str]) -> None:
    """The same agent as one graph: the tool is a node of it."""
    s += rt.system("You use tools.")
    s += rt.user(task)
    for turn in range(num_turns):
        s += rt.assistant(
            _written(f"thought {turn}", 8), "\nCall: ", rt.gen(f"call {turn}", choices=TOOLS, max_tokens=8)
        )
        s += rt.user("Result: ", control.call(tool, turn, s[f"call {turn}"]))
    s += rt.assistant(_written(f"thought {num_turns}", 8))


@users_program
def other(s: Any, text: str) -> None:
    """Other load: a long prompt that shares no prefix."""
    s += rt.text(text)
    s += _written("out", 8)


class Delays:
    """The time that tools take: in each turn, until all agents wait and the other load of the turn has run."""

    def __init__(self, num_agents: int, num_turns: int) -> None:
        self._num_agents = num_agents
        self._lock = threading.Lock()
        self._num_waiting = [0] * num_turns
        self._are_waiting = [threading.Event() for _ in range(num_turns)]
        self._is_over = [threading.Event() for _ in range(num_turns)]

    def tool(self, turn: int, call: str) -> str:
        """Called by each agent once per turn."""
        with self._lock:
            self._num_waiting[turn] += 1
            if self._num_waiting[turn] == self._num_agents:
                self._are_waiting[turn].set()
        if not self._is_over[turn].wait(DELAY_LIMIT_S):
            raise TimeoutError(f"turn {turn} did not end")
        return f"{call} found nothing in turn {turn}"

    def run(self, agents: list[Future[Any]], load: Callable[[int], None]) -> None:
        """Run the load of each turn while the tools of all agents run. An agent that ends early ends all turns."""
        try:
            for turn, are_waiting in enumerate(self._are_waiting):
                while not are_waiting.wait(0.05):
                    if any(agent.done() for agent in agents):
                        return
                load(turn)
                self._is_over[turn].set()
        finally:
            for is_over in self._is_over:
                is_over.set()


def agents(encoder: Encoder, *, seed: int, quick: bool) -> ProgramWorkload:
    """Agents whose tools take so long that other programs fill the whole pool meanwhile."""
    maker = TextMaker(encoder, seed)
    num_turns = 1 if quick else 2
    num_agents, num_others, num_tokens = 2, 12, 160
    tasks = [maker.text(num_tokens) for _ in range(num_agents)]
    load = [[{"text": maker.text(num_tokens)} for _ in range(num_others)] for _ in range(num_turns)]

    def play(meter: Meter, options: Mapping[str, Any]) -> None:
        delays = Delays(num_agents, num_turns)
        with ThreadPoolExecutor(2) as pool:
            waiting: list[Future[Any]] = []
            for number, program in enumerate((breaking_agent, whole_agent)):
                inputs = [{"task": task, "num_turns": num_turns, "tool": delays.tool} for task in tasks[number::2]]
                waiting.append(pool.submit(program.run_batch, inputs, runtime=meter.target, **options))
            delays.run(
                waiting,
                lambda turn: _ignored(checked(other.run_batch(load[turn], runtime=meter.runtime, max_threads=4))),
            )
            results = [result for each in waiting for result in checked(each.result())]
        meter.cached_share = _cached_share(results, num_turns)

    summary = (
        f"{num_agents} agents, tasks of {num_tokens} tokens, {num_turns} tool calls each; during each, {num_others} programs of "
        f"{num_tokens} other tokens; {AGENT_PAGES} pages of {AGENT_PAGE_SIZE}"
    )
    return ProgramWorkload("agents", summary, play)


def _cached_share(results: list[Any], num_turns: int) -> float:
    """The share of what agents had computed before a delay that was still cached after it."""
    cached = known = 0
    for result in results:
        for turn in range(1, num_turns + 1):
            before, after = result.meta(f"call {turn - 1}").usage, result.meta(f"thought {turn}").usage
            known += before.prompt_tokens + before.completion_tokens
            cached += after.cached_tokens
    return cached / known


def _ignored(results: object) -> None:
    del results


# -- vote


def _samples(s: Any, question: str, num_samples: int, temperature: float) -> Any:
    s += rt.user(question, "\nIs it so? Think, then answer yes or no.")
    samples = s.fork(num_samples)
    for number, sample in enumerate(samples):
        sample += rt.assistant(
            _written("thought", 12, temperature=temperature, seed=number),
            "\nAnswer: ",
            rt.gen("answer", choices=["yes", "no"], max_tokens=4, temperature=temperature, seed=number),
        )
    return samples


@users_program
def majority(s: Any, question: str, num_samples: int, temperature: float) -> Any:
    """The most frequent of the answers, each after a thought of its own."""
    samples = _samples(s, question, num_samples, temperature)
    return control.vote([sample["answer"] for sample in samples])


@users_program
def counted_majority(s: Any, question: str, num_samples: int, temperature: float) -> Any:
    """The same decision, counted in Python after all answers are complete."""
    samples = _samples(s, question, num_samples, temperature)
    samples.join()
    return Counter(map(str, s["answer"])).most_common(1)[0][0]


@users_program
def majority_of_choices(s: Any, question: str, num_samples: int, temperature: float) -> Any:
    """The most frequent of the completions of one generation."""
    s += rt.user(question, "\nIs it so? Answer yes or no.")
    s += rt.assistant(
        rt.gen("answer", n=num_samples, choices=["yes", "no"], max_tokens=4, temperature=temperature, seed=0)
    )
    return control.vote(s["answer"])


@users_program
def counted_choices(s: Any, question: str, num_samples: int, temperature: float) -> Any:
    """The same decision, counted in Python after all answers are complete."""
    s += rt.user(question, "\nIs it so? Answer yes or no.")
    s += rt.assistant(
        rt.gen("answer", n=num_samples, choices=["yes", "no"], max_tokens=4, temperature=temperature, seed=0)
    )
    return Counter(map(str, s["answer"])).most_common(1)[0][0]


def vote(encoder: Encoder, *, seed: int, quick: bool) -> ProgramWorkload:
    """Nine samples of questions on which the samples agree, because their temperature is low; beside it, ones on which they do not."""
    maker = TextMaker(encoder, seed)
    questions = [maker.text(48) for _ in range(1 if quick else 3)]

    def play_with(programs: tuple[Any, ...], temperature: float) -> Callable[[Meter, Mapping[str, Any]], None]:
        inputs = [{"question": each, "num_samples": 9, "temperature": temperature} for each in questions]

        def play(meter: Meter, options: Mapping[str, Any]) -> None:
            for program in programs:
                checked(program.run_batch(inputs, runtime=meter.target, **options))

        return play

    staged, counted = (majority, majority_of_choices), (counted_majority, counted_choices)
    return ProgramWorkload(
        "vote",
        f"{len(questions)} questions, 9 samples each, as forks with a thought and as choices of one generation; undecided: temperature 1",
        play_with(staged, DECIDED),
        {
            "all samples": play_with(counted, DECIDED),
            "undecided": play_with(staged, 1.0),
            "undecided, all samples": play_with(counted, 1.0),
        },
    )


MAKERS: dict[str, Callable[..., ProgramWorkload]] = {"tree": tree, "judge": judged, "agents": agents, "vote": vote}

SETTINGS: dict[str, Mapping[str, Any]] = {
    "tree": {"max_rows": TREE_ROWS},
    "agents": {"num_pages": AGENT_PAGES, "page_size": AGENT_PAGE_SIZE},
}
"""Settings of the runtime that a workload needs, by name."""
