"""More whole requests for the tools of travel and leisure: the name of a tool, then what people say when they mean it."""

REQUESTS = """
get_weather
I hope it stays dry in {city} on {day}, what does the [forecast/outlook] say?
Could you [check/look up] the forecast for {day} in {city}?
We are planning a picnic in {city} for {day}, will the weather [hold/play along]?
What kind of [sky/weather] awaits me in {city} when I arrive on {day}?
I am thinking of hiking near {city} on {day}, unless it [rains/storms].
Which temperatures are [expected/predicted] for {day} in {city}?
Tell me the [outlook/weather] for {city}, I mean on {day}.
{city} weather {day}[/?]
Can we expect [sunshine/blue skies] on {day} over {city}?
My mother flies to {city} and wants to know if {day} will be [stormy/wet] there.
If the [sun shines/weather is fine] in {city} on {day} we will swim, so what is predicted?
Do I need [boots/gloves/a hat] on {day} while walking around {city}?
For {day}, let me have the weather [report/prediction] covering {city}.
Is [fog/thunder/wind] likely in {city} come {day}?

find_route
I am lost in {start} and my goal is {end}, so [guide/direct] me.
Could you [tell/explain to] me how one reaches {end} when setting out from {start}?
Navigate: start {start}, [goal/destination] {end}
Take me by the [fastest/quickest] roads from {start} over to {end}.
Lead us to {end}; we are [now in/just leaving] {start}.
By what [road/streets] does one travel between {start} and, at the other end, {end}?
Plan a drive that begins in {start} and [finishes/ends] in {end}.
My aunt will be driving to {end} out of {start} and needs [directions/to know the roads].
Starting at {start}, where do I [turn/head] to reach {end}?
I want to cycle from {start} as far as {end}, so [map/work] out the way.
Driving directions, [beginning/origin] {start}, arrival {end}[/, if you can].
We set off for {end} tomorrow. Which road should we take [out of/from] {start}?
I have no map, so describe the [road/way] that takes me to {end} out of {start}.
Calculate a [path/route] to {end} with {start} as the starting point.

book_flight
Airline ticket wanted! [Leaving/Out of] {origin} on {date}, landing at {destination}.
My meeting in {destination} is right after {date}, so I must [take off/fly out] from {origin} on that day.
Reserve an airline seat, {origin} to {destination}, [departure/departing] {date}.
Air ticket: from {origin}, to {destination}, [day/when] {date}
I would like to leave {origin} by plane on {date} and land in {destination}[/, please].
Is there a seat on the plane to {destination} out of {origin} on {date}? [Take it/Book it] for me.
On {date}, put me on an [aircraft/airplane] in {origin} bound for {destination}.
We are flying home to {destination}; please book the [flight/plane] from {origin} for {date}.
Get a plane ticket with {origin} as departure airport, {destination} as [goal/arrival airport], and {date} as the \
date.
Because the train takes too long, I'd rather [fly/take a plane] from {origin} over to {destination} on {date}.
The plane should take me out of {origin} to {destination}, and the [day/date] is {date}.
For {date} a ticket is [needed/wanted] for the flight that goes to {destination} out of {origin}.
My boss sends me to {destination} on {date}, so [buy/order] an air ticket from {origin}.
Departing {date} from the airport of {origin}, I want to touch down in {destination}, so [book/reserve] that flight.

find_train
What time do trains [depart/leave] {origin} for {destination} on {day}?
I hate driving, so which rail connections take me on {day} to {destination}, with {origin} as my [first station/home \
station]?
Could you [check/consult] the railway timetable for {day}, from {origin} over to {destination}?
Is there a train running to {destination} on {day}? I would [board/get on] in {origin}.
Train times {origin} to {destination}, [travelling/leaving] {day}
Show me rail departures at {origin} heading for {destination}, [and only for/just for] {day}.
My grandmother is coming to {destination} by rail on {day}, and her station is {origin}, so [what trains run/look up \
her train].
For {day}, list the [rail services/trains] that link {origin} with {destination}.
By rail from {origin}, [how early/how late] can I get to {destination} on {day}?
Which train do I have to [catch/take] in {origin} on {day} to end up in {destination}?
We hope to ride the rails on {day}, [starting/departing] at {origin} and getting off at {destination}.
If trains run on {day} between {origin} and the city of {destination}, [tell me when/what are the times].
At the station of {origin} on {day}, when does the train for {destination} [pull out/depart]?
Let me know the [timetable/schedule] of trains to {destination}; I am in {origin} and travel on {day}.

book_hotel
Could you find me a place to sleep in {city}, [checking in/arriving] on {date}, for {nights} nights?
I am going to {city} and have nowhere to stay; it's {nights} nights, [beginning/first night] {date}.
Reserve {nights} nights in a {city} hotel, with check-in on {date}[/, if you can].
Accommodation: {city}, check-in {date}, [length/nights] {nights}
My wife and I wish to spend {nights} nights in {city}, so [reserve/book] us a room as of {date}.
As our friends in {city} have no spare bed, we need a hotel from {date}, for {nights} nights [in all/altogether].
On {date} I land in {city}, and for {nights} nights I'll want a hotel [bed/room].
Is any hotel in {city} free from {date}? [Take it/Reserve it] for {nights} nights.
A double room in {city} would be [lovely/great], {nights} nights, we check in on {date}.
Please have a hotel room ready for me on {date} in {city}, I'm leaving after {nights} [nights/nights there].
Since {date} is when my {city} holiday begins, some [clean/cheap] hotel ought to host me {nights} nights long.
For my conference in {city} I require lodging for {nights} nights, [starting on/the first being] {date}.
{nights} nights of hotel are [needed/wanted] in {city}, check-in date {date}.
Let us [lodge/stay] at some hotel for {nights} nights when we get to {city} on {date}.

rent_car
Could I have a rental car for {days} days in {city}, [pickup/to be picked up] on {date}?
My own car broke down in {city}, so from {date} on I must [rent/hire] one for {days} days.
Rental car: pickup {city}, [first day/beginning] {date}, duration {days} days
When I land in {city} on {date} a rental car should be [waiting/ready], and I'd return it after {days} days.
Reserve a hire car, {days} days, to be [collected/fetched] in {city} on {date}.
We would like to explore the country by car for {days} days, [picking it up/renting it] in {city} on {date}.
As there are no buses around {city}, get us a rental car on {date} for {days} days[/, please].
{days} days with a [hired/rented] car, that's what I need in {city} as of {date}.
Is a car available for hire in {city} on {date}? I'd [keep/use] it for {days} days.
Beginning on {date}, let me drive a [rental/hire car] in {city}; {days} days are enough.
Arrange [car hire/car rental] in {city} for a period of {days} days, commencing {date}.
I shall want wheels in {city}: rent [something small/anything] from {date}, {days} days.
Pick-up station {city}, pick-up date {date}: a [small/family] car, rented out to me {days} days long.
On {date} we'll be at the car rental [desk/counter] in {city} and want a car that we keep {days} days.

cancel_booking
Sadly our holiday falls through, so please [call off/annul] the booking {code}.
Is it still possible to [withdraw/back out] from booking {code}?
My plans have changed and the trip with the number {code} is [off/not happening].
[Void/Annul] the reservation {code} for my journey.
I broke my leg and must give up the trip booked under {code}, [cancel it/so cancel].
Travel booking {code}: [cancel/call off], please
Could you [scrap/drop] the trip we booked as {code}?
Due to [illness/bad weather], reservation {code} for our holiday is to be canceled.
I regret that I [have to/must] give up my travel booking, number {code}.
We are not going anywhere. [Delete/Scrap] booking {code}.
I would be glad if the booking with the code {code} were [revoked/undone].
Our [flight and hotel/journey], booked under the number {code}, should be called off.
Instead of travelling we would rather stay here, so {code} is a booking to be [dropped/cancelled].
I wish to [back out of/step back from] the trip {code}.

order_taxi
Could a taxi [come/drive] to {address} by {time}?
My flight leaves soon, so have a cab [outside/waiting outside] {address} at {time}.
Cab for {time}, [pickup at/from] {address}.
I can't walk that far; let a taxi [fetch/collect] me from {address} at {time}.
Grandma needs a ride, she is waiting at {address} and wants to [leave/go] at {time}, so call her a cab.
The taxi should [arrive/ring] at {time}, the house is {address}.
Taxi, [pickup/time] {time}, street {address}
By {time} I must be on my way, so I want a [cab/taxi driver] to come to {address}.
Is a [taxi/cab] free at {time}? It would have to come to {address}.
We're stranded at {address} without a car, please have a [taxi/cab] come for us at {time}.
Book me a [cab/taxi ride] that starts from {address} at {time}.
I would be grateful for a taxi to {address}, where I'll be [standing/waiting] at {time}.
No bus runs as early as {time}, so let a [cab/taxi] come to our door, which is {address}.
When it is {time}, my guests at {address} will want to go home by [taxi/cab], so order one.

book_table
Could you get us in at {place} around {time}? We'd be {people} [guests/diners].
It's our anniversary, so I want a table at {place}, {time}, with {people} [seats/chairs].
Restaurant {place}, {time}, [party of/seats for] {people}
Does {place} have a free table at {time}? [Reserve it/Take it] for {people} of us.
Let the waiters at {place} know we are coming at {time}, {people} [hungry people/guests] in all.
Phone {place} and [reserve/book] for a party of {people} at {time}.
My whole family of {people} would like to dine at {place}, so have a table [kept/held] at {time}.
For {people} guests, [secure/hold] a table in the restaurant {place} at {time}.
I promised {people} colleagues a meal at {place}; please [reserve/book] the table for {time}.
At {place} it is always full, so better [reserve/book] ahead: {time}, {people} persons.
A table with room for {people} is [wanted/needed] at {place} by {time}.
We'll be [dining/having supper] at {place} at {time}, {people} in number, so keep seats for us.
Would {place} have room for {people} eaters at {time}? If so, [make/place] a reservation.
By {time} there should be a [window table/quiet table] waiting for {people} of us at {place}.

buy_tickets
Could you get us into {film} on {day}? We are {count}[/ in all].
They are showing {film} on {day}, and I'd like {count} [cinema seats/movie tickets].
I promised the children {film} at the cinema, so {count} tickets for {day} [please/are needed].
Movie: {film}, [showing/screening] {day}, seats {count}
Before {film} sells out on {day}, [secure/snatch] {count} tickets.
{count} of us are dying to [watch/see] {film} in the cinema on {day}, so get the tickets.
Let's go to the movies on {day}! [Book/Order] {count} tickets for {film}.
For the {day} screening of {film} I [need/require] {count} tickets.
Is {film} on at the cinema on {day}? Then I'll [take/have] {count} tickets.
Please pay for {count} cinema tickets, the film is {film} and the [evening/day] is {day}.
My friends chose {film}; [purchase/order] {count} entries for the show on {day}.
On {day} my cinema club of {count} wants to sit in {film}, so [buy/book] seats.
I would like {count} [good/middle] seats in the cinema when {film} runs on {day}.
We missed {film} last time, so have {count} [seats/tickets] held for us on {day}.

find_restaurant
I'm craving {dish}, who [serves/offers] that around {city}?
Could you [recommend/suggest] a place to eat {dish} while I'm in {city}?
We are visiting {city} and my son eats nothing but {dish}, so where do we [go/dine]?
Is there an [inn/eatery/restaurant] in {city} known for its {dish}?
Look for somewhere in {city} that has {dish} on the [menu/card].
Dinner out: {dish}, town: {city}, [where/which restaurant]?
In {city}, which restaurants are [famous/praised] for {dish}?
I wish I knew a good [place/restaurant] for {dish} in {city}.
Instead of cooking, we'd go out for {dish} in {city} if you [knew/found] a restaurant.
Point me to the best [restaurant/kitchen] for {dish} that {city} has.
If a restaurant in {city} has {dish}, [tell me its name/I want to know].
Hungry in {city}. [Any place/A restaurant] with {dish}?
A [diner/restaurant] serving {dish} is wanted, it should be in {city}.
Tourists in {city} who fancy {dish}, [where do they eat/to which restaurant do they go]?

find_recipe
I promised {people} guests {dish} and have no idea how to [make/prepare] it.
Could you dig out [instructions/a recipe] for cooking {dish}? There will be {people} of us.
What [ingredients/things] go into {dish} when I cook for {people}?
Tonight {people} friends are coming and I'd like to [bake/prepare] {dish}, so give me a recipe.
How is {dish} [made/prepared] so that {people} people get full?
Look up a recipe with {people} [servings/portions] of {dish}.
Cooking {dish}, {people} persons, [what do I do/how does it go]?
I'd like to learn to make {dish} myself, in a quantity for {people} [eaters/people].
My cookbook has nothing on {dish}; please [find/look for] a recipe that feeds {people}.
Explain step by step how one [cooks/prepares] {dish} for {people} hungry people.
For a family of {people}, which [quantities/ingredients] do I need to cook {dish}?
Grandpa wants to cook {dish} for {people}, can you [show/read] him a recipe?
Let me have the [cooking instructions/recipe] for {dish}, scaled to {people} persons.
It's my turn in the kitchen: {dish} for {people}. [How do I cook that/Find me the steps]?

find_course
Does anyone in {city} [give/offer] a class in {title}?
I've always wished to get better at {title}, is there a [school/course] for that in {city}?
My daughter would like to take [lessons/a course] in {title}, and we live in {city}.
Show me what [evening classes/courses] there are on {title} around {city}.
Course search, subject {title}, [town/place] {city}
Since I moved to {city} I have free evenings and would [study/take up] {title} with a teacher.
Are there any [workshops/beginner classes] for {title} in {city}?
Could you look for {title} [training/instruction] given in {city}?
I know nothing about {title}; a [teacher/class] in {city} could change that, so find one.
Look around {city} for a [school/place] where {title} is taught.
Which [colleges/schools] of {city} have {title} among their courses?
To brush up my {title} I need a [course/class], somewhere in {city}.
Rather than teach myself {title}, I'd [attend/join] a course in {city}.
Please [list/show] the courses that {city} has in {title}.

find_concert
Is any {event} [taking place/happening] in {city} this {day}?
We are bored and would love to [attend/see] a {event} in {city} on {day}.
See if {city} [hosts/offers] a {event} on {day}.
What's on in {city} on {day}? A {event} would be [perfect/nice].
Event search: [kind/type] {event}, place {city}, day {day}
My cousin visits me in {city} on {day} and loves a good {event}, so [find us one/is there one].
On {day}, does {city} have a {event} one could [go to/attend]?
I've got {day} off and feel like a {event}, somewhere in [the middle of /]{city}.
Look through the [calendar/events] of {city} for a {event} on {day}.
For {day}, could you [recommend/suggest] a {event} within {city}?
Has somebody organised a {event} for {day} in [or around /]{city}?
If a {event} is [planned/announced] for {day} in {city}, let me know.
I don't want to stay home on {day}; is a {event} [on/going on] anywhere in {city}?
Where in {city} is a {event} being [held/given] on {day}?

get_score
How many goals did {team} [score/get] on {day}?
I fell asleep before the end on {day}; did {team} [make it/come out on top]?
Look up how the {day} match of {team} [ended/turned out].
{team} result {day}[/?]
My brother supports {team}, so please tell us the [outcome/result] of the match on {day}.
Was it a [victory/defeat/draw] for {team} on {day}?
With what score did {team} leave the [field/pitch] on {day}?
I couldn't watch {team} play on {day}, how did the game [end/go]?
Could you [check/find out] who was beaten on {day}, {team} or the others?
Show me the [final score/final result] from {day} when {team} played.
Did the {day} game go [well/badly] for {team}?
Against whom and how high did {team} [lose or win/win or lose] on {day}?
The radio was off on {day}, so I still don't know how {team} [fared/got on].
Sports results for {day}, please, [only/just] for {team}.

search_books
Is {title} on your shelves? {author} is the [author/writer].
My teacher praised a novel by {author}, its [title/name] is {title}.
Could you look in the catalogue for {title}, [penned/written] by {author}?
I'm after a [book/volume] named {title} from the pen of {author}.
Catalogue search: {author}, {title}[/, please]
Where in the library does {title} stand? It was {author} who [wrote/authored] it.
For my class I have to read {author}, namely {title}, so [look it up/search the catalogue].
See whether the library [owns/holds] {title}, a work of {author}.
{title} is a book that {author} [published/wrote], can I borrow it here?
Of all that {author} has written, I only want {title}, so [hunt it down/see if you have it].
Does the library have a [copy/free copy] of {title}? Author is {author}.
I'd love to [borrow/take home] the book {title}, written by {author}.
Go through the books by {author} and see if {title} is [among them/there].
Someone told me that {author} is the one behind {title}; [check/look] whether it's in your collection.

lend_book
May {title} stay with me for {days} [further/additional] days?
I'm only halfway through {title}, so please [extend/prolong] the loan by {days} days.
Extend the [loan/due date] of {title} by {days} days.
The library wants {title} back, but I'd need {days} more days to [finish/read] it.
Library loan: {title}, extension [of/by] {days} days
Sorry, I'm a slow reader; could I hold on to {title} for [another/a further] {days} days?
{days} days longer with {title} would be [great/enough], can the library allow that?
Push back the [return date/due date] of my library book {title}, {days} days please.
As I have been ill, {title} isn't read yet, so [let/leave] it with me {days} days longer.
Instead of returning {title} today I'd like to bring it back {days} days [later/from now].
Would you [add/grant] {days} days to my loan of {title}?
Reading {title} takes me [ages/forever], hence I ask the library for a loan prolonged by {days} days.
Can the time I may keep {title} be [lengthened/stretched] by {days} days?
If nobody else is waiting for {title}, I would [borrow/keep] it for {days} days more.
"""
