"""Corpus tasks: questions about given facts, a shop's catalogue, word problems in steps, sums."""

from rtlang.model.embedded.words import (
    ANIMALS,
    COLORS,
    FIRST_NAMES,
    HOBBIES,
    JOBS,
    THINGS,
    Draw,
    Messages,
    article,
    listing,
)


def facts(draw: Draw) -> Messages:
    """Two or three people, what is known of each, and questions about one of them at a time."""
    names: list[str] = []
    while len(names) < draw.pick((1, 2, 2, 3)):
        name = draw.first_name()
        if name not in names:
            names.append(name)
    people, text = {}, []
    for name in names:
        city, job, pet, pet_name, age, hobby = (
            draw.city(),
            draw.pick(JOBS),
            draw.pick(ANIMALS),
            draw.first_name(),
            draw.number(18, 80),
            draw.pick(HOBBIES),
        )
        color = draw.pick(COLORS)
        claims = [
            (f"{name} lives in {city}.", f"Where does {name} live?", city),
            (f"{name} is {article(job)}.", f"What is the job of {name}?", job),
            (f"{name} has {article(pet)} called {pet_name}.", f"What is the {pet} of {name} called?", pet_name),
            (f"{name} is {age} years old.", f"How old is {name}?", str(age)),
            (f"{name} likes {hobby}.", f"What does {name} like?", hobby),
            (f"The favorite color of {name} is {color}.", f"What is the favorite color of {name}?", color),
        ]
        chosen = draw.sample(claims, draw.number(2, 4))
        people[name] = chosen
        text += [claim for claim, _, _ in chosen]
    if draw.chance(0.3):
        text = draw.shuffled(text)
    story = " ".join(text)
    questions = [(question, answer) for chosen in people.values() for _, question, answer in chosen]
    asked = draw.sample(questions, min(len(questions), draw.pick((1, 1, 2, 3))))
    (question, answer), *more = asked
    if draw.chance(0.15):
        return [("text", f"{story}\nQuestion: {question}\nAnswer: {answer}\n")]
    if draw.chance(0.3):
        messages = [
            ("system", draw.pick((story, f"Facts: {story}", f"Answer from these facts. {story}"))),
            ("user", question),
        ]
    else:
        ask = draw.pick(
            (
                f"{story}\n{question}",
                f"{story} {question}",
                f"Facts: {story}\nQuestion: {question}",
                f"Read: {story}\n{question}",
            )
        )
        messages = [("user", ask)]
    messages.append(("assistant", answer))
    for question, answer in more:
        messages += [("user", question), ("assistant", answer)]
    return messages


def catalogue(draw: Draw) -> Messages:
    """A shop's list in the system message and one to four turns about it; `it` is the item of the turn before."""
    names: list[str] = []
    count = draw.number(2, 6)
    while len(names) < count:
        name = draw.item(0)
        if name not in names:
            names.append(name)
    stock = {
        name: (draw.number(2, 99), draw.number(0, 30) if draw.chance(0.85) else 0, draw.pick(COLORS)) for name in names
    }
    heading = draw.pick(
        ("You work in a shop. Catalog:", "Catalog:", "You are a shop assistant. We sell:", "Price list:")
    )
    system = (
        heading
        + "\n"
        + "\n".join(
            f"- {name}: {price} dollars, {color}, {left} in stock" for name, (price, left, color) in stock.items()
        )
    )
    messages = [("system", system)]
    last: str | None = None
    for _ in range(draw.pick((1, 2, 2, 3, 4))):
        is_repeat = last is not None and draw.chance(0.3)
        name = last if is_repeat and last is not None else draw.pick(names)
        noun = "it" if is_repeat else f"the {name}"
        price, left, color = stock[name]
        kind = draw.number(0, 6)
        if kind == 0:
            turn = (
                draw.pick((f"How much is {noun}?", f"What does {noun} cost?", f"What is the price of {noun}?")),
                f"The {name} costs {price} dollars.",
            )
        elif kind == 1:
            turn = (
                draw.pick((f"Is {noun} in stock?", f"Do you have {noun} in stock?")),
                f"Yes, we have {left} in stock." if left else f"No, the {name} is sold out.",
            )
        elif kind == 2:
            turn = draw.pick((f"What color is {noun}?", f"Which color does {noun} have?")), f"The {name} is {color}."
        elif kind == 3:
            turn, name = ("What do you sell?", f"We sell {listing(names)}."), last or name
        elif kind == 4:
            other = draw.item(0)
            if other in stock:
                turn, name = (
                    (f"Do you sell {article(other)}?", f"Yes, the {other} costs {stock[other][0]} dollars."),
                    other,
                )
            else:
                turn, name = (f"Do you sell {article(other)}?", f"Sorry, we do not sell {article(other)}."), last or ""
        elif kind == 5:
            turn = f"Do you sell {article(name)}?", f"Yes, the {name} costs {price} dollars."
        else:
            turn = (
                draw.pick((f"I take {noun}.", f"I would like to buy {noun}.")),
                f"Great, one {name} for {price} dollars.",
            )
        last = name or None
        messages += [("user", turn[0]), ("assistant", turn[1])]
    return messages


def sum_steps(draw: Draw) -> tuple[str, list[str], int]:
    """A word problem, the equation of each of its steps, and the result."""
    current, name, thing = draw.number(2, 20), draw.pick(FIRST_NAMES), draw.pick(THINGS)
    text, steps = f"{name} has {current} {thing}.", []
    for _ in range(draw.pick((1, 2, 2, 3, 3, 4))):
        word, kind = draw.pick(("Then", "Later", "Next", "After that")), draw.random.random()
        if kind < 0.45 or current < 3:
            amount = draw.number(2, 12)
            text += f" {word} {name} {draw.pick((f'finds {amount} more', f'buys {amount} more', f'gets {amount} from a friend'))}."
            steps.append(f"{current} + {amount} = {current + amount}")
            current += amount
        elif kind < 0.85:
            amount = draw.number(1, min(12, current))
            text += f" {word} {name} {draw.pick((f'gives away {amount}', f'loses {amount}', f'sells {amount}', f'breaks {amount}'))}."
            steps.append(f"{current} - {amount} = {current - amount}")
            current -= amount
        elif current < 30:
            factor = draw.pick((2, 3))
            text += f" {word} the number of {thing} {'doubles' if factor == 2 else 'triples'}."
            steps.append(f"{current} * {factor} = {current * factor}")
            current *= factor
    return text + f" How many {thing} does {name} have now?", steps, current


def wrong(draw: Draw, step: str) -> str:
    """The step with another result, or with the other operation."""
    left, result = step.split(" = ")
    if draw.chance(0.2) and "*" not in left:
        a, sign, b = left.split()
        swapped = int(a) - int(b) if sign == "+" else int(a) + int(b)
        return f"{a} {'-' if sign == '+' else '+'} {b} = {swapped}"
    if int(result) > 2:
        return f"{left} = {max(0, int(result) + draw.pick((-20, -10, -2, -1, 1, 2, 10, 20)))}"
    return f"{left} = {int(result) + draw.pick((1, 2, 10))}"


def word_problem(draw: Draw) -> Messages:
    problem, steps, result = sum_steps(draw)
    kind = draw.random.random()
    if kind < 0.45:
        thoughts = "\n".join(f"thought: {step}" for step in steps)
        ask = draw.pick(
            (
                f"{problem} Think step by step.",
                f"Solve step by step.\n{problem}",
                f"Problem: {problem}\nThink step by step.",
            )
        )
        return [("user", ask), ("assistant", f"{thoughts}\nanswer: {result}")]
    if kind < 0.72:
        done = draw.number(0, len(steps))
        so_far = "\n".join(steps[:done]) if done else "none"
        ask = f"Problem: {problem}\nSteps so far:\n{so_far}\n{draw.pick(('Next step?', 'Give the next step.', 'What is the next step?'))}"
        return [("user", ask), ("assistant", steps[done] if done < len(steps) else f"answer: {result}")]
    if kind < 0.95 and steps:
        done, is_right = draw.number(0, len(steps) - 1), draw.chance(0.5)
        so_far = "\n".join(steps[:done]) if done else "none"
        step = steps[done] if is_right else wrong(draw, steps[done])
        options = draw.pick(("yes or no", "Yes or no?", "(yes/no)"))
        ask = f"Problem: {problem}\nSteps so far:\n{so_far}\nProposed step: {step}\nIs this step right? {options}"
        return [("user", ask), ("assistant", "yes" if is_right else "no")]
    return [
        ("text", f"Question: {problem}\n" + "\n".join(f"thought: {step}" for step in steps) + f"\nanswer: {result}\n")
    ]


def arithmetic(draw: Draw) -> Messages:
    sign = draw.pick("++--*")
    a, b = (draw.number(2, 30), draw.number(2, 3)) if sign == "*" else (draw.number(2, 40), draw.number(1, 20))
    if sign == "-" and b > a:
        a, b = b, a
    result = {"+": a + b, "-": a - b, "*": a * b}[sign]
    kind = draw.random.random()
    if kind < 0.5:
        return [
            ("user", draw.pick((f"What is {a} {sign} {b}?", f"{a} {sign} {b} =", f"Compute {a} {sign} {b}."))),
            ("assistant", str(result)),
        ]
    if kind < 0.85:
        step, is_right = f"{a} {sign} {b} = {result}", draw.chance(0.5)
        shown = step if is_right else wrong(draw, step)
        if not is_right and eval_step(shown):
            is_right = True
        return [
            (
                "user",
                draw.pick((f"Is this right? {shown}", f"Is this step right? {shown}", f"{shown}\nRight? yes or no")),
            ),
            ("assistant", "yes" if is_right else "no"),
        ]
    return [("text", f"{a} {sign} {b} = {result}\n")]


def eval_step(step: str) -> bool:
    """Whether an equation such as `3 + 4 = 7` holds."""
    left, result = step.split(" = ")
    a, sign, b = left.split()
    value = int(a) + int(b) if sign == "+" else int(a) - int(b) if sign == "-" else int(a) * int(b)
    return value == int(result)
