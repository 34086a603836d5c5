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
{passenger} [departs from/leaves/boards in/starts in] {origin}
{passenger} [boards/takes/is on/gets on] [flight/plane/] {flight}
{passenger} sits [in/on/in seat] {seat}"""),
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
[, the flight is/, the number is/, number/, flight number/, the plane being] {flight}
[in/on] seat {seat}
in {seat}
[, the seat is/, seat/, the place is/, seat number/, the seat being] {seat}
[sitting/seated/placed] [in/on/at] {seat}
[with/having] seat {seat}"""),
)
