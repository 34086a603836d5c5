"""What a chat template may do, and what ends it before it harms the engine."""

from __future__ import annotations

import datetime
from concurrent.futures import ThreadPoolExecutor

import jinja2
import pytest

from rtlang.model.text import chat_template
from rtlang.model.text.chat_template import MAX_SOURCE_CHARS, TemplateEnvironment
from rtlang.model.text.template_bounds import LimitExceeded
from rtlang.model.text.tracked_text import TextSource, TrackedText, joined

NOW = datetime.datetime(2024, 5, 17)
MESSAGES = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
DOUBLING = "{% set ns = namespace(x=START) %}{% for i in range(60) %}{% set ns.x = ns.x OP ns.x %}{% endfor %}{{ ns.x|length }}"


def render(source: str) -> str:
    environment = TemplateEnvironment(NOW)
    template = environment.compiled(source)
    environment.begin()
    return template.render(messages=MESSAGES, count=len(MESSAGES))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{% for m in messages %}{{ m.role ~ ':' ~ m.content ~ 1 }};{% endfor %}", "user:one1;assistant:two1;"),
        ("{% macro a(x) %}<{{ x }}{{ caller() }}>{% endmacro %}{% call a(1) %}b{% endcall %}", "<1b>"),
        ("{% for m in messages if m.role == 'user' %}{{ loop.index }}{% else %}x{% endfor %}", "1"),
        ("{% for m in [] %}{{ m }}{% else %}none{% endfor %}", "none"),
        ("{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.content }}{% endfor %}", "two"),
        ("{{ 'ab' * 3 + 'c' }}{{ 2 ** 10 }}{{ 7 % 4 }}{{ '%5s' % 'x' }}", "abababc10243    x"),
        ("{{ messages|tojson(indent=1)|length > 10 }}{{ 'a'|center(5) }}|{{ strftime_now('%Y') }}", "True  a  |2024"),
        ("{% set go_round = 1 %}{% for m in messages %}{{ go_round }}{% endfor %}", "11"),
    ],
)
def test_what_templates_are_written_with_works(source: str, expected: str) -> None:
    assert render(source) == expected


MARKED = {
    "content": TrackedText.whole(" ab\ncd ", TextSource(0, "content")),
    "parts": [TrackedText.whole("xy", TextSource(0, "parts")), TrackedText.whole("z", TextSource(0, "parts"))],
}


@pytest.mark.parametrize(
    "source",
    [
        "<{{ content }}>",
        "<{{ content | trim }}>{{ content.strip() ~ 'X' }}",
        "{% set all %}X{{ content }}Y{% endset %}{{ all + 'Z' }}",
        "{% macro write(x) %}X{{ x }}Y{% endmacro %}{{ write(content) }}",
        "{% macro around() %}X{{ caller() }}Y{% endmacro %}{% call around() %}{{ content }}{% endcall %}",
        "{% for line in content.splitlines() %}X{{ line }}{% endfor %}",
        "{% for letter in content %}{{ letter }}-{% endfor %}",
        "{{ content.split('\n')[0] }}|{{ content.split('\n')[-1] }}",
        "{% for part in content.split() %}{{ part.replace('a', 'A') }}{% endfor %}",
        "{{ 'X%sY' % content }}{{ 'X{}Y'.format(content) }}{{ 'X%(a)sY' % {'a': content} }}{{ 'X%sY' | format(content) }}",
        "{{ ['A', content, 'B'] | join('-') }}{{ '-'.join(['A', content]) }}",
        "{{ 'X'.replace('X', content) }}{{ 'AXB' | replace('X', content) }}",
        "{{ content | default('X') }}{{ nothing | default(content) }}{{ [content] | first }}",
        "{{ content | upper }}{{ content | indent(2) }}{{ content | length }}{{ content[1:3] }}{{ content | string }}",
        "{{ parts }}{{ parts | join }}{{ 'X' ~ parts }}{{ parts | tojson }}{{ parts | string }}",
        "{% set ns = namespace(text='X') %}{% for i in range(3) %}{% set ns.text = ns.text + content %}{% endfor %}{{ ns.text }}",
        "{{ {'k': content}.k }}{{ {'k': content} | tojson }}{{ {'k': content}.get('k') }}",
        "{{ content if content is string else 'X' }}{{ 1 if content in ['X'] else 2 }}",
    ],
)
def test_texts_of_messages_are_written_as_strings_are_and_keep_their_sources(source: str) -> None:
    environment = TemplateEnvironment(NOW)
    template = environment.compiled(source)
    environment.begin()
    plain = {"content": str.__str__("".join([MARKED["content"]])), "parts": ["xy", "z"]}  # type: ignore[list-item]
    ordinary = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    ordinary.filters["tojson"] = environment.filters["tojson"]
    written = joined(template.generate(**MARKED))
    assert written == ordinary.from_string(source).render(**plain)
    at = 0
    for num_chars, origin in written.runs:
        text = written[at : at + num_chars]
        assert origin is not None or not any(letter in "abcdxyz" for letter in text if letter.islower()), (
            text,
            written.runs,
        )
        at += num_chars
    assert any(origin is not None for _, origin in written.runs)


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro a(n) %}{% if n %}{{ a(n - 1) }}{{ a(n - 1) }}{% endif %}{% endmacro %}{{ a(60) }}",
        "{% macro a(n) %}{{ caller() }}{{ caller() }}{% endmacro %}"
        + "{% call a(1) %}" * 40
        + "x"
        + "{% endcall %}" * 40,
        DOUBLING.replace("START", "'x' * count").replace("OP", "~"),
        DOUBLING.replace("START", "'x' * count").replace("OP", "+"),
        DOUBLING.replace("START", "messages").replace("OP", "+"),
        DOUBLING.replace("START", "[count, count]|length + 8").replace("OP", "*"),
        "{% set text = 'x' * 1000000 %}{% for i in range(99999) %}{% if text | trim == 'y' %}{% endif %}{% endfor %}",
        "{% set text = 'x' * 1000000 %}{% for i in range(99999) %}{% set _ = text.upper() %}{% endfor %}",
        "{% set text = 'x' * 1000000 %}{% for i in range(99999) %}{% set _ = text + 'y' %}{% endfor %}",
        "{{ ('x' * (count * 10 ** 9))|length }}",
        "{{ count ** (10 ** 8) }}",
        "{{ 9 ** 99999999 }}",
        "{{ '%9999999999d' % count }}",
        "{{ 'x'|center(10000000000) }}",
        "{{ 'x'.ljust(10000000000) }}",
        "{{ messages|tojson(indent=1000000000) }}",
        "{{ lipsum(n=100000) }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ raise_exception.__globals__.keys() }}",
        "{{ messages.clear() }}",
    ],
)
def test_what_would_not_end_or_fill_the_memory_or_leave_the_sandbox_is_an_error(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_template, "MAX_ROUNDS", 50_000)
    with pytest.raises(jinja2.TemplateError):
        render(source)


SHARING = "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(40) %}{% set ns.a = MADE %}{% endfor %}USE"


@pytest.mark.parametrize(
    "use", ["{{ ns.a }}", "{{ ns.a | tojson }}", "{{ 'x' ~ ns.a }}", "{{ '%s' % (ns.a,) }}", "{{ ns.a == ns.b }}"]
)
@pytest.mark.parametrize(
    "made",
    [
        "[ns.a, ns.a]",
        "(ns.a, ns.a)",
        "{'x': ns.a, 'y': ns.a}",
        "dict(x=ns.a, y=ns.a)",
        "[ns.a] * 2",
        "[ns.a] + [ns.a]",
        "[ns.a, ns.a] | list",
        "('x' * 4000000, ns.a)",
    ],
)
def test_values_that_hold_one_another_several_times_count_as_often(made: str, use: str) -> None:
    with pytest.raises(LimitExceeded, match="more than 4194304"):
        render(SHARING.replace("MADE", made).replace("USE", use))


def test_lists_of_arguments_that_hold_one_another_are_not_written() -> None:
    source = (
        "{% macro a(n) %}{% if n %}{{ a(n - 1, varargs, varargs) }}{% else %}{{ varargs }}{% endif %}{% endmacro %}"
    )
    with pytest.raises(LimitExceeded):
        render(source + "{{ a(40, 1, 1) }}")


def test_a_namespace_does_not_show_what_it_holds() -> None:
    assert "<Namespace>" in render("{% set ns = namespace(a=messages) %}{{ ns }}")


@pytest.mark.parametrize("body", ["{% set x = 1 %}" * 500, "{% for m in range(90000) if false %}{% endfor %}"])
def test_the_time_of_a_rendering_is_limited(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "MAX_RENDER_CPU_S", 0.2)
    with pytest.raises(LimitExceeded, match="for more than"):
        render("{% for i in range(99999) %}" + body + "{% endfor %}")


def test_each_rendering_has_all_its_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "MAX_ROUNDS", 50_000)
    environment = TemplateEnvironment(NOW)
    template = environment.compiled("{% for i in range(4500) %}{% for j in range(8) %}{% endfor %}{% endfor %}ok")
    for _ in range(2):
        environment.begin()
        assert template.render() == "ok"


def test_renderings_on_several_threads_have_limits_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_template, "MAX_ROUNDS", 1500)
    environment = TemplateEnvironment(NOW)
    template = environment.compiled("{% for i in range(1000) %}x{% endfor %}")

    def whole() -> str:
        environment.begin()
        return template.render()

    environment.begin()
    pieces = template.generate()
    begun = [next(pieces) for _ in range(500)]
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(whole).result() == "x" * 1000
    assert "".join([*begun, *pieces]) == "x" * 1000


def test_a_source_without_end_is_refused() -> None:
    with pytest.raises(jinja2.TemplateError, match="longer than"):
        TemplateEnvironment(NOW).compiled("x" * (MAX_SOURCE_CHARS + 1))
