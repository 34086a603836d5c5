"""Clauses of texts about journeys: flights, hotels and the weather."""

from rtlang.model.embedded.clauses import Clauses
from rtlang.model.embedded.kinds import lines

FLIGHT = Clauses(
    cores=lines("""
{passenger} [flies/travels/is flying/will fly/sets off/is booked/takes the plane/goes on a trip/is on the way]
our [guest/passenger/traveller/customer] {passenger} [flies/is booked/will travel/checked in/goes on board]
a [seat/ticket/flight/place] [was/is/has been] [booked/reserved/paid] for {passenger}
we [expect/welcome/wait for] {passenger}
[the/this/your] [ticket/booking/trip/flight/reservation] [is valid/is ready/is confirmed/was paid]
[the/this] ticket of {passenger} [is valid/is ready/was printed]
the [plane/flight] [takes off/departs/leaves/starts]
the [plane/flight] with {passenger} [takes off/departs/leaves]
seat {seat} [is taken/belongs to {passenger}/is for {passenger}/was given to {passenger}/is kept free]
flight {flight} [takes off/departs/is ready/leaves the ground/carries {passenger}/has {passenger} on the list]
{flight} [takes off/departs/brings {passenger} home/is the plane of {passenger}]
{origin} is where {passenger} [gets on/boards/starts/goes on board]
{origin} is where [it starts/the trip begins/the plane takes off]
{destination} is where {passenger} [gets off/lands/wants to go/will arrive]
{destination} is [the goal/the destination/where the trip ends/where it lands]
{passenger} has [a seat/a ticket/a place/a booking]
{passenger} [arrives/lands/will land/gets off] in {destination}
{passenger} [departs from/leaves/climbs aboard in/starts in] {origin}
{passenger} [boards/takes/is on/gets on] {flight}
{passenger} [boards/takes/is on/gets on] [flight/plane] {flight}
{passenger} sits [in/on/in seat] {seat}
{destination} [expects/awaits/will welcome/is happy to see] {passenger}
{origin} [says goodbye to/sends off/loses] {passenger}
{date} is [the travel day/the day of departure/when the plane goes/when {passenger} travels]
{flight} [carries/flies/takes] {passenger} to {destination}
[take/bring/drive/accompany] {passenger} to the [airport/gate]
[leave/say goodbye to/forget] {origin}
[visit/see/discover/think of] {destination}
[take/board/wait for/catch] [flight/the flight with the number] {flight}
[take/keep/find/book] seat {seat}
[the name on the ticket is/the ticket names/the list shows/the pilot greets] {passenger}
the [way/route/line/trip] [leads/goes/runs] from {origin} to {destination}
who [travels/comes along/is on the plane]? {passenger} [does/is/of course]
I, {passenger}, [am flying/have a ticket/am going on a trip]
my name is {passenger} and I [fly/am on the plane/want to travel] to {destination}"""),
    adjuncts=lines("""
from {origin}
out of {origin}
[starting/taking off/departing/setting off] in {origin}
leaving {origin}
[coming from/after leaving/on leaving/with departure from] {origin}
from {origin} to {destination}
[leaving/out of] {origin} for {destination}
[between/on the way between] {origin} and {destination}
to {destination}
[bound for/headed for/on the way to/with destination/with the destination/on a trip to/towards] {destination}
[landing/arriving/to land/to arrive] in {destination}
for {destination}
on {date}
[, the date is/, the day being/, date:] {date}
[dated/as of/planned for/set for] {date}
[on the/with/by/aboard/on board] {flight}
[on/with/by/aboard] [flight/flight number/the plane] {flight}
[using/taking/boarding] {flight}
[, the flight is/, its number is/, number/, flight number/, the plane being] {flight}
[in/on] seat {seat}
in {seat}
[, the seat is/, seat/, the place is/, seat number/, the seat being] {seat}
[sitting/seated/placed] [in/on/at] {seat}
[with/having] seat {seat}
with {passenger} [on board/among the passengers/in the cabin/as a passenger]
[carrying/bringing/taking along/expecting/for our guest] {passenger}
[, the passenger is/, the traveller being/, passenger:/, name:/, booked by/, in the name of] {passenger}
[, where {passenger} has a seat/, which {passenger} booked/, whose passenger is {passenger}/, says {passenger}/, and {passenger} is on \
the list]
[once/after/as soon as/when] {origin} is left behind
[with {origin} as the starting point/, departure: {origin}/, whose trip starts in {origin}/, the start being {origin}/, which leaves \
{origin} behind]
with {destination} [as the goal/ahead/as the last stop/at the end]
[, arrival: {destination}/, until {destination} is reached/, and {destination} is where it ends/, whose goal is {destination}/, \
destination: {destination}]
[because/since/now that] {destination} is [calling/waiting/the goal]
[when {date} comes/once it is {date}/, and {date} is the day/, the travel day is {date}/, which is on {date}]
[, a flight known as/, whose number is/, on a plane with the number/, flight no./, the code of the flight is] {flight}
[, where seat {seat} is free/, and {seat} is the seat/, whose seat is {seat}/, with {seat} as the seat/, paying for seat {seat}]"""),
)

HOTEL = Clauses(
    cores=lines("""
{guest} [checks in/is expected/comes to stay/unpacks/needs a bed/rents a room/has a reservation/gets the key/wants a quiet room/will \
sleep well]
{guest} [stays/lodges/sleeps/is put up/spends the night/has a bed/takes a room] at {hotel}
{guest} [chose/picked/trusts/prefers/likes/called/wrote to/found] {hotel}
{guest} [heads for/goes to/visits/is off to/has business in/spends the holidays in] {city}
{guest} [pays/spends/is charged/was quoted/agreed to/owes] {price} {money} [a night/per night/each night/for every night]
{guest} [will remain/is there/keeps the room/rents the room/is booked in] for {nights} nights
{hotel} [has a room ready/confirms/is almost full/has made the bed/sends a confirmation/keeps a key/is prepared/opens its doors]
{hotel} [houses/receives/hosts/puts up/lodges/will look after/is ready for/greets/writes to] {guest}
{hotel} [bills/takes/wants/demands/charges/gets/asks for] {price} {money} [a night/for one night/every night]
{hotel} [offers/has sold/rents out/gives away/confirms/holds] {nights} nights
{hotel} is [found in/the best house in/a house in/located in/to be found in/at home in] {city}
{city} is [where/the town where] {guest} [stays/sleeps/needs a room/spends the night/rests]
{city} [is the home of/has/is proud of/is the seat of] {hotel}
{city} [expects a visitor/is waiting/is the goal of the trip/is the destination/is busy]
{check_in} is [when {guest} comes/when {guest} arrives/the day of arrival/check-in day/when the room must be ready/the first night]
{price} {money} [buys one night/is the rate/is the nightly rate/is due each night/pays for a night/a night is the deal]
{price} {money} a night [pays for/gets you/buys] [a room/a bed] at {hotel}
{nights} nights [are booked/are planned/have been paid/are confirmed/were reserved/lie ahead]
{nights} nights at {hotel} [are booked/are planned/are paid/were agreed]
a [single room/double room/room/bed] [is ready/is free/was booked/has been reserved/is waiting]
a [room/bed/key/table] [is waiting for/is held for/was given to/belongs to/has been reserved for] {guest}
[book/reserve/prepare/find/get] [a room/a bed/a key] for {guest}
[book/call/try/choose/visit/contact/ask for] {hotel}
[welcome/greet/expect/remember/wake up/write to] {guest}
[the/this/our] [stay/booking/reservation/visit/trip] [is confirmed/was paid/has been arranged/is settled/stands]
in {city} [stands/lies/you find/there is] {hotel}
[the reception/the manager/the clerk/the porter] [writes down/expects/greets/registered/leads the way for] {guest}
[please note/we confirm/I can tell you/it is certain] that {guest} [is coming/has a room/will be our guest]
what does a night cost? {price} {money} [at most/they say/in all]
where does {guest} [sleep/stay/rest]? At {hotel}
who [is coming/needs the room/takes the key]? {guest} [of course/it is/again]
I, {guest}, [need a room/am coming/want to stay/have a booking]
my name is {guest} and I [need a bed/stay/have a room] at {hotel}
{nights} nights cost [{guest}/us/the guest] {price} {money} each
{price} {money} a night over {nights} nights is [the offer/the deal/agreed/what we pay]
{hotel} wants {price} {money} [a night/each night] from {guest}
[staying/sleeping/eating] at {hotel} [costs/means paying] {price} {money} a night
[leaving home/after a long trip/tired from the road], {guest} [reaches/sees/finds] {hotel}
{city} [keeps/holds/has] {guest} for {nights} nights"""),
    adjuncts=lines("""
[for/in the name of/on behalf of/under the name of/at the wish of] {guest}
[, guest:/, the guest is/, the guest being/, name of the guest:/, booked by/, reserved by/, a room for/, the visitor being/, to be used \
by] {guest}
[, says {guest}/, which {guest} booked/, where {guest} has a room/, as {guest} asked/, whose guest is {guest}/, and {guest} gets the key]
with {guest} as [the/our] guest
[when/once/as soon as/because] {guest} [arrives/comes/checks in/visits]
[at/over at/here at/inside] {hotel}
[, hotel:/, the hotel is/, the hotel being/, name of the hotel:/, the house is/, the hotel is called/, accommodation:] {hotel}
[, where {hotel} has rooms/, and the hotel is called {hotel}/, where {hotel} takes care of everything/, in a hotel named {hotel}]
[sleeping/staying/lodging/checking in/resting/with a bed/with a room] at {hotel}
[in the rooms of/under the roof of/in a room of/in a house called/in a hotel called/having chosen the hotel] {hotel}
in {city}
[in the town of/in the middle of/in the center of/in the heart of/close to the center of/on a trip to/on a visit to] {city}
[, city:/, the city is/, the city being/, town:/, location:/, the place being/, the destination is] {city}
[visiting/travelling to/going to/seeing/during a visit to/heading for] {city}
[, which is in/, somewhere in/, over in/, all this in/, right in/, whose address is in] {city}
[because of a job/because of a meeting/having business/with friends waiting/to see friends] in {city}
for {nights} nights
[staying for/to stay/lasting/remaining for/spending/booking/with a visit of/over] {nights} nights
[, nights:/, number of nights:/, length in nights:/, nights booked:] {nights}
[, a visit of/, altogether/, which makes/, the stay is/, that is/, not more than/, and the bed is needed for] {nights} nights
{nights} nights [long/in a row/running/in all]
[from/starting/starting on/beginning on/beginning/from the day of] {check_in}
[, check-in:/, check-in on/, arriving on/, arrival:/, the first night being/, check-in is/, first day:/, to begin on] {check_in}
[arriving/checking in/coming/moving in/with arrival/with check-in/getting the key/with the first night] on {check_in}
[, and check-in is on/, where the stay begins on/, the arrival being on/, and the bed must be ready on] {check_in}
from {check_in} [on/onwards]
[at/for] {price} {money} [a night/each night/for one night]
[, price:/, rate:/, cost per night:/, nightly rate:/, price of a night:] {price} {money}
[paying/costing/spending/priced at/charging/at a rate of/at a price of/at a cost of] {price} {money} [a night/each night/for one night]
[, each night for/, which costs/, the rate being/, the price is/, a night costs/, and one night is/, where a night costs/, every night \
costing] {price} {money}
with {price} {money} to pay [per night/each night/for a night]
[at {hotel} in {city}/in {city} at {hotel}/, in the city {city} and in the hotel {hotel}/, {hotel} in {city} being the address]
[for {nights} nights from {check_in}/from {check_in} for {nights} nights/, {nights} nights with check-in on {check_in}]
[for {nights} nights at {price} {money} each/, {nights} nights for {price} {money} each/, nights: {nights}, each {price} {money}]"""),
)

WEATHER = Clauses(
    cores=lines("""
{city} [gets/faces/sees/enjoys/wakes up to/is in for/must live with] {condition} weather
{city} [will be/turns/stays/is/looks/remains] {condition}
{city} [warms up to/makes it to/heats up to/comes up to/can hope for] {high} degrees
{city} [cools down to/goes down to/sinks to/shivers at/wakes up at] {low} degrees
{city} [feels/must stand/is swept by/measures/notes/hears] [wind/winds/a wind] of {wind} km/h
{day} [will be/turns out/looks/becomes/stays/promises to be] {condition}
{day} [gives/offers/means/has/shows us] {condition} weather
{day} [is here/is another day/comes/is the day in question/looks like this/follows]
{day} [peaks at/tops out at/warms up to/makes it to] {high} degrees
{condition} [it is/it will be/is what the sky shows/is how it looks/skies cover the town/conditions are on the way/weather is moving in]
{high} degrees [is the top/is as warm as it gets/is the peak/are possible at noon/will be measured by day/is the warmest]
{low} degrees [is the bottom/is as cold as it gets/are left at night/is the lowest/are measured at night/is the coldest]
{wind} km/h [is the speed of the wind/is what the wind makes/is how fast the wind blows/of wind are expected/is the strongest wind]
[the wind/a breeze/the air/a storm] [moves/passes/rushes/comes in/arrives] at {wind} km/h
[temperatures/the degrees/the numbers] [lie/range/move/swing/stay] between {low} and {high}
[the temperature/the thermometer] [starts at/begins at] {low} and [ends at/goes up to/stops at/gets to] {high}
[the thermometer/it/the temperature] [shows/goes up to/comes to/stands at] {high} degrees [by day/at noon/at best/at most/in the warm hours]
[the thermometer/it/the temperature] [shows/sinks to/goes down to/stands at] {low} degrees [at night/at worst/at least/before dawn/in \
the dark hours]
[the sky/the air/the weather] [looks/turns/will stay/keeps/will be] {condition}
[take/bring/wear/pack/carry] [a coat/a hat/sunglasses/warm clothes/good shoes]
[visit/leave/avoid/look at/think of/watch] {city}
[travellers/farmers/drivers/sailors/children] in {city} [should know/are warned/can be happy/must take care/will notice]
[the forecast/the report/the outlook/our news] [is out/is ready/has arrived/came in/is short]
[the forecast/the report/the outlook] [covers/is about/describes/concerns/mentions] {city}
[here is/this is/you read/they sent] the [forecast/outlook/report/weather] for {day}
[we/experts/they/farmers] [predict/foresee/announce/measured/hope for] {condition} weather
how hot [will it get/can it be]? {high} degrees [by day/at noon]
how cold [will it get/can it be]? {low} degrees [at night/before dawn]
what is the sky like? {condition} [as it seems/they say/again]
{day} takes {city} from {low} up to {high} degrees
{city} swings between {low} and {high} degrees
{high} degrees by day follow {low} degrees at night
after {low} degrees [at night/before dawn] come {high} degrees [by day/at noon]
I [love/hate/expect/know] {city} when it is {condition}
[walking/driving/working/living] in {city} [is fun/is hard/will be easy]
[prepare/dress/get ready/make plans] for {condition} weather"""),
    adjuncts=lines("""
in {city}
[in the streets of/over/above/around/near/for/across/in and around/over the roofs of/in the area of] {city}
[, city:/, the city is/, the city being/, place:/, location:/, the town in question is/, all this in/, at least in] {city}
[for the people of/for everybody in/for those who live in/for visitors to/if you are in/as seen from/as measured in/leaving] {city}
[, {city} reports/, as {city} knows/, where {city} lies/, and {city} gets it all/, whose center is {city}]
[on/this/next/on the coming] {day}
[, day:/, the day is/, the day being/, and that on/, day of the week:/, all on/, forecast for] {day}
[during/for/throughout/in the course of/looking at/come/through/thinking of] {day}
[when {day} comes/once {day} is here/as soon as it is {day}/before {day} is over/, and {day} is the day/, which will be {day}]
[with/under/in/through/facing/thanks to/expecting] {condition} [weather/skies/conditions]
[, sky:/, conditions:/, the sky is/, the weather is/, the sky being/, it is/, generally/, mostly/, weather:/, in a word] {condition}
[, and it stays/, and it turns/, while it is/, where it is/, since it stays/, which makes it/, whose sky is] {condition}
[staying/being/turning/looking/though/perhaps] {condition}
[, under a sky that is {condition}/, so {condition} is the word/, and {condition} is how it looks]
[up to/reaching/climbing to/rising to/warming up to/peaking at/as warm as/not warmer than/at most] {high} degrees
with [a high/a top/a maximum/highs/a peak/an afternoon] of {high} degrees
[, high:/, max:/, maximum:/, peak:/, highest temperature:/, warmest:/, by day:] {high}
[, at noon/, in the afternoon/, at its warmest/, the highest being/, the maximum being/, and at best/, which rises to] {high} degrees
with {high} degrees [by day/at noon/at most/as the high/as the maximum/in the sun]
[, where the afternoon sees {high} degrees/, and the day makes it to {high} degrees/, {high} degrees being the top/, and never warmer \
than {high}]
[down to/falling to/sinking to/dropping to/cooling down to/not colder than/as cold as/at least] {low} degrees
with [a low/a minimum/lows/a bottom] of {low} degrees
[, low:/, min:/, minimum:/, coldest:/, lowest temperature:/, by night:] {low}
[, at night/, before dawn/, in the early morning/, at its coldest/, the lowest being/, the minimum being/, and at worst/, which sinks \
to] {low} degrees
with {low} degrees [at night/before dawn/at least/as the low/as the minimum/in the dark]
[, where the night sees {low} degrees/, and the night goes down to {low} degrees/, {low} degrees being the bottom/, and never colder \
than {low}]
[with/in/against/under/despite] [wind/winds/a wind/a breeze] of {wind} km/h
[, wind:/, wind speed:/, wind up to/, the wind being/, the wind makes/, gusts reaching/, the speed of the wind is/, in gusts up to] \
{wind} km/h
[while/as/because] the [wind/air/breeze] [moves at/comes in at/makes/runs at/reaches/races along at] {wind} km/h
[, where the wind reaches/, and the wind gets up to/, with air moving at/, blown through at/, whose wind makes] {wind} km/h
with {wind} km/h of [wind/moving air]
[at a wind speed of/with the wind at/with a wind speed of] {wind} km/h
between {low} and {high} degrees
[, from {low} up to {high} degrees/, high {high} and low {low}/, low {low} and high {high}/, minimum {low} and maximum {high}]
[, {high} degrees by day and {low} at night/, {low} degrees at night and {high} by day/, at most {high} and at least {low} degrees]
, high {high}, wind {wind} km/h
, wind {wind} km/h, low {low}
, {condition} with {wind} km/h of wind
, {condition} [and/at] {high} degrees by day
, {condition} [and/at] {low} degrees at night
[on {day} in {city}/in {city} on {day}/, {city} on {day}/, the place being {city} and the day {day}]"""),
)
