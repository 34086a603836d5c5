"""More clauses of texts about trade, travel and work, above all passive and inverted ones and lists inside sentences."""

from rtlang.model.embedded.clauses import Clauses
from rtlang.model.embedded.kinds import lines

ORDER = Clauses(
    cores=lines("""
{quantity} {items} [were wished for by/were paid by/are owed to/were promised to/were sold to/go on the bill of/are charged to] {customer}
[wanted/ordered/requested/paid/reserved/wished for] by {customer}: {quantity} {items}
[charge/send the bill to/put it on the account of/take the money from/collect from/ask for the money from] {customer}
[charge/bill/ask] {customer} {price} {money} [apiece/a piece/for each {item}/per unit]
{customer} [is charged/is billed/was quoted/owes us/is asked to pay] {price} {money} [apiece/a piece/for each {item}/per unit]
{price} {money} [a piece/apiece/per unit] [is charged to/is paid by/is owed by/was promised by/comes out of the pocket of] {customer}
[for/at] {price} {money} [a piece/apiece], [it is a deal/all are sold/they are yours/{customer} agreed/the shop lets them go]
what [goes/travels/must be sent/has to get] to {city} is {quantity} {items}
[waiting/hoping/looking/asking] for {items} [in/over in/down in] {city} is {customer}
[packed/boxed/ready/wrapped/counted] [and waiting/today/by noon/for the van]: {quantity} {items}
[promised/agreed/settled/written on the note]: {price} {money} [a piece/apiece/per unit/for each {item}]
[off/away/out] to {city} [goes the box/go the goods/goes all of it/with them]
[from/out of] {city} [writes/calls/comes/asks] {customer}
never [sell/give/let go] [one {item}/a single {item}] for less than {price} {money}
[somebody/a client/a buyer] [named/called/by the name of] {customer} [wants/ordered/will take/paid for/counts on] {quantity} {items}"""),
    adjuncts=lines("""
[charged to/billed to/on the bill of/to be paid by/on the account of/with the bill going to/for the house of] {customer}
[after/following/because of/thanks to] [a call/a letter/an order/a request] [of/from/by] {customer}
, [all of it/everything/the whole lot/every piece] [for/to be paid by/on the bill of] {customer}
, for which {customer} [pays/is charged/is billed/put down/agreed to pay] {price} {money} [apiece/a piece/per unit]
, [charged/billed/counted/booked] at {price} {money} [apiece/a piece]
, [for a price per unit of/the price of each being/the price for one being/the cost of one:] {price} {money}
, to be [unpacked/delivered/handed over/received/unloaded] in {city}
[by way of/towards/off to/down to/up to/over to/going out to] {city}
, [where to:/delivery address:/goes to:/final stop:/with delivery in/place of delivery:] {city}
, [how many:/number:/amount:/how much of it:/all in all] {quantity}
, [what:/wanted:/kind of goods:/which thing:/the thing:] {item}
[numbering/coming to/amounting to] {quantity} [in all/pieces/units]"""),
)

BASKET = Clauses(
    cores=lines("""
{goods} [were wished for by/were paid by/are owed to/have been promised to/were sold to/must be handed over to/are charged to] {customer}
[wanted/ordered/requested/paid/reserved/wished for] by {customer}: {goods}
[charge/send the bill to/put it on the account of/take the money from/collect from] {customer}
{customer} [is charged for/is billed for/owes us the money for/walked out with/put down the money for] {goods}
what [goes/travels/must be sent/has to get] to {city} is {goods}
[waiting/hoping/looking/asking] for {goods} [in/over in/down in] {city} is {customer}
[packed/boxed/ready/wrapped/counted] [and waiting/today/by noon/for the van]: {goods}
[off/away/out] to {city} [goes the box/go the goods/goes all of it/with them]
[from/out of] {city} [writes/calls/asks] {customer}
[inside/in there/under the lid/in this bag/in the van] [are/lie/you will find/we put/there must be] {goods}
[somebody/a client/a buyer] [named/called/by the name of] {customer} [wants/ordered/will take/paid for/counts on] {goods}
[the bill/the money/the cost] for {goods} [goes to/is charged to/is paid by/lies with] {customer}"""),
    adjuncts=lines("""
[charged to/billed to/on the bill of/to be paid by/on the account of/with the bill going to/for the house of] {customer}
[after/following/because of/thanks to] [a call/a letter/an order/a request] [of/from/by] {customer}
, [all of it/everything/the whole lot/every piece] [for/to be paid by/on the bill of] {customer}
, to be [unpacked/delivered/handed over/received/unloaded] in {city}
[by way of/towards/off to/down to/up to/over to/going out to] {city}
, [where to:/delivery address:/goes to:/final stop:/with delivery in/place of delivery:] {city}
, [what:/wanted:/contents:/what is in it:/what we pack:] {goods}
[packed with/loaded with/filled with/made up from/carrying] {goods}
, [in which/under whose lid/where] you find {goods}
, for which {customer} [pays/is charged/is billed/will be charged]"""),
)

FLIGHT = Clauses(
    cores=lines("""
{destination} [lies ahead of/sees the arrival of/will be reached by/is the goal of/draws] {passenger}
{origin} [is left by/sees the departure of/is behind/lets go of] {passenger}
{origin} [to/via the clouds to/and on to] {destination} [is the route/is the way/takes a few hours/is what the ticket says/is a fine trip]
[good news/listen/attention], {passenger}: [the flight is on time/your seat is ready/the gate is open]
[reserved/booked/bought/paid/confirmed] for {passenger}: [one seat/a ticket/a place on the plane]
[sitting/seated/asleep/reading/placed] in {seat} is {passenger}
[aboard/on board/on] {flight} [sits/is/travels/flies/you find] {passenger}
[landing/arriving/touching down/stepping out] in {destination}, {passenger} [will be tired/smiles/calls home/takes a bus]
[taking off/setting off/starting/boarding] in {origin}, {passenger} [waves/looks back/falls asleep/finds a place]
in {origin} [boards/waits/checks in/starts] {passenger}
in {destination} [arrives/lands/will step out/ends the trip of] {passenger}
to {destination} [flies/goes/travels] {passenger}
[no other seat than/only seat/the place] {seat} [will do/was left/was given out/is the right one]
[departing/starting/leaving] is [set for/on/planned for] {date}
the [code/number] of the [plane/flight] [reads/is] {flight}"""),
    adjuncts=lines("""
[with a start in/with takeoff in/up from/away from/off from] {origin}
[with arrival in/with landing in/down to/on to/off to/ending in/touching down in] {destination}
, [leaving/out of/starting at/setting off in] {origin} and [arriving/landing/ending] in {destination}
, [to/into/for] {destination}, [out of/coming from/starting from/leaving] {origin}
, [ending in/bound for/arriving in] {destination} after [takeoff/a start/boarding] in {origin}
, [point of departure:/where from:/from where:/departs:] {origin}
, [where to:/to where:/final stop:/arrives:/end of the trip:] {destination}
, [day:/travel date:/departs on/when:/flying on] {date}
, [row and seat:/seat no./place:/sits in:/to be seated in] {seat}
, [flight no.:/plane:/flight code:/number of the plane:] {flight}
, [who:/who flies:/on the list:/guest on board:/the one who flies being] {passenger}
, [known to the crew as/signed by/as told by] {passenger}"""),
)

HOTEL = Clauses(
    cores=lines("""
[booked/confirmed/planned/paid for/agreed]: {nights} nights
[booked/confirmed/agreed/asked]: {price} {money} [a night/each night/for every night]
[booked/confirmed/planned]: {nights} nights for {guest}
[kept/ready/made up/waiting] for {guest} [is a room/is a bed/are the keys/stands a bed] at {hotel}
[arriving/checking in/turning up/moving in] on {check_in} is {guest}
[paying/spending/offering] {price} {money} [a night/each night], {guest} [is satisfied/gets a room/sleeps well/wants a quiet room]
{check_in} [brings {guest} to the door/is when the key is handed to {guest}/sees {guest} at the desk/opens the stay/starts the visit]
{city} [sees/welcomes/greets/awaits/lodges] {guest} on {check_in}
{hotel} [in/of/down in] {city} [has a bed free/is where it will be/confirms/will be the place/opens its doors]
[in/over in] {city} [sleeps/rests/stays/lodges] {guest}
at {hotel} [sleeps/rests/stays/lodges/checks in] {guest}
the [key/bill/room/bill for the room] [is for/goes to/is handed to/belongs to] {guest}
{price} {money} for [a night/one night/every night] [is charged by/is asked by/is paid to/goes to] {hotel}
{nights} [is the number of nights/times the lights go out/nights and no longer/nights are on the bill]
[come/arrive/check in/be there/unpack] on {check_in}, {guest}"""),
    adjuncts=lines("""
[kept for/held for/made out to/registered to/meant for/at the request of] {guest}
, [who:/name on the door:/for:/for whom:/in the book:/key for/bill to] {guest}
, [where:/which hotel:/the roof over the head being/bed at/room at/sleeping place:] {hotel}
, [which town:/hotel in/the town being/where it stands:] {city}
, [how long:/how many nights:/count of nights:/duration in nights:] {nights}
, [from when:/when:/arrives/key from/moving in on/room ready on/day one:] {check_in}
, [one night:/per night:/what a night costs:/tariff:/nightly] {price} {money}
, [at/for/against] {price} {money} [every time the lights go out/for a night in the room/each night]
[in {hotel} of/at {hotel}, a house in/at {hotel} down in/by booking {hotel} in] {city}
[until {nights} nights are over/for as long as {nights} nights/during {nights} nights]"""),
)

WEATHER = Clauses(
    cores=lines("""
[expected/predicted/announced/measured] [for/in] {city}: {condition} [weather/skies]
{condition} [skies await/skies cover/weather awaits/weather is on the way to/skies wait for] {city}
{high} by day, {low} by night: [that is the range/so it goes/this is the plan/those are the degrees]
{low} [early on/before sunrise/at dawn], {high} [later/in the sun/by lunch]: [that is the range/so it goes/take a coat]
[no colder than/never under] {low} and [no warmer than/never over] {high} degrees [it will be/is the plan/says the report]
{wind} km/h of wind [blow through/sweep/hit/cool/rush over] {city}
{wind} km/h, {high} degrees at best and {low} at worst: [not bad/that is it/so it is]
[the people/drivers/children] of {city} [will see/get/can look forward to] {condition} weather
[on {day} it is/on {day} it will be/for {day} they expect/on {day} the sky is] {condition}
[a top of/a peak of] {high} and a [low/bottom] of {low} degrees [are expected/were announced/is the range]
how fast is the wind? {wind} km/h"""),
    adjuncts=lines("""
, [which day:/when:/valid for/concerning] {day}
, [where:/town:/measured at/concerning/as felt in] {city}
, [how is the sky:/outlook:/in words:/all in all] {condition}
, [hottest:/top:/daytime:/up to/best value:] {high}
, [lowest:/bottom:/night time:/worst value:] {low}
, [storm:/air speed:/the wind:/speed of the air:] {wind} km/h
, with [storms/air/a storm/squalls] [at/of/up to] {wind} km/h
, {low} [at dawn/in the dark/early on] and {high} [at noon/in the sun/at lunch]
, {high} [at noon/in the sun/at lunch] and {low} [at dawn/in the dark/early on]
, {wind} km/h in the air and {high} degrees at best"""),
)

VACANCY = Clauses(
    cores=lines("""
[being/life as/a day as/to be] {a_job} means {needs} [at work/every day/all day] and {salary} [a year/at the end of a year]
[being/life as/a day as/to be] {a_job} means {needs} [at work/every day/all day] and a [flat/life/desk] in {city}
[bring/show/offer/learn/use/train/name] {needs} and [get/earn/make/receive/be paid] {salary} a year
[bring/show/offer/learn/use] {needs} and [become/start as/sign on as/be] {a_job}
[you/applicants/those who apply] [show/have/offer/use] {needs} and [we pay/the firm pays/get/receive] {salary} [a year/annually]
[you/applicants/those who apply] [show/have/offer/use] {needs} but [live/work/stay] in {city}
{needs}, [these are/that is/in short that is] what {company} [asks for/hopes for/values]
{needs}: [this/all this] [is asked/is needed/will be tested/opens the door]
[hired/wanted/sought/needed/called for] [at/by] {company}: {a_job}
[paid/offered/promised] by {company}: {salary} a year
[asked/expected/needed/hoped for]: {needs}
[employed/engaged/working/signed on] as {a_job}, you [get/make/receive/bank] {salary} [a year/annually]
[working/starting/living] in {city}, you [get/make/receive/bank] {salary} [a year/annually]
{salary} a year, [that is what/which is what] [you get/{company} pays/is paid]
with {needs} [in your head/behind you/on your list/in hand] you [get the job/find a desk/are the right one] [at/with] {company}
at {company} you [are/become/work as/start as/may be] {a_job}
in {city} you [are/become/work as/start as/may be] {a_job}
{company} [gives/pays/sends/grants] {a_job} {salary} [a year/annually]
{a_job} is [what/whom] {company} [wants/hires/hopes for/calls for]"""),
    adjuncts=lines("""
[bringing/combining/showing/learning/having] {needs}, [and/but] [ready to start/happy to learn/willing to travel/able to work alone]
, [if/provided/as long as/once] you [show/have/offer/can do] {needs}
, [what counts:/what you need:/what we ask:/list of skills:/know-how:/talents:] {needs}
, [with/using/applying] {needs} [day by day/on most days/at work]
, [who:/wanted:/name of the job:/work as/for the job of] {title}
, [who pays:/boss:/house:/signed,/from all of us at] {company}
, [where:/which town:/desk in/office in/based in] {city}
, [how much:/what it pays:/per year:/yearly:/money:] {salary}
, [and for that/in return/for this work] [you get/we pay/there is] {salary} [a year/annually]
, [receiving/banking/with a reward of/with a yearly] {salary} [in return/for the work/as pay]"""),
)

INVOICE = Clauses(
    cores=lines("""
[issued/signed/mailed/written/sent] by {company} [of/in/from] {city}: [a bill/an invoice/a reminder]
[owed/open/unpaid/asked/still to be wired]: {total} {currency}
[filed/stored/listed/booked/kept] as {number} is the [bill/invoice/document]
[to/for/into the hands of] {company} [of/in/from] {city} [goes the money/we wire it/the payment is made/belongs the sum]
[before/by/until/not after] {due} [the money must be there/we have time/it has to leave our account/they want to see it]
{total} {currency} [by/until/before] {due}: [that is the demand/so says the bill/we must hurry/please remember]
{total} {currency} [are claimed by/are owed to/should get to/were billed by] {company} [of/from/in] {city}
{number} [comes from/was mailed by/carries the stamp of/bears the name of] {company} [of/from/in] {city}
{number} [runs until/falls due on/is good until/must be cleared by] {due}
{number} [costs us/lists/names/stands for/asks for] {total} {currency}
[under/in/behind] {number} [you find/we filed/lies/is kept] the [bill/invoice]
[we bought from/we ordered at/we were served by/we had work done by] {company} [of/from/in] {city}
{due} is [how long we have/what the stamp says/the end/when {company} in {city} wants the money]"""),
    adjuncts=lines("""
[filed under/kept as/stored as/listed as/found under/known as/booked as] {number}
, [file:/paper no./document:/code:/see/marked with/on file as] {number}
, [who sent it:/who wants it:/money to:/goes to:/creditor:/signed,] {company}, {city}
, [which/something that] {company} [down in/of/in] {city} [asks of us/billed/put in the mail]
[wired to/made to/handed to/on the way to/in the hands of] {company} [in/of/from] {city}
, [how much:/what it costs:/the whole sum:/debt:/to wire:] {total} {currency}
, [how much:/the whole sum:/debt:/figure:] {total}
, [which money:/coin:/in the money of the bill:/unit of money:] {currency}
, [how long:/when:/final day:/no later than/end of time:/to reach them by] {due}
, to be [wired/sent/cleared/in their hands] [by/before/until] {due}"""),
)

CONTACT = Clauses(
    cores=lines("""
[dial/choose/try/press/punch in] {phone}
[type/choose/use/put in/try] {email} [in your mail program/as the receiver/for letters/when writing]
[try/use/take] {phone} [on weekdays/by day/at noon] or {email} [at night/on weekends/any time]
[note/keep/save/remember]: {name}, {phone}
[note/keep/save/remember]: {name}, {email}
[note/keep/save/remember]: {company}, {street}, {zip} {city}
[sitting/working/waiting/found] at {street}, {zip} {city}, is {name}
[working/selling/writing/speaking] for {company} is {name}
{phone} and {email} [lead to/are the lines of/get you to/are for] {name}
{email} or {phone}: [both work/either will do/you choose/both are right]
{name}, {company}, [picks up/reads mail/is there/helps you]
[at/with] {company} [works/sits/helps/you meet/you talk to] {name}
[the house/the door/the office/the building] [at/on] {street}, {zip} {city}, [is right/is the one/has the sign]
the [sign/paper/badge] [reads/shows/has] {name} of {company}
the [sign/card/paper/badge] [says/reads/shows/has] {street}, {zip} {city}"""),
    adjuncts=lines("""
, [dial/try/choose/you can try/press] {phone}
, [try/mail to/type/send it to/letters to/in writing:] {email}
, [on the phone:/by phone/landline:/cell:/desk phone:/fixed line:] {phone}
, [on the net:/by mail:/inbox:/electronic mail:] {email}
, [who:/say hello to/talk to/for/the one to ask:/spoken by] {name}
, [where:/house:/on the map:/door:/letters:/visit us at] {street}, {zip} {city}
, [firm on the card:/paid by/the house of/sent by/from the desk of] {company}
[trying/through/if you try/after trying] {phone}
[trying/if you try/after trying/by typing] {email} [instead/too/first]
[down at/over at/inside/next to] {street}, down in {zip} {city}"""),
)

VISIT = Clauses(
    cores=lines("""
[treated/examined/received/helped/welcomed] by {doctor}: {patient}
[treated/examined/looked at/found]: {symptom}
[ordered/prescribed/handed out/written down/recommended]: {medicine}
[treated/examined/received/looked after] by {doctor} was {patient}
[complaining of/describing/worried about/in bed with] {symptom} was {patient}
{symptom}, [says {patient}/says {doctor}/so the file says/that is the trouble]
{symptom} [drove {patient} to/made {patient} call/took {patient} to/sent {patient} to] {doctor}
{medicine} [was given to/was prescribed to/went home with/did {patient} good, says/was swallowed by] {patient}
{medicine} [was prescribed by/comes from/was the choice of/was picked by] {doctor}
from {doctor} [came/we have/there is] [a prescription/an order/a note] for {medicine}
to {doctor} [came/went/turned up/limped] {patient}
{patient}, {age}, [sat down/was next/came in/is worried/went home happy]
{doctor} [saw/met/helped/asked/warned] {patient}, who is {age}
{date}, [said {doctor}/so the file says/according to the nurse], [was the day/is the date/is when it was]"""),
    adjuncts=lines("""
, [who:/in the chair:/on the list:/next:/the one in pain being] {patient}
, [years:/years of life:/how old:/a person aged] {age}
, [when:/on the calendar:/written on/file of] {date}
, [by whom:/at the desk:/hands of/signed,/on duty:/physician:] {doctor}
, [why:/what is wrong:/diagnosis:/suffers:/reason of the visit:] {complaint}
, [what helps:/what to take:/pills:/prescription:/on the shelf:/ordered:] {medicine}
[limping in with/worn out by/sleepless from/in bed with/driven here by] {symptom}
, which {doctor} [treats with/fights with/calms with] {medicine}
, [for which/against which] {doctor} [ordered/gave/picked] {medicine}"""),
)
