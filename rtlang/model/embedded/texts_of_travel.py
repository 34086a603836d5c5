"""Whole texts of flights and hotels, each of which tells every field of a record. Held-out ones are in `kinds_of_travel`."""

from rtlang.model.embedded.kinds import lines

FLIGHT_TEXTS = lines("""
Having checked two bags in {origin}, {passenger} will [settle/sink] into seat {seat} of flight {flight} and wake up \
in {destination}; the date is {date}.
{destination} awaits! On {date}, flight {flight} carries {passenger} [there/over] from {origin} in seat {seat}.
Can you pick up {passenger} in {destination}? The plane, flight {flight} out of {origin}, is [due/scheduled] for \
{date}; look for the person from seat {seat}.
[Urgent/Attention]: would {passenger}, seat {seat}, flight {flight} to {destination}, report to the gate? All \
departures from {origin} on {date} are on time.
Bound for {destination}, flight {flight} rolled out of {origin} on {date}, and from the window at seat {seat} a happy \
{passenger} [waved/smiled].
Leaving {origin} behind, {passenger} reaches {destination} aboard {flight} on {date}, [strapped/buckled] into seat \
{seat}.
GATE LOG: pax={passenger} flt={flight} date={date} org={origin} dst={destination} seat={seat} status=[boarded/checked \
in]
For {date} a [window/aisle] seat, number {seat}, was reserved on flight {flight} by {passenger}, who travels to \
{destination} and begins in {origin}.
Dear [Mum/Dad/Tom], I set off for {destination} on {date}. Flight {flight} departs {origin} in the morning, and they \
gave me {seat} as my seat. Love, {passenger}
The airport of {origin} says goodbye to {passenger} on {date}; {destination} says hello. Between them lie flight \
{flight} and [a comfy/a narrow] seat, {seat}.
[hey/hi], booked it!! {origin} to {destination} w/ {flight}, {date}, seat {seat}. see you soon, {passenger}
Since {flight} is the only plane linking {origin} with {destination}, {passenger} chose it for {date} and \
[picked/selected] seat {seat}.
Our records indicate that seat {seat} was occupied by {passenger} when flight {flight} touched down in {destination} \
on {date}, [coming/arriving] from {origin}.
ARRIVING IN {destination} STOP DATE {date} STOP FLIGHT {flight} EX {origin} STOP SEAT {seat} STOP [GREETINGS/KISSES] \
{passenger}
Is it true that {passenger} swaps {origin} for {destination} on {date}? Yes, [I saw/here is] the ticket: flight \
{flight}, seat {seat}.
Row and letter {seat}; aircraft {flight}; day {date}; out of {origin}; into {destination}; [held by/issued to] \
{passenger}.
When {flight} climbs into the sky over {origin} on {date}, {passenger} will occupy seat {seat} and [dream/think] of \
{destination}.
Not {origin} but {destination} is where {passenger} wants to be, so on {date} seat {seat} of flight {flight} will \
[take/bring] our friend from the first to the second.
Kindly change my booking on {flight}: I, {passenger}, prefer seat {seat}. The [trip/journey] itself stays as it is, \
{date}, starting point {origin}, final stop {destination}.
{passenger} boards in {origin}. {passenger} gets off in {destination}. In between: flight {flight}, seat {seat}, \
[all/everything] on {date}.
The stewardess guided {passenger} to seat {seat} shortly before flight {flight} left {origin} on {date}, and \
[pilot/captain] and crew set course for {destination}.
[Travel plan/Itinerary] of {passenger}. Out of: {origin}. Into: {destination}. Operated as: {flight}. Departing: \
{date}. Assigned seat: {seat}.
Flight {flight} connects {origin} and {destination}, in that direction, on {date}; a boarding card showing seat \
{seat} has been [printed/prepared] for {passenger}.
If nothing goes wrong, {date} will see {passenger} jetting off to {destination} in seat {seat}; {origin} is the \
[airport/city] that {flight} sets out from.
They handed {passenger} a boarding card reading: {flight}, {date}, {origin} to {destination}, seat {seat}. \
[Nice/Lovely], isn't it?
Word has it that {passenger} is fleeing {origin} for sunny {destination}. [Rumour/Gossip] names {date} as the day, \
{flight} as the flight and {seat} as the seat.
Whoever finds this ticket, please return it to {passenger}: without it, no seat {seat} on {flight}, and no \
{destination}, as the plane quits {origin} on {date}.
[Missing/Lost]: one scarf, left at seat {seat} of flight {flight} from {origin}. It was {passenger} who lost it while \
travelling to {destination} on {date}.
A [businessman/pianist/teacher] named {passenger} jumped on flight {flight} in {origin} on {date}, fell asleep in \
seat {seat} and opened both eyes in {destination}.
Your upgrade is approved, {passenger}! Instead of the back row you now enjoy seat {seat} on {flight}, which \
[soars/wings its way] to {destination} on {date} after takeoff in {origin}.
Because of [fog/snow] in {origin}, {flight} to {destination} was moved to {date}. For {passenger} that changes \
nothing else, and seat {seat} stays hers.
What time should I drive you to the airport of {origin}, {passenger}? Your [printout/paper] for {destination} just \
mentions flight {flight}, {date} and seat {seat}.
{date} marks the start of a new life for {passenger}: farewell {origin}, hello {destination}, [thanks to/by courtesy \
of] flight {flight} and seat {seat}.
Traveller: {passenger} | Seat: {seat} | Leg: {origin} > {destination} | Service: {flight} | [Day/On]: {date}
The [agency/clerk] issued a ticket in the name of {passenger}: {destination} is reached with {flight}, {origin} is \
where it commences, {date} is the day, {seat} the seat.
In seat {seat} you will meet {passenger}. This person joined flight {flight} in {origin} on {date} and leaves us \
[once/when] we have landed in {destination}.
Just a [reminder/nudge], {passenger}: pack tonight, for {date} has come up fast. {origin} airport, flight {flight}, \
seat {seat}, next stop {destination}!
Although {passenger} hates flying, a ticket to {destination} was bought: {flight}, {date}, seat {seat}, [starting \
at/with departure in] {origin}.
Passengers for {destination} are requested to proceed to the gate of {flight}. {passenger}, holder of seat {seat}, \
came to {origin} [especially/only] for this flight of {date}.
On the list for {date} I see {passenger} next to {seat}, the seat. At the top it says {flight}, and \
[underneath/below] "{origin} to {destination}".
How does {passenger} get to {destination}? By air. Which flight? {flight}. Where does it start? {origin}. [Which \
day?/When?] {date}. Which seat? {seat}.
The return from {origin} to {destination} falls on {date}. {passenger} has [secured/grabbed] {seat}, the best seat, \
on flight {flight}.
We regret, {passenger}: {flight} from {origin} was cancelled. The [replacement/new] ticket to {destination} keeps the \
number {flight} and seat {seat} and is valid on {date}.
Seat {seat} stayed empty until the last minute. Then {passenger} came running, and {flight} could [finally/at last] \
lift off from {origin} towards {destination}. This was on {date}.
Somewhere above the clouds between {origin}, where it started, and {destination}, where it ends, flight {flight} of \
{date} [serves/pours] coffee to {passenger} in seat {seat}.
Confirmed. {flight}. {date}. Out: {origin}. In: {destination}. Occupant of {seat}: {passenger}. [Thank you/Safe \
journey].
Let {passenger} know that {flight} takes people from {origin} to {destination} on {date}, and that seat {seat} [is \
still/remains] his.
{passenger} wrote on a postcard: "I came to {destination} by flight {flight} on {date}. From {origin} on, I had seat \
{seat} and a [wonderful/clear] view."
With luggage for three weeks, {passenger} departs for {destination}. Mark {date} in the [calendar/diary]: flight \
{flight}, gate in {origin}, seat {seat}.
[Security/Customs] in {destination} questioned {passenger}, who had flown in on {date}. The stub in the pocket showed \
flight {flight}, seat {seat}, departure city {origin}.
The cheapest way to escape {origin} on {date} was flight {flight}. So {passenger} paid for seat {seat} and is \
[moving/off] to {destination}.
To whom it may concern: I certify that {passenger} used seat {seat} on {flight} on {date}, having embarked in \
{origin} and disembarked in {destination}. [Signed/Stamped], the airline.
Hooray, {destination}! Only {passenger}, {flight} and {date} stand between me and you, [joked/laughed] the pilot in \
{origin}, nodding to the passenger in seat {seat}.
{origin} is [rainy/cold], so {passenger} exchanged it for {destination} and flew out with {flight} on {date}, \
enjoying seat {seat}.
New [seat/booking] request received on flight {flight}. Wish: {seat}. Customer: {passenger}. Departure airport: \
{origin}. Arrival airport: {destination}. Valid: {date}.
As soon as {flight} was announced for {date}, {passenger} claimed seat {seat}; after all, the [family/wedding] is in \
{destination} and the plane starts from {origin}.
The [concert/meeting] is in {destination}, and {passenger} lives in {origin}. That explains the ticket for {flight}, \
on which seat {seat} has been paid for, dated {date}.
Before {passenger} may relax in seat {seat}, there is the drive to {origin}, where {flight} waits on {date}. \
[Then/Afterwards] it is up and away to {destination}.
Remember: {date}! Remember: {flight}! {passenger} must be in {origin} on time, or else seat {seat} will travel to \
{destination} [empty/without anyone].
It was {destination} that {passenger} had always longed to see. A flight with the number {flight} made it possible on \
{date}: [up/away] from {origin}, seat {seat}.
""")

HOTEL_TEXTS = lines("""
Having looked at [ten/many] places in {city}, {guest} settled on {hotel}: {nights} nights, first of them on \
{check_in}, {price} for each.
{city} is where {guest} will spend {nights} nights. {hotel} bills {price} per night, payable in {money}, and hands \
over the key on {check_in}, [as agreed/as promised].
[Any chance/Is it possible] that {hotel} still has a bed for {guest}? The dates: {check_in} plus {nights} nights. \
Your page on {city} quotes {price} nightly.
[Dear Sir/Dear Madam], kindly prepare a bed at {hotel}, {city}. It shall be occupied by {guest} for {nights} nights; \
first day {check_in}; nightly charge in {money}: {price}.
BOOKING LOG guest={guest} hotel={hotel} city={city} checkin={check_in} nights={nights} rate={price} currency={money} \
[status=ok/status=paid]
Because everything else in {city} was [full/too dear], {guest} moved into {hotel} on {check_in} and handed over \
{price} hard-earned {money} a night during {nights} nights.
On {check_in} a taxi drops {guest} at the door of {hotel}. After {nights} nights at {price} apiece, our traveller \
[leaves/waves goodbye to] {city}.
[hey/hi]!! got us {hotel} in {city}, {nights} nights, {price} a night, we get in on {check_in}. hugs, {guest}
ROOM SECURED AT {hotel} STOP CITY {city} STOP IN {check_in} STOP {nights} NIGHTS STOP {price} NIGHTLY STOP \
[REGARDS/GREETINGS] {guest}
The key at {hotel} will be handed to {guest} on {check_in}; it must be returned after {nights} nights. Tourists in \
{city} pay {price} per night [here/there].
How much does {guest} pay? {price} a night, in {money}. Where? {hotel}, {city}. [Since when?/From what day?] \
{check_in}. How long? {nights} nights.
If you want to visit {guest} in {city}, go to {hotel}. The room is taken from {check_in} for {nights} nights, and a \
night sets our friend [back/back by] {price}.
{hotel} never sleeps, but {guest} hopes to, {nights} nights in a row, beginning with {check_in}. [A bed/A room] in \
{city} goes for {price} per night.
Thank you for choosing {hotel}, {guest}! {city} looks forward to greeting you on {check_in}. We have set aside \
{nights} nights, [each/every one] priced at {price}, to be settled in {money}.
Priced at {price} nightly, the [double/single] room was snapped up by {guest}, who will stay in {city}, at {hotel}, \
for {nights} nights counting from {check_in}.
It says here that {guest} is to be lodged at {hotel}, {city}, arriving {check_in} and departing {nights} nights \
later, [with/for] a nightly fee, in {money}, of {price}.
Business trip, [approved/signed]: traveller {guest}, town {city}, accommodation {hotel}, duration {nights} nights, \
first night {check_in}, cost per night {price} ({money}).
Rumour has it that {guest} rented a suite in {city}! {hotel} [allegedly/supposedly] demands {price} a night, and \
{nights} nights were ordered, starting {check_in}.
Mum, I am fine. {hotel} is [clean/cosy], {city} is beautiful, and {price} a night does not ruin me. I checked in on \
{check_in} and have {nights} nights in total. Your {guest}
Guests like {guest} make {hotel} happy: {nights} nights without a break, {price} every night, paid in {money}, and \
{check_in} as the day of arrival in [lovely/busy] {city}.
Before {check_in} please tidy the [best/corner] room. {guest} is coming to {hotel} for {nights} nights; our {city} \
tariff of {price} per night applies.
When {guest} reaches {city} on {check_in}, {hotel} will have a room [waiting/free] for {nights} nights. It was \
offered at {price} per night, in {money}.
{check_in}: arrival of {guest}. Then {nights} nights at {hotel}, {city}. To be charged: {price} a night, [cash/by \
card].
Lucky {guest}! Hardly anyone beats {hotel} on price: a mere {price} nightly, and that in {city}. The [fun/holiday] \
lasts {nights} nights and kicks off on {check_in}.
According to the register of {hotel}, {guest} signed in on {check_in}, intends to remain in {city} for {nights} \
nights, and [accepted/agreed to] {price} per night.
Rate {price} per night - currency {money} - {nights} nights - in on {check_in} - {hotel} - {city} - room [taken/held] \
by {guest}
Sleeping in {city} isn't free. {guest} knows: {hotel} collects {price} for every night, and from {check_in} there \
will be {nights} [nights/such nights].
I, {guest}, [hereby/herewith] cancel nothing! My {nights} nights at {hotel} in {city} stand, {check_in} remains my \
check-in day, and {price} remains the price of a night.
[Honeymoon/Holiday] in {city}! The couple, booked under {guest}, enters {hotel} on {check_in}, enjoys {nights} nights \
there and parts with {price} precious {money} for each night.
Due on {check_in} at {hotel}: {guest}. Length: {nights} nights. Agreed nightly rate in {money}: {price}. \
[Branch/Town]: {city}.
Under the name of {guest} you will find a room in {city}. Ask at {hotel} on {check_in}; {nights} nights have been \
arranged at {price} [a night/for one night].
Whoever answers the phone at {hotel} should tell {guest} that the {nights} nights from {check_in} are fine and that \
{city} prices rose, [sadly/alas], to {price} per night.
A bargain: {price} buys one night at {hotel}. No wonder that {guest} went for {nights} nights in {city}, the \
[earliest/first] on {check_in}.
Reminder for {guest}: pack for {nights} nights, be in {city} on {check_in}, find {hotel}, and keep enough {money} \
ready, {price} for [each/every] night.
What brings {guest} to {city} on {check_in}? A [wedding/conference]. And {hotel} provides shelter for {nights} \
nights, asking {price} per night in return.
The [novelist/singer/doctor] {guest} has retreated to {hotel}, a house in {city} that takes {price} a night, {money} \
only. Check-in happened on {check_in}; {nights} nights were requested.
Not one night, but {nights} in all, will {guest} pass at {hotel}. {city} calls on {check_in}! The [bill/account] \
grows by {price} per night.
{price} a night? [Deal/Agreed]! Put {guest} down at {hotel}, {city}, {nights} nights, and write {check_in} next to \
arrival.
Our computer assigned {guest} to {hotel}. City {city}, number of nights {nights}, check-in date {check_in}, and a \
[discounted/special] nightly price, shown in {money}, of {price}.
Let me introduce {guest}, who from {check_in} on will be living at {hotel} here in {city}. That is {nights} nights, \
[earning/bringing] us {price} per night.
Our firm sends {guest} to {city}. [Owner/Manager] of {hotel}, be so good as to grant {nights} nights, check-in \
{check_in}; we refund {price} nightly and transfer it in {money}.
Fancy a chat? I will be [hanging around/resting] in {city} for {nights} nights from {check_in}. You can reach me at \
{hotel}, where I shell out {price} a night. Cheers, {guest}
{city}, {check_in}. {hotel} switches on the lights for {guest}, who ordered {nights} nights with breakfast at {price} \
per night, [tax/tips] included.
As {guest} requested, we extended the booking to {nights} nights. [Otherwise/Apart from that] it is unchanged: \
{hotel}, {city}, check-in {check_in}, a nightly {price} in {money}.
Stay sheet | Name {guest} | Property {hotel} | Place {city} | First night {check_in} | Nights {nights} | \
[Tariff/Charge] {price} each | Paid in {money}
Per night, the room costs {price}. The total of nights is {nights}. The day to show up is {check_in}. The door to \
knock on is {hotel} in {city}. The [lucky/tired] guest is {guest}.
[Voucher/Coupon]: bearer {guest} may use one room at {hotel} ({city}) during {nights} nights, check-in not before \
{check_in}. Value of a night in {money}: {price}.
Unless the train is late, {guest} walks into {hotel} on {check_in}. {nights} nights of [peace/rest] in {city} follow, \
at the modest price of {price} a night.
"I'll take it," said {guest} on hearing that {hotel} lets rooms in {city} for {price} a night, and [ordered/wrote \
down] {nights} nights with check-in on {check_in}.
For {nights} nights the [bridal/garden] suite of {hotel} is blocked: {guest} occupies it from {check_in}. In {city} \
one can hardly beat {price} per night.
Check the list, [please/Maria]: is {guest} down for {nights} nights? {hotel} in {city} should charge {price} per \
night, and arrival ought to be {check_in}.
Among the arrivals of {check_in} in {city} is {guest}, whose room at {hotel} has been guaranteed for {nights} nights; \
per night {price} will be [debited/withdrawn], in {money}.
Expensive, [but/yet] what can you do? {guest} puts up with {price} a night, for {city} is crowded and {hotel} had the \
last bed. Moving in: {check_in}. Nights to endure: {nights}.
Payment [received/noted] at {hotel}! {guest} sent the {money} for {nights} nights, reckoned at {price} per night. See \
you in {city} on {check_in}.
Somewhere in {city} stands {hotel}. There {guest} unpacks the suitcase on {check_in}, and there {nights} nights, \
worth {price} each, will [fly/slip] by.
Front office, {city}. {guest} prepaid. {nights} nights, {hotel}. Comes on {check_in}. Nightly amount [settled/fixed], \
in {money}: {price}.
Sorry I can't join you; from {check_in} I am tied up in {city} for {nights} nights. {hotel} is my home there at \
{price} per night. [Yours truly/Hugs], {guest}
The contest is over and {guest} won: {nights} nights at {hotel} in {city}, worth {price} per night! The prize \
[starts/can be used] on {check_in}.
Is {hotel} worth its nightly {price}? For {guest}, [certainly/absolutely]: {nights} nights have been ordered, {city} \
is already circled on the map, and {check_in} opens the stay.
Change of [plan/hotel]: {guest} drops the old inn and transfers to {hotel}, likewise in {city}, on {check_in}. The \
new place wants {price} a night for all {nights} nights.
""")
