"""Kinds of records of occasions: an event, and a recipe."""

from rtlang.model.embedded import clauses_more_of_life
from rtlang.model.embedded import lexicon as lex
from rtlang.model.embedded.clauses_of_occasions import EVENT, RECIPE
from rtlang.model.embedded.extras import EMAIL, PHONE, WEBSITE, Record
from rtlang.model.embedded.extras_more import AUTHOR, DIFFICULTY, FREE, GUESTS, VEGAN
from rtlang.model.embedded.kinds import Drawn, Kind, lines
from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.text_files import lines_of
from rtlang.model.embedded.words import Draw, article, listing


def draw_event(draw: Draw) -> Drawn:
    kind = draw.slot(lex.EVENTS, lex.HELD_EVENTS)
    record: Record = {
        "event": kind, "place": draw.slot(lex.VENUES, lex.HELD_VENUES), "date": draw.any_date(), "time": draw.any_time(),
        "host": draw.full_name(),
    }  # fmt: skip
    return record, {"an_event": article(kind)}


event = Kind(
    "event", words("event|invitation|announcement", "|"), draw_event,
    lines("""
The {event} [takes place/is held/happens] at the {place} on {date} at {time}, [hosted by/organized by/led by/run by] {host}.
{host} is [organizing/planning/preparing/hosting] {an_event} on {date}. [Come to/Be at/Find us in/Meet us at] the {place} at {time}.
[Join us/Come along/Meet us] at the {place} for {an_event} with {host}. It [starts/begins/opens] at {time} on {date}.
On {date} at {time} there [will be/is] {an_event} in the {place}. [Ask/Call/Write to] {host} for details.
[Reminder/Note/Do not forget]: the {event} by {host} [begins/starts] at {time}, {date}, at the {place}.
{host} [invites you to/welcomes you to/asks you to come to/puts on] {an_event} at the {place}, {date}, {time}.
Come to the {event} of {host}! [Date/Day/When]: {date}. [Time/Hour/Start]: {time}. [Place/Where/Venue/Location]: {place}.
You are [invited/welcome] to {an_event}. It is held in the {place} on {date} and starts at {time}. Your host is {host}.
Do not miss the {event} on {date}. {host} opens the doors of the {place} at {time}.
{date}, {time}: {event} at the {place}, [organized by/hosted by/host:/with] {host}
The {place} [hosts/is booked for/was rented for/is the scene of] {an_event} on {date}. {host} will welcome the guests at {time}.
We [meet/gather/start/begin] at {time} in the {place}. The {event} is on {date}, and {host} is [in charge/the host/the organizer].
{host} here. My {event} is planned for {date}, {time}. See you at the {place}!
Save the date: {date}. {host} plans {an_event} at the {place}, starting at {time}.
This year {host} runs the {event}. It will be at the {place} on {date} from {time}[./ on.]
{host} in the {place}: [that is where the/come to the] {event} [on/of] {date} [starts/kicks off] at {time}.
{host} Will you come to my {event} in the {place}? It is on {date} at {time}.
[Event/What/Kind]: {event}[,/;/.] [host/organizer/by]: {host}[,/;/.] [place/where/venue]: {place}[,/;/.] [date/day/when]: {date}[,/;/.] \
[time/start/from]: {time}
[Where/Place/Venue/Location]: {place} | [When/Date]: {date} | [Time/Doors/Begin]: {time} | [What/Event]: {event} | [Host/Organizer]: \
{host}
[What?/What is it?] {an_event}. [Where?/Which place?] The {place}. [When?/Which day?] {date}. [What time?/How late?] {time}. [Who runs \
it?/The host?] {host}.
Doors [open/of the {place} open] at {time} on {date} [for/and then comes] {an_event} [led/run/put on] by {host} [here in/in/at] the \
{place}.
[Everyone/Everybody] is welcome at the {event} on {date}! The [venue/place] is the {place}, the [time/hour/start] is {time}, the \
[host/organizer] is {host}.
[Hello/Hi/Dear friends/Dear all], I [am having/am planning/will put on/organize] {an_event} on {date}. [Come/Please come/Be there] at \
{time}; the place is the {place}. [Yours/See you/Cheers], {host}
[Mark/Please mark] the {event} of {host} in your calendar: {date}, [{place}, {time}/{time}, {place}].
{host} [rented/booked/chose/reserved] the {place} for {an_event}. [On/It is on] {date} we [start/begin/kick off] at {time}.
[Whoa/Wow/Great], {host} really [puts on/plans/organizes] {an_event}! [It is at/Go to/You find it at] the {place} on {date}, and it \
[kicks off/starts/begins] at {time}.
{time} on {date} is when {host} [opens/starts/begins] the {event} at the {place}.
At {time} [sharp/exactly/or so] the {event} [starts/begins/opens] in the {place}. The [date/day] is {date}. [Led by/Organized by/Thanks \
to] {host}.
In the {place}, {host} [will lead/leads/runs/hosts] {an_event}; it is [planned/scheduled] for {date} and [begins/starts] at {time}.
{event} / {place} / {date} / {time} / {host}
{host} [says/tells us] the {event} is on {date}. It is [held at/in/at] the {place} from {time} on.
[Bring a friend to/Come and see/We look forward to] the {event}! {host} [has planned it/planned it/has set it] for {date} at {time}, \
[in/at] the {place}.""") + lines_of("event"),
    lines("""
Everybody is welcome when {host} puts on {an_event}: {place}, {date}, doors at {time}.
Mark your calendar for {date}; at {time} the {event} kicks off in the {place} under the lead of {host}.
The {place} has been rented by {host} for {an_event} ({date}, {time}).
Scheduled for {date} in the {place}: {an_event}, which {host} will lead from {time}.
With doors that open at {time}, the {place} welcomes guests of {host} to {an_event}, {date}."""),
    (FREE, PHONE, EMAIL, WEBSITE, GUESTS),
    sentences=lines("""
[It is/This is about/There will be/We are having/You are invited to/Come to/Everybody looks forward to] {an_event}.
[Event/What/Kind of event]: {event}[./]
[The event is/What is planned is/They are planning] {an_event}.
[Do not miss/Welcome to/Reminder of/Please join] the {event}[./!]
[What? It is/What is it? Just] {an_event}.
It [takes place/is held/happens/will be] [at/in] the {place}.
[Place/Venue/Where/Location]: {place}[./]
[The place is/The venue is/Come to/We meet at/Find us in/Meet us at] the {place}.
The {place} [is rented/is booked/is the place to be/is reserved for us/will be full].
[Where? At/You find it in/See you at] the {place}.
[It is on/It takes place on/Save the date:/Mark your calendar:/It is planned for/It is scheduled for] {date}.
[Date/When/Day]: {date}[./]
The [date/day] is {date}.
[Be there on/Come on/See you on/The big day is] {date}.
[When? On/Which day? It is] {date}.
[It starts/It begins/It kicks off/Doors open/We meet/Be there/The guests come] at {time}.
[Time/Start/Begin/Doors]: {time}[./]
The [time/hour/start] is {time}.
[From {time} on/Beginning at {time}/Starting at {time}], [you can come in/the doors are open/everybody is welcome].
[What time? At/How late? At] {time}.
[The host is/It is hosted by/It is organized by/It is run by/It is led by/The organizer is/In charge is] {host}.
[Host/Organizer/Hosted by/Organized by]: {host}[./]
{host} [is in charge/is the host/runs it/has been the host for years/organizes it/will welcome the guests/invites you/is the organizer].
[Ask/Call/Thank] {host} for [details/more/the plan].
It is [under the lead of our friend/the work of/put on by] {host}.
{host} [plans/puts on/organizes/hosts/leads/will lead/is planning] {an_event}.
The {event} [is/takes place/will be/is held] [at/in] the {place}.
The {event} is [on/planned for/scheduled for] {date}.
The {event} [starts/begins/kicks off] at {time}.
The {event} of {host} [is open to all/is well known/takes place again].
{host} [rented/booked/reserved/chose] the {place}.
{host} opens the doors at {time}.
{host} in the {place}: [come and see/do not miss it].
[Come/Be there/It starts/Join us] on {date} at {time}.
[When?/Date and time:] {date}, {time}.
The {place} [opens its doors/is open/welcomes guests] at {time}.
On {date} [we meet/everybody comes/it is] at the {place}."""),
    first_person=lines("""
[I am/My name is/This is/I'm/Your host is] {host}.
{host} here.
[Yours/Cheers/See you/Best wishes], {host}.
{host} is my name.
[I am planning/I invite you to/I will put on/I'm organizing/Come to] {an_event}.
[My {event} will be great/Do not miss my {event}/Come to my {event}].
[It is called/What I plan is] {an_event}.
[I rented/I booked/I chose/We meet at/Come to/You find us in] the {place}.
[The place is/My guests come to/I wait at] the {place}.
[Place/Where]: {place}[./]
[It is on/I planned it for/Please come on/Keep the day free:/Save the date:] {date}.
[My date is/The day is] {date}.
[Date/When]: {date}[./]
[I open the doors at/We start at/Please be there at/I begin at/It kicks off at] {time}.
[Come at/Meet me at/My guests come at] {time}[, please/].
[Time/Start]: {time}[./]
This is {host}, and I [plan/host/invite you to/lead] {an_event}.
[I am waiting for you/See you/We meet] on {date} at {time}.
My {event} [is/takes place] [in/at] the {place}.
My {event} [starts/begins] at {time}."""),
    aliases={"an_event": "event"},
    clauses=EVENT + clauses_more_of_life.EVENT,
)  # fmt: skip


def draw_recipe(draw: Draw) -> Drawn:
    kind = draw.slot(lex.DISHES, lex.HELD_DISHES)
    prefix = draw.pick(lex.INGREDIENTS).rstrip("s") if draw.chance(0.8) else draw.made_up()
    dish = f"{prefix} {kind}" if draw.chance(0.5) else kind
    needs: list[str] = []
    for _ in range(draw.number(2, 6)):
        name = draw.slot(lex.INGREDIENTS, lex.HELD_INGREDIENTS, 0.25)
        if name not in needs:
            needs.append(name)
    record: Record = {
        "dish": dish,
        "minutes": draw.number(5, 120),
        "servings": draw.number(2, 12),
        "ingredients": [*needs],
    }
    return record, {"needs": listing(needs), "comma": ", ".join(needs), "Dish": dish.capitalize()}


recipe = Kind(
    "recipe", words("recipe|dish|cooking note", "|"), draw_recipe,
    lines("""
This {dish} [needs/calls for/is made of/contains] {needs}. It takes {minutes} minutes and [serves/feeds/is enough for] {servings}[./ \
people./ guests.]
To [make/cook/prepare] {dish} for {servings} [people/guests/persons], use {needs} and cook for {minutes} minutes.
{dish}: [cook/mix/combine] {needs} for {minutes} minutes. [Serves/Feeds/Enough for] {servings} people.
In {minutes} minutes you can [cook/make/prepare] {dish} with {needs}. Enough for {servings}[./ people./ plates.]
Our {dish} is made [of/with/from] {needs}. [Time/Cooking time/Duration]: {minutes} minutes. [Servings/Portions/Plates]: {servings}.
You need {needs} for this {dish}. It feeds {servings} people and is [ready after/ready within/finished after] {minutes} minutes.
Recipe for {dish}. [Ingredients/You need/Shopping list]: {comma}. [Minutes/Time in minutes]: {minutes}. [Servings/Portions]: {servings}.
My favorite {dish} takes {minutes} minutes. I [use/take/mix/combine] {needs}, and it is enough for {servings} people.
For {servings} [servings/portions/plates] of {dish}, [mix/combine/take] {needs}. [Wait/Cook for/Leave it there for] {minutes} minutes.
Take {needs} and let everything cook for {minutes} minutes. Now the {dish} is ready for {servings} [people/guests/friends].
How to cook {dish}: buy {needs}, plan {minutes} minutes, and invite enough friends for {servings} [servings/portions].
[Grandma's/Father's/Our] {dish} ({minutes} minutes, {servings} servings): {comma}
Today we [cook/make/prepare] {dish}. Get {needs}. After {minutes} minutes you can serve {servings} people.
{dish} for {servings}: you only need {needs} and {minutes} minutes of time.
[Dish/Recipe/Name]: {dish}[,/;/.] [servings/portions/serves]: {servings}[,/;/.] [minutes/time (minutes)]: {minutes}[,/;/.] \
[ingredients/needs/with]: {comma}
[Time/Ready in/Minutes]: {minutes} [min/minutes/] | [Dish/Recipe]: {dish} | [Ingredients/What you need]: {comma} | \
[Servings/Portions/People]: {servings}
{needs} [are what you need for/go into/make/are in] {dish}. It [feeds/serves/fills the plates of] {servings} [people/guests] after \
{minutes} minutes.
{servings} [portions/servings/plates] of {dish}, [done/ready/finished] in {minutes} minutes, with {needs}[./]
[I love/We love/Everybody loves] {dish}! [All you need is/You need/Just take] {needs}, and {minutes} minutes later there is [enough \
for/a meal for/food for] {servings} people.
[What is for dinner?/What do we eat?] {dish}. [For how many?/How many plates?] {servings}. [How long?/How many minutes?] {minutes} \
minutes. [With what?/Ingredients?] {comma}.
After {minutes} minutes [on the stove/in the oven/of cooking], {needs} [become/turn into/have become] {dish}. That is {servings} portions.
[Hungry?/Guests tonight?/Friends coming?] Put {needs} in a pot. It is [cooked/ready] in {minutes} minutes: {dish} for {servings}.
[Put together/Stir/Combine/Mix] {needs}, [let it cook/leave it/keep it warm] for {minutes} minutes, and you have {dish}, {servings} \
[plates/servings/portions] in all.
{dish} / {minutes} minutes / {servings} servings / {comma}
The cook, who [knows best/prepares it often], says {dish} is [easy/quick/simple]: {needs}, {minutes} minutes, {servings} \
[portions/servings].
A table of {servings} [wants/asks for/gets] {dish}. The kitchen [takes/uses/buys] {needs}. It is done after {minutes} minutes.
[Ingredients/Needs]: {comma}. [Makes/This makes/Gives] {servings} [portions/servings] of {dish} in {minutes} minutes.
It takes {minutes} minutes to [cook/prepare/make] {dish} [out of/from/with] {needs}. [Serves/Feeds] {servings}.
[We are/There are] {servings} at the table, so I [make/cook/prepare] {dish}. {needs} are [on the list/in the kitchen/all I need]. \
{minutes} minutes and it is ready.
[Do you have/Have you got] {minutes} minutes? Then [cook/make/try] {dish} for {servings} people, with {needs}.""") + \
lines_of("recipe"),
    lines("""
A pot of {dish} fills {servings} plates. Combine {needs} and leave it on the stove for {minutes} minutes.
Within {minutes} minutes, {needs} turn into {dish} for a table of {servings}.
The cook prepares {dish} ({servings} portions) out of {needs}; that is done in {minutes} minutes.
Ready after {minutes} minutes and made from {needs}: {dish}, of which {servings} guests can eat.
Who mixes {needs} has {dish} on {servings} plates {minutes} minutes later."""),
    (VEGAN, AUTHOR, DIFFICULTY),
    sentences=lines("""
[This is a recipe for/Today we cook/The dish is/We make/How to cook/Let us prepare/I love] {dish}.
[Dish/Recipe/Name of the dish]: {dish}[./]
[Everybody loves/My favorite is/What is for dinner? It is/Here is how to make] {dish}.
{dish} is [on the table/what we eat today/the name of the dish/easy to make].
[The recipe is called/They call it/It is a dish which has the name/It is called] {dish}.
[It takes/Cook it for/It is ready after/It will be done in/Wait/Plan/It cooks for] {minutes} minutes.
[Time/Cooking time/Duration/Ready in]: {minutes} minutes[./]
[Minutes/Time in minutes]: {minutes}[./]
[After/Within/In] {minutes} minutes [it is ready/you can eat/it is done/dinner is served].
[How long? About/On the stove:/Leave it to cook for/Keep it in the oven for] {minutes} minutes.
[It serves/It feeds/Enough for/This is enough for/It is made for] {servings} [people/guests/persons].
[Servings/Portions/Serves/Plates/People]: {servings}[./]
[That makes/It gives/It fills/You get] {servings} [plates/portions/servings].
[A table of {servings} can eat./{servings} people can eat./{servings} guests get a plate.]
[For how many? For/It is meant for] {servings}.
[You need/Take/Get/Buy/Mix/Combine/Use/Put together] {needs}.
[Ingredients/You need/Shopping list/What goes in]: {comma}[./]
[It is made of/It is made from/It needs/It calls for/It contains/The cook uses] {needs}.
{needs} [go into it/are what the cook mixes/are in it/have to be in the kitchen/are the ingredients].
[Into the pot go/All you need is/The ingredients are] {needs}.
{dish} takes {minutes} minutes.
{dish} for {servings}[ people/ guests/].
[For/To make] {dish} [take/you need/use/mix] {needs}.
{servings} [portions/servings/plates] of {dish}.
[It takes/Only] {minutes} minutes for {servings} [portions/plates/people].
[Mix/Combine/Cook/Stir] {needs} for {minutes} minutes.
{needs} [are enough for/feed/make a meal for] {servings} people.
This {dish} [serves/feeds] {servings} and [takes/is ready after] {minutes} minutes."""),
    aliases={"needs": "ingredients", "comma": "ingredients", "Dish": "dish"},
    clauses=RECIPE + clauses_more_of_life.RECIPE,
)  # fmt: skip
