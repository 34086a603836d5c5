"""More kinds of records: bookings, jobs, invoices, contacts, products, weather, visits, results, titles, houses."""

from rtlang.model.embedded import lexicon as lex
from rtlang.model.embedded.extras import (
    BREAKFAST,
    COLOR,
    DEPARTMENT,
    EMAIL,
    FURNISHED,
    IN_STOCK,
    NOTE_CODE,
    PAID,
    PETS,
    PHONE,
    PUBLISHER,
    REMOTE,
    URGENT_OF_CASE,
    WEBSITE,
    WINDOW_SEAT,
    Value,
)
from rtlang.model.embedded.kinds import Drawn, Kind, lines, money
from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.words import Draw, article, listing


def draw_flight(draw: Draw) -> Drawn:
    return {
        "passenger": draw.full_name(), "origin": draw.place_name(), "destination": draw.place_name(), "flight": draw.any_code(),
        "date": draw.any_date(), "seat": f"{draw.number(1, 40)}{draw.pick('ABCDEF')}",
    }, {}  # fmt: skip


flight = Kind(
    "flight", words("flight|booking|ticket", "|"), draw_flight,
    lines("""
{passenger} flies from {origin} to {destination} on {date} with flight {flight}, seat {seat}.
Flight {flight} from {origin} to {destination}, {date}. Passenger: {passenger}. Seat: {seat}.
Dear {passenger}, your flight {flight} to {destination} leaves {origin} on {date}. Your seat is {seat}.
Booking for {passenger}: {origin} to {destination}, {date}, flight {flight}, seat {seat}
On {date} {passenger} travels to {destination}. The flight {flight} starts in {origin}. Seat {seat} is reserved.
Seat {seat} on flight {flight} belongs to {passenger}. It goes from {origin} to {destination} on {date}.
We have booked {passenger} on {flight}, leaving {origin} for {destination} on {date}. The seat is {seat}.
From: {origin}. To: {destination}. Date: {date}. Flight: {flight}. Passenger: {passenger}. Seat: {seat}.
{passenger} here. I need a seat on {flight} from {origin} to {destination} on {date}, {seat} if possible.
My flight from {origin} to {destination} is {flight} on {date}. I sit on {seat}. {passenger}
The ticket of {passenger} is for flight {flight} ({origin} - {destination}), {date}, seat {seat}.
To {destination} with {flight} on {date}: {passenger} departs from {origin} in seat {seat}.
Please check in {passenger} for {flight} on {date}. Departure is {origin}, arrival is {destination}, seat {seat}.
{date}: {passenger}, {flight}, {origin} -> {destination}, {seat}"""),
    lines("""
Boarding pass of {passenger}: {seat} aboard {flight}, departing {origin} on {date}, landing in {destination}.
With {flight} our guest {passenger} heads for {destination} on {date}, taking off in {origin} and sitting on {seat}.
Leaving {origin} on {date}, {passenger} will arrive in {destination}; the number is {flight} and the place {seat}."""),
    (PHONE, EMAIL, NOTE_CODE, WINDOW_SEAT),
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
{guest} booked {nights} nights at {hotel} in {city} from {check_in} for {price} {money} a night.
Reservation at {hotel}, {city}: {guest}, {nights} nights from {check_in}, {price} {money} per night.
Dear {guest}, we confirm your stay at {hotel} in {city}. Check-in: {check_in}. Nights: {nights}. Price: {price} {money} per night.
Starting on {check_in}, {guest} stays {nights} nights at {hotel} in {city}. One night costs {price} {money}.
I would like a room at {hotel} in {city} for {nights} nights. I arrive on {check_in} and pay {price} {money} a night. {guest}
{hotel} in {city} expects {guest} on {check_in} for {nights} nights at {price} {money} each.
Guest: {guest}. Hotel: {hotel}. City: {city}. Check-in: {check_in}. Nights: {nights}. Price: {price}.
Please reserve a room for {guest} at {hotel}, {city}, from {check_in} for {nights} nights. The rate is {price} {money}.
In {city}, {guest} will sleep at {hotel} for {nights} nights. The room costs {price} {money} per night. Arrival: {check_in}.
{nights} nights at {hotel} ({city}) for {guest}, check-in {check_in}, {price} {money} a night
A room at {hotel} costs {price} {money} per night. {guest} takes it for {nights} nights in {city} from {check_in}.
{guest} arrives at {hotel} in {city} on {check_in}. The stay is {nights} nights and each night costs {price} {money}.
For {price} {money} a night, {guest} got a room at {hotel} in {city}: {nights} nights, from {check_in}.
Hi, {guest} speaking. I booked {hotel} in {city}, {nights} nights, check-in on {check_in}, {price} {money} per night."""),
    lines("""
The room at {hotel} ({city}) is kept for {guest}: arriving {check_in}, staying {nights} nights, paying {price} {money} nightly.
{guest} checks in on {check_in}; {hotel} in {city} charges {price} {money} for each of the {nights} nights.
Our travel desk put {guest} into {hotel}, {city}, for {nights} nights as of {check_in}, at {price} {money} per night."""),
    (PHONE, EMAIL, NOTE_CODE, BREAKFAST),
)  # fmt: skip


def draw_vacancy(draw: Draw) -> Drawn:
    job = draw.slot(lex.JOBS, lex.HELD_JOBS)
    skills: list[str] = []
    for _ in range(draw.number(1, 4)):
        skill = draw.slot(lex.SKILLS)
        if skill not in skills:
            skills.append(skill)
    return {
        "company": draw.company(), "title": job, "city": draw.place_name(), "salary": draw.number(18, 180) * draw.pick((100, 1000, 500)),
        "skills": [*skills],
    }, {"a_job": article(job), "needs": listing(skills), "comma": ", ".join(skills)}  # fmt: skip


vacancy = Kind(
    "job ad", words("job ad|vacancy|job offer", "|"), draw_vacancy,
    lines("""
{company} is looking for {a_job} in {city}. You know {needs}. The salary is {salary}.
We are hiring {a_job}! Place of work: {city}. Skills: {comma}. Salary: {salary}. Apply at {company}.
Job: {title}. Company: {company}. City: {city}. Salary: {salary}. Skills: {comma}.
Join {company} in {city} as {a_job} and earn {salary}. We ask for {needs}.
{company} in {city} pays {salary} for {a_job} with skills in {needs}.
Open position at {company}: {title}, {city}, {salary} a year. Needed: {comma}.
Do you know {needs}? {company} in {city} needs {a_job} and offers {salary}.
Are you {a_job}? {company} offers {salary} in {city}. Required: {needs}.
In {city}, {company} wants to hire {a_job}. Required skills are {needs}. Pay: {salary}.
The company {company} has a job for {a_job} in {city}. It pays {salary}. Skills in {needs} are a must.
For {salary} a year you can work as {a_job} at {company} in {city} if you know {needs}.
{title} wanted in {city} ({company}). Skills: {comma}. Salary {salary}.
Our team in {city} needs {a_job} with knowledge of {needs}. {company} offers {salary}.
{company} seeks {a_job}. Skills: {needs}. Location: {city}. Yearly salary: {salary}."""),
    lines("""
Work with us at {company}: as {a_job} in {city} you bring {needs} and take home {salary}.
Vacant in {city}: {title}. The employer {company} grants {salary} to those who master {needs}.
Whoever masters {needs} can become {a_job} with {company}, {city}, at {salary} per year."""),
    (EMAIL, PHONE, WEBSITE, REMOTE),
)  # fmt: skip


def draw_invoice(draw: Draw) -> Drawn:
    total, spelled = money(draw)
    company, city = draw.company(), draw.place_name()
    currency = draw.pick(("EUR", "USD", "GBP", "CHF", "JPY"))
    return {
        "number": draw.any_code(), "vendor": {"name": company, "city": city}, "total": total, "currency": currency,
        "due": draw.any_date(),
    }, {"company": company, "city": city, "total": spelled}  # fmt: skip


invoice = Kind(
    "invoice", words("invoice|bill", "|"), draw_invoice,
    lines("""
Invoice {number} from {company}, {city}: {total} {currency}, due on {due}.
{company} in {city} sent invoice {number} over {total} {currency}. It is due on {due}.
Please pay {total} {currency} to {company} ({city}) by {due}. Invoice number: {number}.
The total of invoice {number} is {total} {currency}. Pay it by {due}. {company}, {city}
Bill number {number}. Vendor: {company}, {city}. Total: {total} {currency}. Due: {due}.
We owe {company} from {city} {total} {currency}. The invoice is {number}, due {due}.
Due {due}: {total} {currency} for {company}, {city}, invoice {number}
By {due} we have to pay invoice {number} of {company} in {city}. The amount is {total} {currency}.
{company}, {city}. Invoice {number}. Amount: {total} {currency}. Payable until {due}.
Our supplier {company} from {city} asks for {total} {currency} by {due}. See invoice {number}.
Attached you find invoice {number} for {total} {currency}. It is due on {due}. Regards, {company}, {city}
Invoice no. {number}, {company} of {city}, is {total} {currency} and must be paid by {due}.
A bill from {city} came in: {company} wants {total} {currency} until {due}. Number {number}.
{number}: {company} ({city}) - {total} {currency} - due {due}"""),
    lines("""
With {number} the firm {company} of {city} charges us {total} {currency}, payable no later than {due}.
Kindly settle {number} by {due}; {company}, located in {city}, is waiting for {total} {currency}.
An amount of {total} {currency} goes to {company} in {city} before {due}, see {number}."""),
    (EMAIL, PHONE, PAID),
)  # fmt: skip


def draw_contact(draw: Draw) -> Drawn:
    street, city, zip_code = draw.street(), draw.place_name(), str(draw.number(10000, 99999))
    return {
        "name": draw.full_name(), "company": draw.company(), "phone": draw.phone(), "email": draw.email(),
        "address": {"street": street, "zip": zip_code, "city": city},
    }, {"street": street, "city": city, "zip": zip_code}  # fmt: skip


contact = Kind(
    "contact", words("contact|address|business card", "|"), draw_contact,
    lines("""
{name}, {company}, {street}, {zip} {city}, phone {phone}, {email}
{name} works for {company} at {street}, {zip} {city}. Phone: {phone}. Email: {email}
Best regards, {name}. {company}, {street}, {zip} {city}. Tel. {phone}, mail {email}
Contact: {name} ({company}). Address: {street}, {zip} {city}. Phone {phone}. Email {email}
You can reach {name} of {company} at {phone} or {email} . The office is at {street}, {zip} {city}.
{company} - {name} - {street}, {zip} {city} - {phone} - {email}
Please write to {name} at {company}, {street}, {zip} {city}. The phone number is {phone} and the email is {email} .
My name is {name} and I work at {company}. Call {phone} or write to {email} . Our address is {street}, {zip} {city}.
New address of {name}: {street}, {zip} {city}. Company: {company}. Phone: {phone}. Mail: {email}
Send the parcel to {company}, for {name}, {street}, {zip} {city}. Questions: {phone} or {email}
{company} has moved to {street}, {zip} {city}. Ask for {name}, phone {phone}, email {email}
Name: {name}. Company: {company}. Street: {street}. City: {zip} {city}. Phone: {phone}. Email: {email}
For help call {name} on {phone} or mail {email} . {company}, {street}, {zip} {city}.
I met {name} from {company}. Phone {phone}, email {email} , office at {street}, {zip} {city}."""),
    lines("""
The card says {name}, {company}, and below {street}, {zip} {city}; dial {phone} or try {email}
Visit {name} at {street} in {zip} {city}, home of {company}, after ringing {phone} or mailing {email}
{email} and {phone} belong to {name}, employed by {company}, {street}, {zip} {city}."""),
    (WEBSITE, DEPARTMENT),
)  # fmt: skip


def draw_product(draw: Draw) -> Drawn:
    (price, spelled), item = money(draw), draw.item(0)
    return {
        "product": item, "brand": draw.capital(), "material": draw.slot(lex.MATERIALS), "price": price,
        "weight": draw.number(1, 9000),
        "code": draw.any_code(),
    }, {"price": spelled, "a_product": article(item), "money": draw.pick(lex.CURRENCIES)}  # fmt: skip


product = Kind(
    "product", words("product|article|product description", "|"), draw_product,
    lines("""
The {product} by {brand} is made of {material}, weighs {weight} grams and costs {price} {money}. Code: {code}.
{brand} sells {a_product} made of {material} for {price} {money}. Weight: {weight} grams. Article code {code}.
New from {brand}: {product}, {material}, {weight} g, {price} {money}, code {code}
For {price} {money} you get {a_product} by {brand}. It is made of {material} and weighs {weight} grams. The code is {code}.
Product: {product}. Brand: {brand}. Material: {material}. Weight: {weight} g. Price: {price} {money}. Code: {code}.
Code {code} is {a_product} from {brand}. Material: {material}. It weighs {weight} grams. It costs {price} {money}.
Do you need {a_product}? The one by {brand} weighs {weight} grams, is made of {material} and costs {price} {money} ({code}).
{brand} uses {material} for its {product}. It weighs {weight} grams. Price: {price} {money}, code {code}.
Made of {material}, the {product} from {brand} weighs only {weight} grams. It is yours for {price} {money}. Order {code}.
Our shop has {a_product} of {brand} in {material}. Price {price} {money}, weight {weight} grams, code {code}.
Item {code}: {product} ({brand}), {material}, {weight} grams, {price} {money}
I bought {a_product} made by {brand}. It cost {price} {money}, weighs {weight} grams, and the material is {material}. Code: {code}.
The brand {brand} offers {a_product} ({code}) for {price} {money}. It is of {material} and weighs {weight} grams.
Only {price} {money}: the {product} by {brand}, {weight} grams of {material}. Article {code}."""),
    lines("""
Discover {code}, {a_product} that {brand} crafts from {material}; at {weight} grams it goes for {price} {money}.
On the scales the {product} of {brand} shows {weight} grams; {material} inside, {price} {money} on the tag, {code} on the label.
{price} {money} is what {brand} asks for {a_product} ({material}, {weight} grams, number {code})."""),
    (WEBSITE, COLOR, IN_STOCK),
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
Weather in {city} on {day}: {condition}, high {high}, low {low}, wind {wind} km/h.
On {day} it will be {condition} in {city}, between {low} and {high} degrees, with wind of {wind} km/h.
{city}, {day}: {condition}. High: {high} degrees. Low: {low} degrees. Wind: {wind} km/h.
{day} in {city}: {condition}, up to {high} degrees by day and down to {low} at night. Wind {wind} km/h.
The forecast for {city} on {day} is {condition} with a high of {high}, a low of {low} and wind of {wind} km/h.
Expect {condition} weather in {city} this {day}. Wind: {wind} km/h. Temperatures from {low} to {high} degrees.
People in {city} get {condition} weather on {day}, a low of {low}, a high of {high} and {wind} km/h of wind.
Forecast: {condition}. City: {city}. Day: {day}. High: {high}. Low: {low}. Wind: {wind}.
With {wind} km/h of wind, {day} in {city} will be {condition}. The low is {low}, the high is {high}.
It stays {condition} in {city} on {day}: {low} to {high} degrees, wind {wind} km/h.
A high of {high} and a low of {low} are expected in {city} on {day}. Wind at {wind} km/h, {condition}.
{condition} on {day} in {city}, wind {wind} km/h, low {low}, high {high}
In {city} the wind reaches {wind} km/h on {day}. The high is {high}, the low is {low}. It will be {condition}.
{day}, {city}: low {low}, high {high}, wind {wind} km/h, {condition}"""),
    lines("""
Looking at {day}, {city} climbs from {low} to {high} degrees while the wind blows at {wind} km/h; the sky: {condition}.
The mercury in {city} will hit {high} on {day} after {low} in the night, {condition}, gusts of {wind} km/h.
{city} should prepare for {condition} conditions on {day}: top {high}, bottom {low}, breeze {wind} km/h."""),
)  # fmt: skip


def draw_visit(draw: Draw) -> Drawn:
    symptom = draw.pick(lex.SYMPTOMS)
    values: dict[str, Value] = {
        "patient": draw.full_name(), "age": draw.number(1, 95), "doctor": f"Dr. {draw.family_name()}", "date": draw.any_date(),
        "complaint": symptom.removeprefix("a ").removeprefix("an "), "medicine": draw.slot(lex.MEDICINES),
    }  # fmt: skip
    return values, {"symptom": symptom}


visit = Kind(
    "visit", words("visit|appointment note|medical note", "|"), draw_visit,
    lines("""
{patient} ({age}) saw {doctor} on {date} with {symptom} and was given {medicine}.
On {date}, {doctor} treated {patient}, aged {age}, for {symptom}. Medicine: {medicine}.
Patient: {patient}. Age: {age}. Doctor: {doctor}. Date: {date}. Complaint: {complaint}. Medicine: {medicine}.
{patient}, {age} years old, came to {doctor} on {date} because of {symptom}. The doctor wrote down {medicine}.
{date}: {doctor} saw {patient} ({age}). Complaint: {complaint}. Prescribed {medicine}.
Because of {symptom}, {patient} went to {doctor} on {date}. Age {age}. Medicine {medicine}.
{doctor} gave {medicine} to {patient}, {age}, on {date}. The complaint was {complaint}.
My name is {patient}, I am {age}, and I have {symptom}. On {date} {doctor} gave me {medicine}.
Visit on {date} with {doctor}. {patient} is {age} and has {symptom}. Take {medicine}.
{patient} had {symptom}. {doctor} prescribed {medicine} on {date}. The patient is {age}.
Note by {doctor}, {date}: {patient}, {age}, has {symptom}. Treatment with {medicine}.
Appointment of {patient} on {date}. Age: {age}. Reason: {complaint}. {doctor} recommends {medicine}.
{age} year old {patient} was seen by {doctor} on {date} for {symptom} and takes {medicine}.
{medicine} was prescribed by {doctor} on {date} to {patient}, {age} years, who has {symptom}."""),
    lines("""
Suffering from {symptom}, {patient} ({age}) turned to {doctor}, who chose {medicine} on {date}.
Seen on {date} by {doctor}: {patient}, {age} years of age, troubled by {symptom}, now on {medicine}.
{doctor} noted on {date} that {patient} ({age}) reports {symptom}; {medicine} was handed out."""),
    (PHONE, URGENT_OF_CASE),
)  # fmt: skip


def draw_match(draw: Draw) -> Drawn:
    goals = draw.number(0, 99 if draw.chance(0.4) else 7)
    return {
        "winner": draw.team(), "loser": draw.team(), "winner_score": goals + draw.number(1, 5), "loser_score": goals,
        "sport": draw.slot(lex.SPORTS), "date": draw.any_date(),
    }, {}  # fmt: skip


match = Kind(
    "match", words("match|result|game", "|"), draw_match,
    lines("""
{winner} beat {loser} {winner_score} to {loser_score} in {sport} on {date}.
{sport}, {date}: {winner} won against {loser}, {winner_score}:{loser_score}.
On {date} {winner} won the {sport} match against {loser} with {winner_score} to {loser_score}.
{loser} lost to {winner} by {loser_score} to {winner_score} in {sport} on {date}.
The {sport} game of {date} ended {winner_score}-{loser_score} for {winner} against {loser}.
Result ({sport}, {date}): winner {winner} {winner_score}, loser {loser} {loser_score}
{winner} scored {winner_score} and {loser} scored {loser_score}, so {winner} won at {sport} on {date}.
With {winner_score} to {loser_score}, {winner} defeated {loser} on {date} ({sport}).
In {sport}, {loser} had only {loser_score} against {winner} with {winner_score}. Date: {date}.
Fans of {winner} are happy: a {winner_score} to {loser_score} win over {loser} in {sport} on {date}.
{date}. {sport}. {winner} {winner_score}, {loser} {loser_score}.
A bad day for {loser}: on {date} they lost the {sport} match {loser_score} to {winner_score} to {winner}.
The match on {date} went to {winner}. {loser} lost {loser_score} to {winner_score}. Sport: {sport}.
In the {sport} league, {winner} beat {loser} on {date}. The score was {winner_score}:{loser_score}."""),
    lines("""
{winner} celebrated a {winner_score} to {loser_score} {sport} triumph at the expense of {loser} on {date}.
{loser} had to admit defeat in {sport} on {date}: {loser_score} points against the {winner_score} of {winner}.
When {sport} was played on {date}, {winner} ({winner_score}) proved stronger than {loser} ({loser_score})."""),
)  # fmt: skip


def draw_book(draw: Draw) -> Drawn:
    return {
        "title": draw.title(), "author": draw.full_name(), "year": draw.number(1890, 2030), "genre": draw.slot(lex.GENRES, (), 0.15),
        "pages": draw.number(40, 1200),
    }, {}  # fmt: skip


book = Kind(
    "book", words("book|title|book review", "|"), draw_book,
    lines("""
"{title}" is a {genre} by {author}, published in {year}. It has {pages} pages.
{author} wrote "{title}" in {year}. The {genre} has {pages} pages.
In {year}, {author} published the {genre} "{title}" with {pages} pages.
Book: {title}. Author: {author}. Year: {year}. Genre: {genre}. Pages: {pages}.
I just read {title} by {author}, a {genre} from {year}. It has {pages} pages.
{title} ({year}), {genre}, {pages} pages, written by {author}
The {genre} "{title}" came out in {year}. {author} needed {pages} pages to tell it.
With {pages} pages, "{title}" is the longest {genre} of {author}. It was published in {year}.
{author}: {title}. {year}. {pages} pages. Genre: {genre}.
Have you read "{title}"? It is a {genre} of {pages} pages that {author} wrote in {year}.
The library has "{title}" by {author} ({year}). Genre: {genre}. It is {pages} pages long.
A new copy of {title} arrived. Author {author}, year {year}, {pages} pages, {genre}.
From {year} comes "{title}", a {genre} by {author} with {pages} pages.
{pages} pages, {genre}, {year}: this is "{title}" by {author}."""),
    lines("""
Readers know {author} for "{title}", {pages} pages of {genre} printed in {year}.
"{title}" filled {pages} pages when {author} released this {genre} in {year}.
It was {year} when the {genre} "{title}" ({pages} pages) made {author} famous."""),
    (WEBSITE, PUBLISHER),
)  # fmt: skip


def draw_house(draw: Draw) -> Drawn:
    return {
        "kind": draw.pick(("house", "flat", "apartment", "studio", "cottage", "villa")), "address": draw.street(),
        "city": draw.place_name(),
        "rooms": draw.number(1, 9), "area": draw.number(18, 400), "rent": draw.number(20, 500) * 10,
    }, {}  # fmt: skip


house = Kind(
    "listing", words("listing|house ad|offer", "|"), draw_house,
    lines("""
For rent: {kind} with {rooms} rooms and {area} square meters at {address}, {city}. Rent: {rent} a month.
This {kind} at {address} in {city} has {rooms} rooms, {area} square meters and costs {rent} per month.
{address}, {city}: {kind}, {rooms} rooms, {area} m2, {rent} per month
In {city} you can rent a {kind} of {area} square meters. It has {rooms} rooms and costs {rent}. Address: {address}.
The {kind} costs {rent} a month, has {rooms} rooms on {area} square meters and is at {address} in {city}.
Kind: {kind}. Address: {address}. City: {city}. Rooms: {rooms}. Area: {area}. Rent: {rent}.
We rent out our {kind} in {city}. Rooms: {rooms}. Size: {area} square meters. Rent: {rent}. It is at {address}.
Nice {kind} in {city}, {address}. {rooms} rooms, {area} square meters. The rent is {rent}.
For {rent} a month you get {rooms} rooms and {area} square meters in this {kind} at {address}, {city}.
{rooms} rooms, {area} square meters, {rent} a month: {kind} at {address} in {city}.
A {kind} with {rooms} rooms is free in {city}. You find it at {address}. It has {area} square meters and the rent is {rent}.
My {kind} at {address} has {area} square meters and {rooms} rooms. It is in {city} and I ask {rent} per month.
{city}: the {kind} at {address} is for rent. {area} square meters, {rooms} rooms, monthly rent {rent}.
At {address} in {city} there is a {kind} with an area of {area} square meters, {rooms} rooms, and a rent of {rent}."""),
    lines("""
Move into a {kind} in {city}: {address} offers {area} square meters split into {rooms} rooms for {rent} monthly.
{rent} per month buys you this {kind} ({rooms} rooms, {area} square meters) located at {address}, {city}.
Tenants wanted for {address}, {city}, a {kind}; {rooms} rooms, {area} square meters, {rent} monthly."""),
    (
        PHONE, EMAIL,
        FURNISHED,
        PETS,
    ),
)  # fmt: skip

KINDS: tuple[Kind, ...] = (flight, hotel, vacancy, invoice, contact, product, weather, visit, match, book, house)
