"""More clauses of texts about occasions, people and things, above all passive and inverted ones."""

from rtlang.model.embedded.clauses import Clauses
from rtlang.model.embedded.kinds import lines

EVENT = Clauses(
    cores=lines("""
[planned/announced/organized/arranged/promised] by {host}: {an_event}
[booked/reserved/decorated/opened/paid] by {host}: the {place}
[waiting/standing/ready/found] at the door is {host}
[to/into] the {place} [we go/go the guests/come the neighbors/all of us go]
[inside/in/at] the {place} [happens/begins/comes off/waits] {an_event}
[ready/set/fixed] for {date} is {an_event}
behind [it all/the idea/the plan] [stands/is] {host}
{an_event}: [this/that] [is the plan/is what we do/is what it is/will be fun]
{an_event} [is what {host} wants/is how {host} celebrates/is the idea of {host}/was announced by {host}]
{date}, {time}: [be there/do not be late/note it down/that is when]
{time}: [the doors are open/it starts/be there/that is when]
[it is/it will be/it has to be] {host} who [greets you/runs it all/gives the party/takes the money/knows the rest]
[opened/run/led/filled] by {host}, the {place} [is ready/is the right place/expects us]
the {place} [is where {host} waits/is decorated by {host}/was picked by {host}]"""),
    adjuncts=lines("""
, [what:/the reason:/what happens:/in one word:/kind of party:] {event}
, [who:/who runs it:/in charge:/behind it:/to thank:/the one who invites:] {host}
, [where to:/which door:/in the rooms of/meet at/the house:] the {place}
, [which day:/day of the year:/on paper:/to be held on] {date}
, [what time:/clock:/doors:/hour:/not later than] {time}
[organized/run/put together/set up] for us by {host}
, for which {host} [set up chairs/invites friends/asks us over]
, [and up come the lights/and the doors open/when all should be there,] at {time}
[in and around/all over/behind the doors of/in the heart of] the {place}
, [promised for/not before/to come on/kept for] {date}"""),
)

PERSON = Clauses(
    cores=lines("""
[at home/living/found/settled] in {city} is {name}
[trained/employed/hired/known] as {a_job} is {name}
[keen on/in love with/good at/devoted to] {hobby} is {name}
[working/paid/employed] as {a_job}, {name} [smiles/is happy/has no time/leads a busy life]
[living/staying/being] in {city}, {name} [smiles/is happy/has many friends/knows everybody]
{city}, [that is where/this is where/there] {name} [lives/stays/has a flat/sleeps]
{a_job}: [this is what/that is what] {name} [does all week/does for money/is on weekdays]
{hobby}: [this is what/that is what] {name} [likes/does on Sundays/talks about/lives for]
{age}: [this is/that is] [how old {name} is/the age of {name}]
{name}, {a_job}, [says hello/is new here/has joined us/likes the sun]
{name}, {age}, [says hello/is new here/has joined us/likes the sun]
{name} of {city} [says hello/is new here/has joined us/likes the sun]
[somebody/a person/an old friend], [{name} by name/called {name}/it is {name}], [lives/stays/has moved] in {city}
{first} is not [just/only] {a_job}
by day [one sees/you see/there is] {a_job}, [by name/that is to say] {name}"""),
    adjuncts=lines("""
, [who:/called/on the badge:/as friends say] {name}
, [years:/how old:/years of life:/born so many years back:] {age}
, [what for a living:/daily work:/paid as/does the work of] {a_job}
, [where:/lives:/a flat in/a bed in/back home in] {city}
, [what for fun:/on weekends:/in free hours:/happy with/first of all] {hobby}
[by day/on weekdays/for money/from nine to five] {a_job}
[on Sundays/in the evening/for fun/at heart] [all about/busy with/lost in] {hobby}
, [not {a_job} by chance/{a_job} and proud of it]
, [{age} and from {city}/{age}, from {city}/from {city} and {age}]
, [{a_job} in {city}/{a_job} on the streets of {city}]"""),
)

TICKET = Clauses(
    cores=lines("""
[reported/filed/noticed/written] by {reporter}: the {device} {problem}
[filed/opened/kept/listed] [as/under] {ticket} is the [trouble/case/report]
[standing/placed/found/used] in room {room}, [a/one/our] {device} {problem}
in room {room} [a/one/our] {device} {problem}, [so somebody must come/so help is needed/says {reporter}]
the {device} [we keep in/which stands in/inside] room {room} {problem}, and {reporter} [is angry/waits/needs help/called us]
the {device} {problem}, [it says in {ticket}/so says {reporter}/so we opened {ticket}]
the {device} {problem} and [nobody knows why/nobody can work/the work stops/{reporter} has to wait]
the {device}, [they say/it seems/as it looks/sadly], {problem}
it {problem}, [the {device} does/says {reporter}/so the note says/and that all day]
{reporter}: "the {device} {problem}"
{reporter} [in/from] room {room} [is upset/called/is the one to ask/needs us/cannot go on]
[sadly/today/again/once more/since noon] [the/my/our] {device} {problem}
{ticket}, [a case of/filed at/given] {priority} priority, [is on the desk/waits for us/comes next]
[up to room {room}/to room {room}] [a technician must go/somebody should run/we have to walk]
why [does {reporter} call/is {reporter} upset/is there a note]? The {device} {problem}"""),
    adjuncts=lines("""
, [who:/who says so:/from the desk of/upset:/the one who waits:] {reporter}
, [which machine:/what is broken:/out of order:/thing:] {device}
, [what is wrong:/what happens:/fault:/sign of it:/the fault is that] it {problem}
, [where:/door:/door number/second floor,/down in] room {room}
, [how pressing:/rank:/class:/treat with priority:/importance:] {priority}
, [file:/in the list:/on file as/our number:/see number] {ticket}
, [so/since/because] [the/a] {device} [there/here] {problem}
, [with the words/in short]: it {problem}
, and the {device} [still/again/now] {problem}
, which {reporter} [filed/opened/wrote/sent] [in/from] room {room}"""),
)

RECIPE = Clauses(
    cores=lines("""
[cooked/baked/made/served/ordered/loved]: {dish}
[cooked/baked/ready/done] [in/after/within] {minutes} minutes [is the meal/is {dish}/comes dinner]
[on the table/in the pot/in the oven/on every plate] [is/stands/waits/we have] {dish}
[into the pot/into the bowl/into the pan] [go/come/we throw/you put] {needs}
[washed/cut/mixed/bought/weighed]: {needs}
out of {needs} [comes/is made/we make/grows] {dish}
{needs}, [that is all/nothing else/these things] [we need/is in it/go in/do we buy]
{needs}, {minutes} minutes [of heat/in the oven/on the fire], [and it is done/that is all/nothing else]
{minutes} minutes, [no more/not longer/that is all], [and it is done/and we eat/and the table is set]
{servings} [hungry mouths/heads/chairs] [wait/are filled/are counted/sit around the table]
[there is/it makes/the pot gives] [enough/a meal] for {servings}
{servings} [can be fed/will be fed/were fed] with {dish}
for {dish} [we need/you buy/one takes/I fetch] {needs}"""),
    adjuncts=lines("""
, [what:/meal:/on the menu:/name:/to be cooked:] {dish}
, [how long:/in minutes:/clock in minutes:/minutes of heat:] {minutes}
, [how many:/how many eat:/plates:/heads:/mouths:] {servings}
, [what is in it:/to buy:/in the basket:/goes in:/from the market:] {comma}
, [into which go/for which we buy/in whose pot are/where the taste comes from] {needs}
, [and {servings} are fed/and {servings} can have some/no more than {servings} at the table]
[with only/given/no more than/inside of] {minutes} minutes [of heat/of your time]
[throwing/stirring/dropping/putting] {needs} [together/into a bowl/into hot water]
[by mixing/by heating/after mixing] {needs}, [then/and] [waiting/cooking] for {minutes} minutes"""),
)

PRODUCT = Clauses(
    cores=lines("""
[made/built/sold/signed/designed] by {brand}: {a_product}
[made/built/cut/formed/sewn] [of/from/out of] {material}: {a_product}
[on the label/on the box/on the tag/on the back] [stands/is printed/you find] {code}
[on the tag/on the sign/on the bill] [stands/you find/is written]: {price} {money}
[sold/offered/listed/kept/filed/stocked] [as/under] {code} is [the {product}/{a_product}]
[sold/offered/yours] [at/for] {price} {money} is [the {product}/{a_product}]
[from/out of] {material} [is/was made] the {product}
[behind/inside] the {product} [stands/is] [the name/the brand] {brand}
{code}, [so the label says/that is the code/if you want to order], [is right/is the one/is what to ask for]
{price} {money} and [not a cent/no] more [it is/is the price/they ask/you pay]
{weight} grams, [that is all/not more/no more], [it weighs/is the weight/and it is strong]
{material}, {weight} grams: [so it is built/this is it/that is the {product}]
{material} by {brand}: [so it is built/this is it/that is the {product}]"""),
    adjuncts=lines("""
, [what:/in the box:/the goods being/kind:] {a_product}
, [who made it:/maker on the label:/house:/name on the box:] {brand}
, [what of:/stuff:/made from/body of/feels like] {material}
, [how heavy:/on a scale/heavy as/in the hand] {weight} grams
, [how much:/what it costs:/on the tag/yours for/to pay] {price} {money}
, [on the box:/on the label:/see/label:/filed as/order as/under the label/stock number] {code}
, [for which/the thing for which] {brand} [takes/gets/asks] {price} {money}
, [sold/stocked/filed/kept] [as/under] {code}"""),
)

MATCH = Clauses(
    cores=lines("""
[beaten/defeated/sent home/crushed] by {winner}: {loser}
[beaten/defeated/sent home/crushed] by {winner}, {loser} [went home/was sad/had no words/left the field]
[beaten/defeated/sent home/crushed] [is/was] {loser}
to {winner} [went/goes] the [win/cup/prize/victory]
to {loser} [went/goes] the [loss/second place/smaller score]
[too strong/too fast/too good] for {loser} [was/were] {winner}
[too weak/too slow] for {winner} [was/were] {loser}
{loser}, [beaten/second best/outplayed/who lost], [made/had/got/scored] {loser_score}
{winner}, [on top/in first place/victorious/who won], [made/had/got/scored] {winner_score}
{winner_score} [to/against] {loser_score}, [and {winner} won/a win for {winner}/so the win is with {winner}]
[it was/it is] {winner} who [won/took the cup/beat {loser}/was better] and {loser} who lost"""),
    adjuncts=lines("""
, [who won:/in first place:/the happy side:/cup to] {winner}
, [who lost:/in second place:/the sad side:/beaten:] {loser}
, [which game:/what they played:/kind of game:] {sport}
, [which day:/when:/day of play:/noted on] {date}
, [points of the team that won:/of the winning side:/winners:] {winner_score}
, [points of the team that lost:/of the beaten side:/losers:] {loser_score}
, [lost by {loser} and won by/a loss for {loser}, a win for] {winner}"""),
)

BOOK = Clauses(
    cores=lines("""
[written/signed/dreamed up/told] by {author}: "{title}"
[written/signed/dreamed up/told] in {year}: "{title}"
[behind/under] "{title}" [stands the name/is the name] {author}
[from/by] {author} [comes/is/we have] "{title}"
on the {genre} shelf [stands/is/you find/waits] "{title}"
{author}, "{title}": [a good book/read it/do you know it/this is the one]
"{title}", [a book of/a work of] {pages} pages, [is here/sells well/was a gift/waits for you]
"{title}", [a book by/told by/a work by] {author}, [is here/sells well/was a gift/waits for you]
{genre}: [this is the shelf/that is the genre/that is what it is]
{pages} pages [it has/are in it/you have to read/were typed by {author}]
[back/long ago] in {year} [it began/it was sold/{author} wrote it/"{title}" came out]"""),
    adjuncts=lines("""
, [what it is called:/on the cover:/name:] "{title}"
, [who wrote it:/by the hand of/the pen being that of/name on the cover:] {author}
, [when:/out in/on sale since/year on the first page:] {year}
, [what kind:/sort:/on the shelf of/shelf:] {genre}
, [how long:/page count:/thick:/up to page] {pages} [in all/at the end/as the last page]
, {pages} pages [in small type/of paper/to turn]
, for which {author} [needed/filled/took] {pages} pages"""),
)

HOUSE = Clauses(
    cores=lines("""
[rented/let/offered/free/empty/to be had]: {a_kind}
[standing/lying/built/found] in {city} is {a_kind}
[standing/lying/built/found] at {address} is {a_kind}
[to/for] [tenants/you/a family] [we let/they offer/is let/is offered] {a_kind}
{rent}, [paid/due] [every month/each month/monthly], [is the rent/is the price/will do/and it is yours]
{rooms} rooms on {area} square meters: [enough for a family/this is it/come and see]
{area} square meters, {rooms} rooms: [enough for a family/this is it/come and see]
{area} square meters, [counted by us/so the plan says/not less], [is the size/it has/is what you get]
{rooms} rooms, [counted by us/so the plan says/not less], [it has/is what you get/there are]
at {address} [lies/stands/waits/we rent out] {a_kind}
{city}, {address}: [come and see/this is it/here it stands]"""),
    adjuncts=lines("""
, [what:/which home:/to let:/on offer:] {a_kind}
, [where:/street:/door:/on the sign:/bell at] {address}
, [which town:/town on the map:/down in/over in] {city}
, [how many rooms:/doors to rooms:/count of rooms:] {rooms}
, [how big:/space in square meters:/square meters:] {area}
, [how much:/what it costs each month:/monthly:/due every month:] {rent}
, for which [tenants/you/they] pay {rent} [a month/each month/monthly]
, split [in/up into] {rooms} rooms
, [to be had for/yours at/let for] {rent} a month"""),
)
