"""No function that a template calls builds a result, or computes a number, that is out of proportion to the template."""

from __future__ import annotations

import datetime
import resource
import time

import jinja2
import pytest

from rtlang.model.text.chat_template import TemplateEnvironment
from rtlang.model.text.template_bounds import LimitExceeded

BIG = "{% set big = 'a' * 4000000 %}{% set tabs = '\t' * 4000000 %}{% set lines = '\n' * 4000000 %}"


def render(source: str) -> str:
    environment = TemplateEnvironment(datetime.datetime(2024, 5, 17))
    template = environment.compiled(source)
    environment.begin()
    return template.render(messages=[{"role": "user", "content": "one"}])


@pytest.mark.parametrize(
    "expression",
    [
        "big | replace('a', big)",
        "big.replace('a', big)",
        "big.replace('', big)",
        "(big | e).replace('a', big)",
        "big.translate({97: big})",
        "range(100000) | join(big)",
        "big.join(range(100000) | map('string'))",
        "big.join(big)",
        "tabs.expandtabs(100000)",
        "lines | indent(100000)",
        "lines | indent(big)",
        "('a' * 40000) | wordwrap(1, wrapstring=big)",
        "big | wordwrap(1)",
        "('a.com ' * 5000) | urlize(target='x' * 100000)",
        "'{:>999999999}'.format(1)",
        "'{:>{}}'.format(1, '999999999')",
        "('{0}' * 9999).format(big)",
        "('{a}' * 9999).format_map({'a': big})",
        "('{:9999}' * 9999).format(*range(9999))",
        "'%(a)999999999d' % {'a': 1}",
        "'%(a(b))999999999d' % {'a(b)': 1}",
        "('%(a)s' * 9999) % {'a': big}",
        "'%*d' % (999999999, 1)",
        "'%.*f' % (999999999, 1.5)",
        "'%.999999999f' % 1.5",
        "'%999999999d' | format(1)",
        "('%(a)s' * 9999) | format(a=big)",
        "([[1] * 2000] * 1900) | sum(start=[])",
        "('f' * 300000) | int(0, 16)",
        "'a'.encode() * 1000000000",
        "range(100000) | map('string') | map('center', 100000) | list",
        "strftime_now('%999999999Y')",
        "strftime_now('%999Y' * 1000000)",
        "([[[[1]]]] * 1000) | tojson(indent=100000)",
        "([1] * 1000000) | tojson(separators=(big, big))",
    ],
)
def test_a_result_out_of_proportion_is_refused_before_it_is_built(expression: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(LimitExceeded):
        render(f"{BIG}{{% set result = {expression} %}}{{{{ result is string }}}}")
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kb < 600_000, grown_kb  # none of these needs as much as its arguments a hundred times


@pytest.mark.parametrize(
    "expression",
    [
        "'a-b-c'.replace('-', '+', 1) ~ ('a-b' | replace('-', ''))",
        "'ab'.translate({97: 'xy'})",
        "', '.join(['a', 'b']) ~ (['a', 1] | join('-'))",
        "'a\tb'.expandtabs(4)",
        "'a\nb' | indent(2)",
        "'a b c' | wordwrap(3)",
        "'{0:>4}|{a}|{0.real}'.format(1, a='x')",
        "'%(a)5.1f%%' % {'a': 2}",
        "'%s: %d' | format('x', 3)",
        "[1, 2, 3] | sum",
        "[{'n': 1}, {'n': 2}] | sum(attribute='n', start=10)",
        "[[1], [2]] | sum(start=[])",
        "(7 // 2) ~ (7 / 2) ~ (7 - 2)",
        "[1, {'a': 2}] | tojson(indent=1)",
    ],
)
def test_functions_within_their_bounds_work_as_in_jinja(expression: str) -> None:
    source = f"{{{{ {expression} }}}}"
    ordinary = jinja2.Environment()
    ordinary.filters["tojson"] = TemplateEnvironment(datetime.datetime(2024, 5, 17)).filters["tojson"]
    assert render(source) == ordinary.from_string(source).render()


def test_the_time_is_written_as_asked() -> None:
    assert render("{{ strftime_now('%d %B %Y') }}") == "17 May 2024"


def test_a_filter_of_a_long_text_does_not_run_for_long() -> None:
    started = time.thread_time()
    with pytest.raises(LimitExceeded):
        render("{{ ('<' * 4000000) | striptags }}")
    assert time.thread_time() - started < 1
