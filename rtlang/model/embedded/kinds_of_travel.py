"""Kinds of records about travel: flights, stays in hotels, and the weather."""

from rtlang.model.embedded import clauses_more
from rtlang.model.embedded import lexicon as lex
from rtlang.model.embedded.clauses_of_travel import FLIGHT, HOTEL, WEATHER
from rtlang.model.embedded.extras import BREAKFAST, EMAIL, NOTE_CODE, PHONE, WINDOW_SEAT
from rtlang.model.embedded.kinds import Drawn, Kind, lines, money
from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.text_files import lines_of
from rtlang.model.embedded.words import Draw


def draw_flight(draw: Draw) -> Drawn:
    return {
        "passenger": draw.full_name(), "origin": draw.place_name(), "destination": draw.place_name(), "flight": draw.any_code(),
        "date": draw.any_date(), "seat": f"{draw.number(1, 40)}{draw.pick('ABCDEF')}",
    }, {}  # fmt: skip


flight = Kind(
    "flight", words("flight|booking|ticket", "|"), draw_flight,
    lines("""
{passenger} [flies/travels/is flying/will fly/goes] from {origin} to {destination} on {date} [with/on/by] flight {flight}, seat {seat}.
[Flight/Flight number/Flight no.] {flight} from {origin} to {destination}, {date}. [Passenger/Traveller/Name]: {passenger}. Seat: {seat}.
Dear {passenger}, [your/the] flight {flight} to {destination} [leaves/departs from/takes off in] {origin} on {date}. Your seat is {seat}.
[Booking/Ticket/Reservation/Boarding pass] for {passenger}: {origin} to {destination}, {date}, flight {flight}, seat {seat}
On {date} {passenger} [travels/flies/heads] to {destination}. [The/This] flight {flight} [starts/begins] in {origin}. Seat {seat} is \
[reserved/booked].
Seat {seat} on flight {flight} [belongs to/is for/is kept for] {passenger}. It [goes/flies/takes off] from {origin} to {destination} on \
{date}.
We [have booked/booked/have put] {passenger} on {flight}, leaving {origin} for {destination} on {date}. [The/Your] seat is {seat}.
From: {origin}[./,/;] To: {destination}. [Date/Day]: {date}. Flight: {flight}. [Passenger/Name]: {passenger}. Seat: {seat}.
{passenger} here. I [need/want/would like] a seat on {flight} from {origin} to {destination} on {date}, {seat} if possible.
My [flight/plane] from {origin} to {destination} is {flight} on {date}. I [sit on/have seat/am in seat] {seat}. {passenger}
The ticket of {passenger} is for flight {flight} ({origin} - {destination}), {date}, [seat/place] {seat}.
To {destination} with {flight} on {date}: {passenger} [departs/leaves/takes off] from {origin} in seat {seat}.
Please check in {passenger} for {flight} on {date}. Departure is {origin}, [arrival/the landing] is {destination}, seat {seat}.
{date}: {passenger}, {flight}, {origin} -> {destination}, {seat}
[Hello/Hi/Good morning], I am {passenger}. I [booked/bought a ticket for] flight {flight}. I [leave/start in] {origin} on {date} and \
land in {destination}. My seat is {seat}.
[Have a good trip/Enjoy your trip/Welcome aboard], {passenger}! On {date} you sit in seat {seat} of {flight}, which [heads/leaves] for \
{destination} from {origin}.
[Passenger/Guest] {passenger} [departs from/leaves] {origin} on {date}. The number of the flight is {flight}, the [seat/place] is \
{seat}, and it lands in {destination}.
Seat {seat}, flight {flight}, {date}. {passenger} [is going to arrive in/arrives in/lands in] {destination} after [departing/taking \
off/starting] in {origin}.
Who [sits/is sitting] in seat {seat}? That is {passenger}, who [is going/is heading] to {destination}. Flight {flight} [leaves/departed \
from] {origin} on {date}.
[Destination/Arrival]: {destination}. [Origin/Departure]: {origin}. Seat: {seat}. Date: {date}. Flight: {flight}. Passenger: {passenger}.
It is [almost time/settled]: {date} is the day when {passenger} [gets on/boards] {flight} in {origin} and [flies/sets off] to \
{destination}. [Seat/Place]: {seat}.
The plane with the number {flight} [lands/will land] in {destination}. It took off in {origin} on {date} with {passenger} [aboard/on \
board] in seat {seat}.
[Note/Reminder]: {passenger}, seat {seat}, [boards/takes] flight {flight} on {date}. [Route/Trip]: {origin} to {destination}.
I [fly/am flying] to {destination} on {date}, [and/but] the plane leaves from {origin}. [Flight/It is flight] {flight}, seat {seat}. \
[Yours/Regards/Thanks], {passenger}
{flight} / {date} / {origin} / {destination} / {passenger} / {seat}
{origin} to {destination}: flight {flight} on {date}. [The seat of {passenger} is {seat}/{passenger} has seat {seat}/Seat {seat} is for \
{passenger}].
[Ticket/Booking] details. Who: {passenger}. When: {date}. From {origin} to {destination}. Number of the flight: {flight}. Place: \
{seat}.""") + lines_of("flight"),
    lines("""
Boarding pass of {passenger}: {seat} aboard {flight}, departing {origin} on {date}, landing in {destination}.
With {flight} our guest {passenger} heads for {destination} on {date}, taking off in {origin} and sitting on {seat}.
Leaving {origin} on {date}, {passenger} will arrive in {destination}; the number is {flight} and the place {seat}.
For {destination}, {passenger} boards in {origin}: seat {seat}, {date}, and the plane is {flight}.
{flight} takes off on {date}. Aboard in {seat}: {passenger}. It departs from {origin} and lands in {destination}."""),
    (PHONE, EMAIL, NOTE_CODE, WINDOW_SEAT),
    lines("""
[The passenger is/The name of the passenger is/The ticket is for/The traveller is] {passenger}.
[Passenger/Traveller/Name/Ticket for]: {passenger}.
[We look forward to welcoming/Welcome aboard,/Have a good trip,/Our guest is] {passenger}.
[The trip starts in/The flight starts in/The plane leaves from/The flight departs from/The plane takes off in] {origin}.
[Departure from/Departure/From/Origin/Starting in/Leaving from]: {origin}.
[It leaves/It takes off from/The flight leaves/The point of departure is] {origin}.
[The trip goes to/The flight goes to/The plane flies to/The plane heads for/The plane lands in] {destination}.
[Destination/To/Arrival in/Landing in/Going to/Arriving in]: {destination}.
[It arrives in/It lands in/The flight ends in/The destination is] {destination}.
[The flight number is/The number of the flight is/It is flight/The flight is] {flight}.
[Flight/Flight number/Flight no.]: {flight}[./]
[Please go to the gate of flight/We have booked flight/Boarding for flight] {flight}.
[The date is/The day of the flight is/The trip is on/Departure is on/The plane leaves on] {date}.
[Date/Day/Travel date/Date of the flight/When]: {date}.
[It takes place on/The flight is on/The travel date is] {date}.
[The seat is/The number of the seat is/The place is] {seat}.
[Seat/Seat number/Place]: {seat}[./]
[Seat {seat} is reserved/Seat {seat} is kept free/Seat {seat} was chosen/The place with the number {seat} is taken].
[It goes/The flight goes/The plane flies/The route leads] from {origin} to {destination}.
[Route/Trip/From and to/Way]: {origin} [-/to/->] {destination}.
[Leaving/Departing/Starting/Taking off] in {origin}, landing in {destination}.
{passenger} [flies/is flying/travels/heads] to {destination}.
{passenger} [leaves/departs from/starts in/takes off in] {origin}.
{passenger} [sits in/has/takes/got/will sit on] seat {seat}.
{passenger} [travels/flies/leaves/departs] on {date}.
{passenger} [is booked on/takes/boards/has a ticket for] flight {flight}.
Flight {flight} [leaves/departs/starts] on {date}.
Flight {flight} [leaves/departs from/takes off in] {origin} on {date}.
Flight {flight} [lands in/goes to/arrives in/heads for] {destination}.
[Flight/Plane] {flight}, seat {seat}.
On {date}, {passenger} [flies/goes/travels] to {destination}."""),
    first_person=lines("""
[My name is/I am/This is] {passenger}[./ and I have a booking./ and I am going on a trip.]
[I am called/The ticket is in my name, which is/Regards,/Best wishes from] {passenger}.
[Hello/Hi/Good morning], [my name is/this is/I am] {passenger}.
[I am starting in/I depart from/I leave from/I set off in/I take off in] {origin}.
[My trip starts in/My plane leaves from/My flight departs from/I live close to] {origin}.
[I will be at the airport of {origin}/The airport I leave from is {origin}/My starting point is {origin}].
[I want to go to/I am heading to/I am travelling to/I hope to arrive in/I head for] {destination}.
[My destination is/My plane lands in/My trip takes me to/I need to be in/My friends are waiting in] {destination}.
[I booked flight/I am on flight/I take flight/I will board flight/I have a ticket for flight] {flight}.
[My flight number is/My flight is/The number of my flight is] {flight}.
[I am travelling on/I fly on/I leave on/My flight is on/My trip is on] {date}.
[My travel date is/The day of my trip is/The date of my flight is/I will be at the gate on] {date}.
[My seat is/I am sitting on/I sit in seat/I got seat/I would like seat/I chose seat] {seat}.
[My place has the number/The seat I booked is/They gave me seat] {seat}.
[Where I am going/My destination/I want to go to/To]: {destination}.
[My flight/Flight/Flight number/Flight that I booked]: {flight}.
[Day of my trip/Date/My date/I fly on]: {date}.
[My seat/Seat/My place]: {seat}[. I like it there./. Please keep it for me./.]
[I fly/I travel/I am flying/I am going/My trip goes] from {origin} to {destination}.
[I fly/I travel/I am flying] to {destination} on {date}.
[I leave/I depart from/I take off in] {origin} on {date}.
[I sit in seat/I booked seat/My seat is] {seat} on flight {flight}."""),
    clauses=FLIGHT + clauses_more.FLIGHT,
    verbs_tell_roles=True,
)  # fmt: skip


def draw_hotel(draw: Draw) -> Drawn:
    price, spelled = money(draw)
    return {
        "guest": draw.full_name(), "hotel": f"Hotel {draw.capital()}" if draw.chance(0.5) else draw.company(), "city": draw.place_name(),
        "nights": draw.number(1, 21), "check_in": draw.any_date(), "price": price,
    }, {"price": spelled, "money": draw.pick(lex.CURRENCIES)}  # fmt: skip


hotel = Kind(
    "hotel booking", words("hotel booking|reservation|booking", "|"), draw_hotel,
    lines("""
{guest} [booked/has booked/reserved/takes] {nights} nights at {hotel} in {city} from {check_in} for {price} {money} [a/per/each] night.
Reservation at {hotel}, {city}: {guest}, {nights} nights [from/starting on] {check_in}, {price} {money} per night.
Dear {guest}, we confirm your stay at {hotel} in {city}. [Check-in/Arrival]: {check_in}. Nights: {nights}. Price: {price} {money} per \
night.
[Starting on/From/As of] {check_in}, {guest} [stays/sleeps/will stay] {nights} nights at {hotel} in {city}. One night costs {price} \
{money}.
I [would like/need/want] a room at {hotel} in {city} for {nights} nights. I arrive on {check_in} and pay {price} {money} [a/per] night. \
{guest}
{hotel} in {city} [expects/is expecting/welcomes] {guest} on {check_in} for {nights} nights at {price} {money} each.
Guest: {guest}. Hotel: {hotel}. City: {city}. [Check-in/Arrival]: {check_in}. Nights: {nights}. [Price/Rate]: {price}.
Please [reserve/book/keep] a room for {guest} at {hotel}, {city}, from {check_in} for {nights} nights. The [rate/price] is {price} \
{money}.
In {city}, {guest} will [sleep/stay] at {hotel} for {nights} nights. The room costs {price} {money} per night. [Arrival/Check-in]: \
{check_in}.
{nights} nights at {hotel} ({city}) for {guest}, check-in {check_in}, {price} {money} [a/per] night
A room at {hotel} [costs/is] {price} {money} per night. {guest} [takes it/books it/has it] for {nights} nights in {city} from {check_in}.
{guest} [arrives/checks in] at {hotel} in {city} on {check_in}. The stay is {nights} nights and each night costs {price} {money}.
For {price} {money} a night, {guest} [got/found/booked] a room at {hotel} in {city}: {nights} nights, from {check_in}.
[Hi/Hello], {guest} speaking. I [booked/reserved] {hotel} in {city}, {nights} nights, check-in on {check_in}, {price} {money} per night.
My stay in {city} [starts/begins] on {check_in}. I [sleep/stay] at {hotel} and pay {price} {money} nightly for {nights} nights. \
[Regards/Thanks], {guest}
[Note/Memo] from the front desk: {guest} [will check in/is arriving] on {check_in} and [stays/is staying] {nights} nights. {hotel}, \
{city}, {price} {money} a night.
[Arrival/Check-in] {check_in}, {nights} nights, {price} {money} per night, {hotel}, {city}, guest {guest}
{price} {money} is what {hotel} [charges/asks] for one night. {guest} will be there for {nights} nights, [arriving/checking in] on \
{check_in}. City: {city}.
On {check_in} the room is ready for {guest}. It is [paid for/booked/kept] for {nights} nights at {price} {money} a night. {hotel} \
[lies/stands] in {city}.
[Is there/Do you have] a room in {city}? {guest} wants to [stay/sleep] at {hotel} from {check_in}, for {nights} nights, and can pay \
{price} {money} per night.
The trip to {city} [is planned/is settled]: {guest} [stays/sleeps] at {hotel}, {nights} nights from {check_in}. The nightly rate is \
{price} {money}.
City: {city}[./;] Guest: {guest}. Nights: {nights}. Rate per night: {price} {money}. Check-in on {check_in}. Hotel: {hotel}.
We are [happy/pleased] to have {guest} with us at {hotel}! {nights} nights in {city}, [beginning/starting] on {check_in}, [will \
cost/at] {price} {money} each.
The travel [desk/office] [found/has put down] {guest} for a room in {city}. It [is at/belongs to] {hotel}, costs {price} {money} per \
night, and is booked for {nights} nights from {check_in}.
{guest} | {hotel} | {city} | {check_in} | {nights} nights | {price} {money} per night
[Confirmed/Booked]: {hotel}, {city}. {guest} [arriving/arrives] {check_in}, {nights} nights, nightly price {price} \
{money}.""") + lines_of("hotel"),
    lines("""
The room at {hotel} ({city}) is kept for {guest}: arriving {check_in}, staying {nights} nights, paying {price} {money} nightly.
{guest} checks in on {check_in}; {hotel} in {city} charges {price} {money} for each of the {nights} nights.
Our travel desk put {guest} into {hotel}, {city}, for {nights} nights as of {check_in}, at {price} {money} per night.
A stay of {nights} nights awaits {guest} in {city} as of {check_in}, and {hotel} asks {price} {money} nightly.
{check_in} is the arrival of {guest} in {city}. Reserved: {nights} nights, {price} {money} a night at {hotel}."""),
    (PHONE, EMAIL, NOTE_CODE, BREAKFAST),
    lines("""
[The guest is/The name of the guest is/The room is for/The booking is for/The room is kept for] {guest}.
[Guest/Name/Name of the guest/Booked by/Room for]: {guest}.
[We are waiting for/We look forward to meeting/Our guest will be/A nice room awaits] {guest}.
[The hotel is/The name of the hotel is/The room is at/The stay is at/The hotel is called] {hotel}.
[Hotel/Name of the hotel/Stay at/House]: {hotel}.
[We expect the guest at/They will sleep at/The room belongs to/The travel desk chose] {hotel}.
[The city is/The hotel is in/The room is in/The stay is in/It is a trip to] {city}.
[City/Town/Location/Place]: {city}.
[The trip goes to/The hotel lies in/The hotel stands in] {city}.
[The stay is/It is booked for/The room is needed for/It is for/The room is reserved for] {nights} nights.
[Nights/Number of nights/Length of stay in nights]: {nights}[./]
[They keep the room for/The guest stays/The guest will stay] {nights} nights.
[Check-in is on/Check-in will be on/The stay starts on/The stay begins on/The guest arrives on] {check_in}.
[Check-in/Arrival/From/Date of arrival/Starting]: {check_in}.
[The room is needed from/The room is booked as of/The room is free on/The bed is ready on] {check_in}.
[One night costs/Each night costs/The price per night is/The rate is/The nightly price is] {price} {money}.
[Price/Rate/Price per night/Nightly rate/Cost of one night]: {price} {money}.
[The hotel charges/The room costs/They ask/The hotel asks] {price} {money} [a/per] night.
{guest} [stays/sleeps/will stay/has a room/is staying] at {hotel}.
{guest} [moves into/goes to/will move into] {hotel}.
{guest} [arrives/is arriving/will check in/comes] on {check_in}.
{guest} [stays/booked/takes/reserved/will be there for] {nights} nights.
{guest} [is going/travels/comes] to {city}.
{hotel} [is in/lies in/stands in/is a hotel in] {city}.
{hotel} [charges/asks/takes] {price} {money} per night.
[The room costs/It is/The bill is] {price} {money} a night for {nights} nights.
{nights} nights [from/beginning on/starting on] {check_in}.
[Stay/Booking/Room]: {nights} nights at {hotel}.
{guest} [pays/has to pay/is paying] {price} {money} for each night.
The stay of {guest} [is for/lasts] {nights} nights and [starts/begins] on {check_in}."""),
    first_person=lines("""
[My name is/I am/This is] {guest}[./ and I have a reservation./ and I am looking for a room.]
[Hello/Hi/Good evening], [my name is/this is/I am] {guest}.
[Please book it for me,/The reservation is in my name,/Regards,/Thank you,/Best wishes,] {guest}.
[I am staying at/I have a room at/I booked a room at/I will sleep at/I reserved a room at] {hotel}.
[My hotel is/My hotel is called/My room is at/I chose/I found a room at] {hotel}.
[I will be in/I am going to/I am travelling to/I have to work in/I will spend some time in] {city}.
[My hotel is in/My trip goes to/I need a bed in/My room is in] {city}.
[I am staying/I will stay/I stay/I want to stay/I booked] {nights} nights.
[My stay is/I need the room for/I will be there for/I reserved it for] {nights} nights.
[I arrive on/I check in on/I come on/I will check in on/I will be there on] {check_in}.
[My stay starts on/My arrival is on/I need the room from/I booked it as of] {check_in}.
[I pay/My room costs/They charge me/They ask me for/I am paying] {price} {money} [a/per] night.
[My rate is/My nightly price is/The price I pay per night is] {price} {money}.
[My hotel/Hotel/Where I sleep]: {hotel}.
[My city/City/Where I will be]: {city}.
[Nights that I stay/My nights/How many nights I stay]: {nights}.
[My arrival/I arrive on/My check-in]: {check_in}.
[What I pay per night/Price per night/My rate]: {price} {money}.
[I stay/I sleep/I will stay] at {hotel} in {city}.
[I stay/I booked/I reserved] {nights} nights [from/starting on] {check_in}.
[I booked/I reserved/I need] {nights} nights at {price} {money} each."""),
    aliases={"money": ""},
    clauses=HOTEL + clauses_more.HOTEL,
    verbs_tell_roles=True,
)  # fmt: skip


def draw_weather(draw: Draw) -> Drawn:
    low = draw.number(-20, 25)
    return {
        "city": draw.place_name(), "day": draw.pick(lex.DAYS), "condition": draw.slot(lex.CONDITIONS, (), 0.1),
        "high": low + draw.number(1, 15),
        "low": low, "wind": draw.number(1, 120),
    }, {}  # fmt: skip


weather = Kind(
    "weather report", words("weather report|forecast|weather", "|"), draw_weather,
    lines("""
[Weather/The weather/Forecast/Outlook] in {city} on {day}: {condition}, high {high}, low {low}, wind {wind} km/h.
On {day} it [will be/is going to be/should be] {condition} in {city}, between {low} and {high} degrees, with wind of {wind} km/h.
{city}, {day}: {condition}. [High/Maximum/Top]: {high} degrees. [Low/Minimum/Bottom]: {low} degrees. Wind: {wind} km/h.
{day} in {city}: {condition}, up to {high} degrees [by/during the] day and down to {low} [at/in the] night. Wind {wind} km/h.
The forecast for {city} on {day} [is/says/tells us] {condition} with a high of {high}, a low of {low} and [wind/a breeze] of {wind} km/h.
[Expect/You can expect/We expect] {condition} weather in {city} [this/on] {day}. Wind: {wind} km/h. Temperatures from {low} to {high}.
People in {city} [get/can expect/will have] {condition} weather on {day}, a low of {low}, a high of {high} and {wind} km/h of wind.
Forecast: {condition}. City: {city}. Day: {day}. High: {high}. Low: {low}. Wind: {wind}.
With {wind} km/h of wind, {day} in {city} [will be/is going to be/stays] {condition}. The low is {low}, the high is {high}.
It [stays/remains/turns/will be] {condition} in {city} on {day}: {low} to {high} degrees, wind {wind} km/h.
A high of {high} and a low of {low} are [expected/likely/forecast] in {city} on {day}. Wind at {wind} km/h, {condition}.
{condition} on {day} in {city}, [wind/gusts at] {wind} km/h, low {low}, high {high}
In {city} the wind [reaches/blows with/goes up to] {wind} km/h on {day}. The high is {high}, the low is {low}. It will be {condition}.
{day}, {city}: low {low}, high {high}, wind {wind} km/h, {condition}
[Hello/Good evening] from {city}! Our {day} will be {condition}. At night it [gets as cold as/cools down to/drops to] {low} degrees, by \
day it [climbs/rises] to {high}. The wind blows with {wind} km/h.
[Wind/Breeze]: {wind} km/h. High: {high}. Low: {low}. {city} on {day}. Conditions: {condition}.
What will {day} be like in {city}? The sky is {condition}, the wind [blows/comes] with {wind} km/h, and it is {low} degrees at night \
and {high} [by day/in the afternoon].
The temperature in {city} [rises/goes up] from {low} [to/up to] {high} on {day}. The conditions are {condition}, with gusts at {wind} \
km/h.
[Plans for {day}/Going out on {day}]? In {city} it is {condition}. Top temperature {high}, lowest temperature {low}, wind {wind} km/h.
The [lowest/bottom] temperature on {day} is {low} degrees, the [highest/top] one is {high} degrees. {city} gets {wind} km/h of wind. \
Sky: {condition}.
At night the mercury [falls/drops/sinks] to {low} in {city}, and on {day} it [hits/will hit/reaches] {high}. Wind {wind} km/h. Weather: \
{condition}.
{city} | {day} | {condition} | high {high} | low {low} | wind {wind} km/h
We [had/have] {condition} weather here in {city} on {day}, [with a breeze of/and the wind was] {wind} km/h. [Maximum/Warmest] {high} \
degrees, [minimum/coldest] {low} degrees.
[Take care/Be prepared], {city}! Gusts up to {wind} km/h on {day}. It stays {condition}, the low being {low} and the high {high}.
{day}: {condition} and wind of {wind} km/h. The [highest/top] temperature in {city} is {high} degrees, and the night [brings/has] \
{low}.""") + lines_of("weather"),
    lines("""
Looking at {day}, {city} climbs from {low} to {high} degrees while the wind blows at {wind} km/h; the sky: {condition}.
The mercury in {city} will hit {high} on {day} after {low} in the night, {condition}, gusts of {wind} km/h.
{city} should prepare for {condition} conditions on {day}: top {high}, bottom {low}, breeze {wind} km/h.
After a night of {low} degrees, {day} reaches {high} in {city}. The wind gets {wind} km/h and the weather remains {condition}.
How warm is {city} on {day}? It rises to {high} and cools to {low}; sky {condition}, gusts {wind} km/h."""),
    (),
    lines("""
[The city is/This is the weather for/The report is about/This is the forecast for/The place is] {city}.
[City/Place/Location/Town/Weather for]: {city}.
[We are looking at/People are asking about the weather in/Here comes the weather in] {city}.
[The day is/The report is for/The forecast is for/It is about] {day}.
[Day/When/Forecast for/Day of the week]: {day}.
[Here are the plans of the sky for/This is what we expect on/Look at] {day}.
[For a while it will be/It will be/It stays/It is/Expect it to be/It is going to be/It remains] {condition}.
[Condition/Conditions/Sky/Weather/Outlook]: {condition}.
[The weather is/The sky is/The conditions are/The outlook is] {condition}.
[The high is/The highest temperature is/The top temperature is/The maximum is/It climbs to/It gets as warm as] {high} degrees.
[High/Maximum/Top/Highest temperature/By day]: {high}[./ degrees.]
[By day it reaches/In the afternoon it rises to/The mercury climbs to/The day brings up to/The day reaches] {high} degrees.
[The low is/The lowest temperature is/The bottom temperature is/The minimum is/It drops to/It gets as cold as] {low} degrees.
[Low/Minimum/Bottom/Lowest temperature/At night]: {low}[./ degrees.]
[At night it cools down to/In the night it falls to/The mercury sinks to/The night brings/After midnight it is/Before sunrise it is \
only] {low} degrees.
[The wind reaches/The wind blows with/The wind comes at/There are gusts at/There is a breeze of] {wind} km/h.
[Wind/Wind speed/Gusts/Breeze]: {wind} km/h[./]
[How strong is the wind? It reaches/How fast is the wind? It blows with/Prepare for wind of/The wind speed is/We measure a wind of] \
{wind} km/h.
[Temperatures go/It rises/The mercury goes/It goes] from {low} to {high}.
[Between/It is between] {low} and {high} degrees.
[High/Top/Maximum] {high}, [low/bottom/minimum] {low}.
[It is/It will be/We expect] {condition} in {city}.
[Weather/Forecast/Report] for {city} on {day}.
On {day} it [is/will be/stays/remains] {condition}.
{city} [expects/gets/has/must prepare for] {wind} km/h of wind.
{city} [climbs to/reaches/will hit/gets] a high of {high} degrees.
{city} [drops to/falls to/gets/has] a low of {low} degrees.
On {day} the wind [reaches/blows with/gets up to] {wind} km/h.
On {day} the [high/top temperature/maximum] is {high} and the [low/lowest temperature/minimum] is {low}.
[People in/Everybody in] {city} [can expect/will get/has] {condition} weather on {day}."""),
    clauses=WEATHER + clauses_more.WEATHER,
    verbs_tell_roles=True,
)  # fmt: skip
