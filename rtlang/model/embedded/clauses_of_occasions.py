"""Clauses of texts about occasions: events and recipes."""

from rtlang.model.embedded.clauses import Clauses
from rtlang.model.embedded.kinds import lines

EVENT = Clauses(
    cores=lines("""
{host} [invites you/sends invitations/is waiting for you/wants to see you/is the one to ask/looks forward to it/will be glad/needs helpers]
{host} [throws/gives/hosts/prepares/announces/has in mind/is busy with/looks after/got permission for/calls us together for] {an_event}
{host} [meets us/receives the guests/waits/plays the host/wants us/will be found] at the {place}
{host} [got the keys to/has paid for/knows/decorates/called/cleans] the {place}
[the/this/our/that] {event} [is on/will happen/is coming up/goes ahead/is on the calendar/awaits you/was confirmed/costs nothing/is not \
far off]
[the/this] {event} was [set up/thought up/arranged/prepared/announced/called together] by {host}
[everyone/the whole town/each of us/my family] [knows about/likes/comes to/talks about/wants to see] the {event}
[visit/attend/support/enjoy/remember/do not forget/tell your friends about/come over for/bring a cake to] the {event}
[visit/ask for/phone/write to/help/thank/look for/see/follow/greet] {host}
[go/come/drive/walk/hurry/bring your friends/find your way] to the {place}
the {place} [is ours/is open to us/fills up/will be crowded/is decorated/offers the room/provides the stage/was picked/has enough chairs]
the {place} [becomes/is/turns into] the [scene/home/stage] of {an_event}
[guests/neighbors/friends/children] [gather/assemble/get together/are expected/come in/arrive/show up/meet]
[things get going/it all starts/the fun begins/the first guests arrive/everything begins/the program runs/nobody stays at home]
[we/they/all of us] [come together/get together/are invited/have been asked/were called] for {an_event}
{date} [is the day/is when it happens/was chosen/suits everybody/is the date to remember/has been fixed/it shall be]
{date} [brings/sees/is the day of/was set for/is reserved for] {an_event}
{date} is when {host} [expects us/opens up/wants everybody there]
{time} [is the hour/is when it starts/is when the doors open/was agreed/is not too late/is the start]
[an invitation/a letter/a card/a message] [came/arrived/has come/was sent] from {host}
there [is/was/is going to be/shall be] {an_event}
[I heard/we read/the paper says/somebody told me] that {host} [gives/is preparing/has announced] {an_event}
at the {place} [waits/stands/you will meet/you find/works] {host}
[have you heard that/did you know that/good news:/remember:/it is true:] {host} [gives/hosts/runs/manages] {an_event}
[tickets/seats/tables] [are free/can be had/are limited/are still left]
who [runs/hosts/plans/pays for] it? {host} [does/of course/alone]
where [is it/do we go]? The {place}, [they say/as I heard/of course]
what is [going on/happening/planned]? The {event} [of course/again/at last]
I, {host}, [invite you/am the host/hope to see you/ask you to come]
my name is {host} and I [give/plan/run/look after] {an_event}
the {place} belongs to {host} [on/as of] {date}
{host} [picked/chose] {date} and the {place}
the {event} [fills/moves into/comes to/needs/will shake] the {place}
the {event} [falls on/was moved to/has its place on] {date}
[one hour/a bus/the first train] before {time} [is early enough/will do]"""),
    adjuncts=lines("""
[for/during/because of/as part of/in the course of/on the occasion of] {an_event}
[at/before/during/ahead of] the {event}
[, the occasion is/, the occasion being/, it is about/, event:/, the plan is/, what we do is/, what for:/, and what awaits us is] {an_event}
with {an_event} [on the program/in mind/ahead/planned/to look forward to]
[because/since/now that] [it is time for/there will be/everyone wants] {an_event}
[to see/to attend/to enjoy/to take part in/joining/attending/looking forward to] {an_event}
[, which is {an_event}/, an evening called {event}/, and {an_event} it shall be/, all because of the {event}]
[in/at/inside/over at/down at/within/right at/not far from the door of] the {place}
[, the venue is/, the venue being/, venue:/, the address is/, location:/, and the place is/, where:/, meeting point:] the {place}
with the {place} as [the/its] [venue/location/meeting point/address]
[using/filling/taking over/having booked/entering/inside the walls of] the {place}
[, for which the {place} was booked/, and the {place} is where/, where the {place} gives us a room/, held nowhere but at the {place}]
[as/because/since] the {place} [is free/is big enough/offers its rooms/lets us in]
on {date}
[, date:/, the date being/, the day is/, and the date is/, which is on/, on the calendar:/, when:/, note the date:] {date}
[set for/fixed for/dated/planned for/agreed for/moved to/announced for/not earlier than] {date}
[when {date} comes/once it is {date}/as soon as {date} arrives/, and {date} is the day/, the day we chose being {date}]
[at/from/from about/starting at/beginning at/opening at/not before/as early as/no later than] {time}
with [a start/the start/the opening/the beginning/the first act/the doors opening] at {time}
[, time:/, the hour being/, the time is/, the start is/, start:/, and it begins at/, which begins at/, at exactly] {time}
[when the clock shows/when it is/once it is/as the clock strikes/shortly after] {time}
at {time} [sharp/on the dot/exactly/or a little later]
[with/by/thanks to/on behalf of/at the invitation of/together with/following an idea of/in the name of] {host}
with {host} [in charge/as host/as the host/as organizer/at the head/running things/at the door]
[, an idea of/, host:/, the host is/, the host being/, organizer:/, put together by/, arranged by/, a project of/, signed] {host}
[, which {host} arranged/, whose host is {host}/, for which {host} is responsible/, and {host} is the one behind it/, where {host} \
greets us]
[, says {host}/, writes {host}/, {host} tells us/, as {host} promised/, and {host} leads it/, in the hands of {host}]
[hosted/guided/managed/directed/organized/announced] by {host}
[as/because/since] {host} [has planned it/wants it/promised it/has time],
[according to/if we believe/as we hear from/invited by/called by] {host},
on {date} at {time}
[at {time} on {date}/from {time} on {date}/, date and time: {date}, {time}/, as early as {time} on {date}]
[at the {place} with {host}/, where {host} opens the {place}/, hosted by {host} at the {place}/with {host} at the {place}]
[at the {place} from {time}/, {time} at the {place}/, {date} at the {place}/, beginning on {date} at the {place}]"""),
)

RECIPE = Clauses(
    cores=lines("""
{dish} [is on the menu/comes out well/tastes best fresh/is what I make/is served/goes on the table/is my plan for tonight/never fails]
{dish} [asks for/requires/consists of/starts with/uses/combines/unites/lives from/is based on] {needs}
{dish} [needs/wants/stays in the oven for/has to cook for/cooks for/keeps you busy for] {minutes} minutes
{dish} [satisfies/will feed/goes around for/is meant for/is shared by/makes happy] {servings} [people/eaters/guests/hungry people]
[boil/fry/bake/heat/chop/wash/slice/stir/grab/weigh] {needs}
[try/bake/make/serve/cook/order/enjoy/taste/learn/prepare] [this/the/our/some] {dish}
[my aunt/our chef/grandmother/the kitchen/a neighbor/mother] [prepares/cooks/offers/suggests/serves/makes] {dish}
[what you see here/what we are having/the plan/our meal/dinner/lunch] is {dish}
{minutes} minutes [are enough/go by quickly/is all it takes/of work are needed/pass/are not long]
{minutes} minutes of [cooking/baking/work/patience] [give/bring/lead to/result in/are the price of] {dish}
{servings} [people/guests/friends/eaters/children] [are invited/can sit down/sit at the table/will be full/want to eat/are fed]
{servings} [people/guests/friends] [share/enjoy/want/ordered/eat] {dish}
{servings} [portions/servings/plates/helpings] [are planned/come out/are the result/can be filled/go on the table]
{needs} [are needed/are bought/wait in the kitchen/come together/meet in the pan/give the taste/are mixed/lie ready]
{needs} [make/give/end up in/are used for/are cooked into] {dish}
[the recipe/this recipe/the book/the page] [describes/explains/tells how to make/is about/is for] {dish}
[the recipe/this meal/it/everything] [works/is easy/succeeds/gives no trouble/tastes great/costs little]
[you/we/they] [can cook/will serve/make/love/bake] {dish}
[you/we/they] [put together/need/bought/will use/wash and cut] {needs}
[the pot/the pan/the oven/the bowl] [holds/contains/gets/receives/is full of] {needs}
[the shopping list/the list of ingredients/the basket] [says/names/shows/holds]: {comma}
[feed/invite/surprise/call] {servings} [people/guests/friends]
[set/lay/prepare] the table for {servings}
[plan/allow/reserve/calculate/set the timer to] {minutes} minutes
[start cooking/get going/let us cook/light the fire/wash your hands]
how long does {dish} take? {minutes} minutes [at most/or so/in all]
how many [can eat/get a plate/does it feed]? {servings} [in all/people/guests]
what [do we need/goes in/is in it]? Just {needs}
I [love/cook/always make/often bake/am hungry for] {dish}
{servings} [people/guests/friends] wait {minutes} minutes for {dish}
{minutes} minutes [make/give/bring] {servings} [portions/plates/helpings]
{minutes} minutes [turn/change] {needs} into [a meal/dinner/lunch/something good]
[buying/washing/mixing/frying] {needs} [comes first/is the first step/is half the work]
[cooking/baking/making/preparing] {dish} [is fun/is no secret/takes some love]"""),
    adjuncts=lines("""
[for/to make/to cook/to prepare/when making/when cooking/while making/on the way to] {dish}
[, and the result is/, which makes/, the dish is/, dish:/, the meal being/, giving/, that is how you make/, and you get/, also known as] \
{dish}
[making/cooking/preparing/serving/with the aim of making/in the case of/by the name of] {dish}
[according to/following/as in/as told in] the recipe for {dish}
[if you want/if you like/whenever we make/because everybody loves/in case you want] {dish}
[, for {dish} is what we want/, and {dish} is the result/, until {dish} stands before you/, the goal being {dish}]
[in/after/within/for/during/in only/in about/over] {minutes} minutes
[taking/lasting/cooking/waiting/needing/baking for/spending] {minutes} minutes
[, minutes:/, time in minutes:/, cooking time in minutes:/, minutes needed:] {minutes}
[, ready in/, the time is/, the cooking time being/, it takes/, which takes/, time:/, duration:/, and it needs/, a matter of] {minutes} \
minutes
with {minutes} minutes [of time/on the clock/of cooking/in the oven/to spare/over the fire]
[, {minutes} minutes from start to end/, and {minutes} minutes later you eat/, a dish of {minutes} minutes/, whose time in the oven is \
{minutes} minutes]
[when/once/as soon as] {minutes} minutes [are over/have passed/are up/have gone by]
for {servings}
for {servings} [people/guests/persons/eaters/hungry friends/plates/portions]
[feeding/serving/filling/to feed/enough to feed/with enough for] {servings} [people/guests/persons]
[giving/making/yielding/divided into/cut into/shared out on/with] {servings} [portions/servings/plates/helpings]
[, servings:/, portions:/, serves/, feeds/, number of portions:/, people:/, number of guests:] {servings}
[, enough for/, which feeds/, a meal for/, which is for/, which satisfies/, sufficient for] {servings} [people/guests]
[, and {servings} people get a plate/, so that {servings} can eat/, of which there are {servings} portions/, whose portions number \
{servings}]
[when/if/because/since] {servings} [people/guests/friends] [come/are hungry/visit/want to eat]
[with/from/out of/using/mixing/combining/taking/by adding/by cooking] {needs}
[made/cooked/prepared/put together] [with/from/out of] {needs}
[, ingredients:/, shopping list:/, you need:/, with:/, contents:/, the ingredients are:/, needed:/, what goes in:] {comma}
[, which needs/, which contains/, for which you need/, the ingredients being/, whose ingredients are/, the secret being] {needs}
[after buying/after washing/after cutting/once you have/as soon as you have/provided you have] {needs}
[, and {needs} go in/, where {needs} meet/, in which you find {needs}/, and {needs} are in it]
with {needs} [at hand/at home/in the kitchen/inside/added]
[for {servings} people in {minutes} minutes/in {minutes} minutes for {servings} people/, {servings} portions after {minutes} minutes]
[, {minutes} minutes and {servings} portions/, minutes: {minutes}, portions: {servings}/, serving {servings} after {minutes} minutes]
[cooking/heating/boiling/frying/by baking] {needs} for {minutes} minutes
[turning {needs} into {dish}/using {needs} for {dish}/making {dish} out of {needs}]"""),
)
