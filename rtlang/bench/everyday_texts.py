"""Everyday texts of the kinds of `tasks_extraction.SHORT`, by an author who had seen nothing of the corpus, for evaluation alone.

The held-out texts of the corpus share no five words with a known one, which makes them few and some of them odd. These say what
people say: a phrase in one may stand in a known text as well, but none is close to one as a whole.
"""

from dataclasses import replace

from rtlang.model.embedded.kinds import lines
from rtlang.model.embedded.kinds_of_occasions import event, recipe
from rtlang.model.embedded.kinds_of_people import person, ticket
from rtlang.model.embedded.kinds_of_trade import basket, order

ORDER = lines("""
Hello, this is {customer}. I would like {quantity} {items} at {price} {money} each, please. You can deliver them to my home in {city}.
Thank you for shopping with us, {customer}! Your {quantity} {items} ({price} {money} apiece) leave our warehouse tonight and should \
reach {city} by the end of the week.
Order form. Name: {customer}. Product: {item}. Quantity: {quantity}. Unit price: {price} {money}. Ship to: {city}.
Can someone pack {quantity} {items} this morning? They go to {city}, the buyer is {customer}, and we agreed on {price} {money} per \
piece.
At {price} {money} apiece, our {items} were too good to miss for {customer} from {city}, who has just ordered {quantity} of them.
Our regular from {city} wrote again: this time we should reserve {quantity} {items} under the name {customer}, at the usual unit price \
of {price} {money}.
Phone note: {customer} called and wants {quantity} {items} sent to {city}. I quoted {price} {money} for each one. Paul from accounting \
will write the invoice.
One parcel for {city} is ready. Inside: {quantity} {items}, sold at {price} {money} each. Recipient and payer: {customer}.
Hi team, we have just received a new web order. It is for {quantity} {items}, each costing {price} {money}. The customer's name is \
{customer} and the delivery address is in {city}.
Dear {customer}, we confirm that {quantity} {items} will be delivered to you in {city}. The price per piece is {price} {money}, and \
shipping is free.
Sold! We can send {quantity} {items} to {customer}. A single one costs {price} {money}. The van to {city} leaves tomorrow.
new sale; client {customer}; town {city}; article {item}; count {quantity}; price each {price} {money}
My name is {customer}, I live in {city}, and I'd like to buy some of your {items}. Your website says {price} {money} for one, so put \
me down for {quantity}.
This morning {quantity} {items} left our depot in Hamburg and are now on their way to {customer} in {city}, who paid {price} {money} \
for each of them.
Now that the {items} cost only {price} {money} apiece, {customer} has decided to take {quantity}. Please send them to {city}.
Invoice to {customer}, {city}: {quantity} pieces, {item}, {price} {money} per unit, payable within 30 days.""")

BASKET = lines("""
{customer} from {city} has just checked out online with {goods} in the cart.
Hi, could you please send {goods} to my flat in {city}? Thanks a lot, {customer}
Your cart has been saved, {customer}. It contains {goods}. Delivery to {city} takes two to three days.
Packing slip. Destination: {city}. Contents: {goods}. Customer: {customer}.
There is one parcel left for {city} today. Please put in {goods} and write {customer} on the label.
Good morning! I'd like to order {goods}. My name is {customer} and I live in {city}.
Reminder for the afternoon shift: get {goods} ready for {customer}. Our driver Lukas takes everything to {city} at five.
Dear {customer}, thank you for your purchase. We will ship {goods} to your address in {city} as soon as the payment arrives.
Did the {city} delivery go out yet? It was {goods}, and the name on the order was {customer}.
For a new apartment in {city}, {customer} ordered {goods} from our online shop last night.
new order / name {customer} / goes to {city} / list: {goods}
We just sold {goods}! The buyer, {customer}, wants everything shipped to {city}.
Somebody named {customer} left a voice message asking for {goods}. Delivery should be in {city} some time next week.
The web shop has a new customer in {city}: {customer} signed up today and immediately bought {goods}.
Shipping update: your box with {goods} is on its way from our Madrid store to {city}. Please be at home on delivery day, {customer}.
I wrote down what {customer} needs: {goods}. Everything should go to the house in {city}, not to the office.""")

EVENT = lines("""
{host} invites you to {an_event} at the {place} on {date}. We begin at {time}.
Mark your calendars! The next {event} takes place on {date} at {time} in the {place}. If you have questions, ask {host}, who organises \
it.
Hi all, I'm hosting {an_event} on {date}. Come to the {place} at {time} and bring a friend. Best wishes, {host}
Event: {event}. Where: {place}. Date: {date}. Start: {time}. Organiser: {host}.
On {date} at {time}, the {place} opens its doors for {an_event} organised by {host}. Entry is free.
See you at the {place}? {host} is putting together {an_event} there on {date}, starting at {time}.
Don't forget that the {event} begins at {time} on {date}. This time {host} is in charge and has reserved the {place} for us.
Thanks to {host}, our neighbourhood finally gets {an_event}. The first one is on {date} in the {place}, {time} sharp.
Change of venue: the {event} run by {host} will now be held in the {place} instead of at my house. It is still on {date} at {time}.
Calendar entry: {date}, {time}, {event}, {place}, host: {host}. Reminder set for one day before.
Who is coming to {host}'s {event}? It's on {date} in the {place}, and it kicks off at {time}.
Dear members, the {place} is booked for us on {date} from {time}. {host} has organised the {event} and looks forward to seeing you.
From {time} on {date} you will find {host} in the {place}, welcoming guests as host of the {event}.
Local news: residents can look forward to {an_event} on {date}. It starts at {time} at the {place}, according to organiser {host}. \
Baker Ana Brandt will provide the cakes.
There are still free seats for the {event}! When: {date}, {time}. Where: {place}. Hosted by {host}.
Hey Tom, are you free on {date}? There's {an_event} in the {place} at {time}. {host} is organising it and still needs more people.""")

PERSON = lines("""
{name} is {age} years old, lives in {city} and works as {a_job}. Free evenings are reserved for {hobby}.
Hi everyone, I'm {name}, {a_job} from {city}. I turned {age} this year and my favourite pastime is {hobby}.
Name: {name}. Age: {age}. Occupation: {job}. City: {city}. Hobby: {hobby}.
Please welcome our new {job}, {name}! Our colleague is {age}, has just moved to {city} and loves {hobby}.
At the age of {age}, {name} still gets up early every Sunday for {hobby}. The rest of the week belongs to a busy life as {a_job} in \
{city}.
Hardly anyone in {city} enjoys {hobby} more than {name}, {a_job} aged {age}.
I work as {a_job} in {city}. When I'm off duty, you'll find me enjoying {hobby}. I'm {age}, and my name is {name}.
Contest winner announced: first prize goes to {name} ({age}) from {city}. The {job} names {hobby} as a favourite way to relax.
I'm looking for someone to share my hobby, {hobby}. I'm {age}, I live in {city} and earn my living as {a_job}. Just reply to this ad \
and ask for me, {name}.
profile: {name} / {city} / {age} years / {job} / likes {hobby}
My new neighbour here in {city} is {name}, who is {a_job} and {age} years old. It turns out that {hobby} is my neighbour's great \
hobby.
Did you meet {name} at my sister's party? {age} years old, {a_job} in {city}, and a huge fan of {hobby}.
Happy birthday, {name}! You are {age} today, and still the best {job} in {city}. We hope your day leaves plenty of room for {hobby}, \
your favourite hobby.
Dear Mrs Weber, I am applying for the flat in your house. I am {age}, employed as {a_job} here in {city}, and my only hobby is \
{hobby}. Kind regards, {name}
Born in Oslo {age} years ago, {name} now lives in {city}, has a job as {a_job} and relaxes with {hobby}.
The {hobby} club has a new member from {city}: {name}, age {age}, profession {job}.""")

TICKET = lines("""
Ticket {ticket}: {reporter} says the {device} in room {room} {problem}. Priority is {priority}.
Hi support, the {device} here in room {room} {problem}. Please treat this as {priority} priority. I already opened ticket {ticket}. \
Regards, {reporter}
Room: {room}. Device: {device}. Fault: it {problem}. Reported by: {reporter}. Priority: {priority}. Ticket no.: {ticket}.
{reporter} just called from room {room} because the {device} there {problem}. I logged it under {ticket} with {priority} priority.
New {priority} priority issue, number {ticket}. According to {reporter}, the {device} {problem}. Location: room {room}.
Could anyone look at the {device} in room {room}? It {problem}. {reporter} reported it this morning. The ticket is {ticket} and has \
{priority} priority.
Dear {reporter}, we have received your report that the {device} {problem}. A technician will come to room {room} within two working \
days. Your ticket number is {ticket} and the priority was set to {priority}.
helpdesk log; id {ticket}; prio {priority}; room {room}; reported by {reporter}; device {device}; problem: {problem}
In room {room}, the {device} {problem}. {reporter} reported it and Mr Olsen will fix it. Ticket {ticket}, priority {priority}.
I have assigned {ticket} to our technician Nina. Please note: the reporter is {reporter}, the {device} {problem}, the room is {room}, \
and the priority is {priority}.
The priority of ticket {ticket} has been changed to {priority}. Affected is the {device} in room {room}, which {problem}. The report \
came from {reporter}.
Thanks for the quick note, {reporter}. So the {device} {problem}, and it stands in room {room}, right? I'm filing this as {priority} \
priority, your ticket is {ticket}.
Morning! My {device} {problem}. I sit in room {room}. It's {priority} priority for me, and ticket {ticket} is already open. Thanks, \
{reporter}
Next on today's list is {ticket}, a {priority} priority case. Go to room {room}, ask for {reporter}, who reported it, and check why \
the {device} {problem}.
A {priority} priority problem has come in from {reporter}: the {device} {problem}. Please bring a spare one to room {room} and quote \
ticket {ticket}.
Nobody has come to room {room} yet, writes {reporter}. Ticket {ticket} says that the {device} there {problem}, and its priority is \
{priority}.""")

RECIPE = lines("""
To make {dish} for {servings} people, you need {needs}. It takes {minutes} minutes.
Tonight I'm making {dish}! Ready in {minutes} minutes, enough for {servings} people, and all I need is {needs}.
Recipe: {dish}. Serves: {servings}. Time: {minutes} min. Ingredients: {needs}.
Hi dear, of course you can have my recipe for {dish}. Get {needs}, plan {minutes} minutes in the kitchen, and {servings} people will \
have enough to eat.
Only {minutes} minutes left and {servings} hungry people at the table? With {needs} in the kitchen you can make {dish} just in time.
Shopping for dinner: please get {needs}. I want to make {dish} for the {servings} of us, which takes about {minutes} minutes.
Today on the cooking blog: {dish}, ready after {minutes} minutes. The ingredients are {needs}, and the amounts are enough for \
{servings} people.
cook time {minutes} min; feeds {servings}; dish: {dish}; you need: {needs}
Our chef Bruno recommends {dish} this week. With {needs} you can feed a table of {servings}, and after {minutes} minutes dinner is \
served.
Take {needs}, and in {minutes} minutes you will have {dish} on the table. The recipe serves {servings}.
There will be {servings} of us on Sunday, so I suggest {dish}. Can you bring {needs}? The cooking will take me {minutes} minutes.
Yesterday my sister Clara showed me how to make {dish}. We used {needs}, spent {minutes} minutes in the kitchen and had enough for \
{servings} people.
Feeding {servings} people does not have to be hard. Put {needs} on your shopping list, allow {minutes} minutes, and enjoy homemade \
{dish}.
New in your recipe box: {dish}. Preparation: {minutes} minutes. You will need {needs}. Number of servings: {servings}. Rated 5 stars \
by 210 users.
If you have {needs} at home, why not try {dish}? Making enough for {servings} people takes roughly {minutes} minutes.
Cooking class, lesson 4: we will make {dish} in {minutes} minutes. The recipe card is for {servings} people, and the ingredients on it \
are {needs}.""")

KINDS = (
    replace(order, held=ORDER),
    replace(basket, held=BASKET),
    replace(event, held=EVENT),
    replace(person, held=PERSON),
    replace(ticket, held=TICKET),
    replace(recipe, held=RECIPE),
)
