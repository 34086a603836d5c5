"""Tools of money, shops, travel and free time, by theme, written as in `tools_catalogue`."""

MONEY = """
convert_currency/exchange(amount/value:decimal, source/from:currency, target/to:currency): convert money
Convert {amount} {source} to {target}.
How much [is/are] {amount} {source} in {target}?
[Change/Exchange] {amount} {source} [into/to/for] {target}.
I have {amount} {source}. [What is that in/How much is it in] {target}?
What [do I get/would I get] for {amount} {source} in {target}?
I [need/want] {target} and I [have/own] {amount} {source}.
{amount} {source} [as/in/to] {target}[, please/]
held: What do I get in {target} for {amount} {source}?
held: How many {target} would {amount} {source} bring me?

pay_bill/transfer(company/to/receiver:company, amount/sum:decimal): pay money
Pay {amount} to {company}.
[Transfer/Send] {amount} to {company}.
Send {company} {amount} from my account.
[The bill/A bill] of {company} is {amount}, [pay it/please pay].
{company} [wants/gets/should receive] {amount}[, pay it/].
I [owe {company}/must pay {company}] {amount}[, transfer the money/, pay it].
Bill: {company}, {amount}
From my account, [move/transfer] {amount} to {company}.
Receiver: {company}. [Sum/Amount]: {amount}. [Settle it/Settle this bill].
held: {company} should get {amount} from me.
held: Settle what I owe: {amount}, and the receiver is {company}.

request_money/ask_for_money(person/from:person, amount/sum:decimal): ask somebody for money
Ask {person} for {amount}.
[Request/Demand] {amount} from {person}.
{person} owes me {amount}[, ask for it/, get it back].
{person} [must/has to/should] pay me {amount}.
I want {amount} [back from/from] {person}.
[I lent {person}/I gave {person}] {amount}, ask for the money.
{person} [borrowed/took] {amount}[, be kind but ask for it/, I want it back].
held: Get my {amount} back, it was {person} who borrowed it.
held: It would be kind of {person} to pay back {amount}.

split_bill/share_cost(amount/total:decimal, people/persons:count): share a bill
Split {amount} [between/among] {people} people.
[Share/Divide] the bill of {amount} [among/by] {people} [people/persons].
The bill [is/was] {amount} and we are {people} people. [What does each pay/Split it].
{people} of us [share/split] {amount}.
How much does each [one/person] pay, if {people} people share {amount}?
Bill {amount}, {people} people, split it.
Make [fair/equal] shares: {people} people, the sum is {amount}.
held: There are {people} of us and {amount} to pay, so what is a fair share?
held: We divide {amount}; the number of persons is {people}.

get_stock/stock_price(symbol/ticker:ticker): stock price
What is the [price/value] of {symbol}?
How does {symbol} [stand/do today]?
[Stock price/Share price] of {symbol}.
[Show/Give/Tell] me the [stock/share] price of {symbol}.
[Is {symbol} up or down/Did {symbol} go up/Did {symbol} fall] today?
How much [is one share/is a share] of {symbol}?
[Price/Value] of {symbol}, please.
held: What does a share of {symbol} cost?
held: At what price does {symbol} stand today?

buy_shares/buy_stock(symbol/ticker:ticker, count/shares:count): buy shares
Buy {count} shares of {symbol}.
[Get/Buy] me {count} {symbol} shares.
I want {count} shares of {symbol}[ in my account/].
[Order/Add] {count} shares of {symbol}[ for my account/].
Invest in {symbol}, {count} [shares/pieces].
{symbol}: buy {count}
held: My account should hold {count} more of {symbol}, please invest.
held: Let us own {symbol}, an order of {count} shares.

sell_shares/sell_stock(symbol/ticker:ticker, count/shares:count): sell shares
Sell {count} shares of {symbol}.
[Sell/Get rid of] {count} of my {symbol} shares.
I [do not want/no longer want] {count} shares of {symbol}, sell them.
{count} [of my shares/shares] of {symbol} [can be sold/should be sold/must go].
[Turn/Change] {count} {symbol} shares into money.
{symbol}: sell {count}
held: I need money, so {count} of {symbol} have to be sold.
held: Away with {symbol}! {count} shares of it must go.
"""

SHOPPING = """
add_item/add_to_list(item/product/name:goods, count/quantity/number:count): add to the shopping list
Add {count} {item} to [the list/my shopping list].
I need {count} {item}, put them on the list.
[Put/Write] {count} {item} on my shopping list.
[We also need/I am out of these:/The list needs] {count} {item}.
[Shopping list/On the list]: {count} {item}, please.
{count} {item} [should be/must be/are missing] on the list[, add them/].
[Note/Add to the list]: {item}, {count} [pieces/of them].
held: The list should also have {count} {item}.
held: When I go shopping I want to bring home {count} {item}, note that.

remove_item/remove_from_list(item/product/name:goods): remove from the shopping list
[Remove/Delete/Take] the {item} from [the list/my shopping list].
I [do not need/no longer need] {item}, [take them off/remove them from] the list.
[We have/I have] enough {item}, [remove them/take them off the list/strike them out]. [We can do/We live] without more.
Take {item} off the [list/shopping list].
No {item} [today/this time/any more], [delete them from the list/take them off].
Off the list: {item}
held: Strike {item} from what I want to buy.
held: The list can do without {item}.

check_price/get_price(item/product/article:item): price of goods
How [much is/expensive is] the {item}?
What does [a {item}/the {item}] cost?
[Price/The price] of the {item}[, please/]?
[Tell/Show] me [the price of/what I pay for] the {item}.
[What do you want/How much do you want] for the {item}?
[Look up/Check] the price of [the/a] {item}.
I [want/would like] a {item}. [What is the price/How many dollars is that/How many euros is it]?
held: Tell me what I would pay for a {item}.
held: Is the {item} expensive? How many dollars?

check_stock/in_stock(item/product/article:goods, city/place/shop:city): whether a shop has goods
[Do you have/Have you got] {item} in [the shop in /]{city}?
Are there [any {item}/{item}] [left/in stock] in {city}?
[Check/Tell me] if {item} are in stock in {city}.
[Can I buy/Can I get] {item} in {city}?
Does the {city} shop [have/sell/still have] {item}?
Stock of {item} in {city}?
How many {item} [are left/do you have] in {city}?
[Before/If] I [drive/go] to {city}, tell me whether {item} are [in your store/left on your shelf].
held: Before I come to {city}: are {item} still left?
held: In your shop in {city}, could one find {item}?

cancel_order/stop_order(code/order/order_id:code, reason/why:note): cancel an order
Cancel order {code} because {reason}.
Please stop order {code}, since {reason}.
Order {code} must be [canceled/stopped]: {reason}
[I do not want/I do not need] order {code} any more. [Reason/The reason is]: {reason}.
[Cancel/Stop] {code}[, please/]. [Reason/Why]: {reason}.
As {reason}, [cancel/stop] order {code}.
{reason}, so [I no longer want/please cancel] order {code}.
held: I no longer want {code}, as {reason}.
held: The reason why {code} should not be sent is that {reason}.

return_item/send_back(code/order/order_id:code, item/product:item): return goods
[Return/Send back] the {item} of order {code}.
I [want/would like] to [return/send back] the {item} from {code}.
The {item} [of/in/from] order {code} [is broken/does not fit/is not what I wanted], I [return it/send it back].
Return: order {code}, {item}
[Take/Can you take] back the {item} of {code}?
Order {code} came with a [broken/wrong] {item}, it goes back.
The {item} that [belongs to/was in] order {code} is not [right/new], but [broken/used]. [Return it/Send it back].
held: Something is wrong with the {item}, please take it back, it belongs to {code}.
held: A {item} came with {code} but does not fit me; back with it.

track_parcel/find_parcel(code/parcel/number:code): where a parcel is
Where is [parcel/my parcel/the package] {code}?
Track [{code}/parcel {code}].
What happened to my parcel {code}?
[When will/How soon will] {code} [arrive/be delivered/come]? [Is it far/Has it been sent]?
I [wait/am waiting] for {code}, [where is it/is it on the way]?
[Is/Was] {code} [already sent/delivered/on its way]?
Parcel {code}: where?
held: Has {code} been delivered already?
held: My package should arrive soon, it is {code}. How far is it?

order_food/deliver_food(dish/meal/food:dish, count/portions:count, address/street:street): order a meal
[Order/Get] {count} [portions of/times] {dish} to {address}.
[Bring/I want you to bring/It should be brought, please:] {count} [portions of/times] {dish} to {address}.
We are hungry: {dish}, {count} portions, {address}.
[I want/We would like] {dish} for {count}, the address is {address}.
{address}: {count} portions of {dish}[, please/].
Deliver {dish} to {address}, {count} [portions/times].
We live at {address} and want {count} portions of {dish}.
held: At {address} there are {count} hungry people who want {dish}.
held: Could {dish} be brought to {address}? Portions: {count}.
"""

TRAVEL = """
get_weather/weather(city/place/location:city, day/when:day): weather forecast
What is the weather [in {city} on {day}/on {day} in {city}]?
Will it [rain/snow/be sunny] in {city} on {day}?
How [warm/cold] will {city} be on {day}?
[Weather/Forecast] for {city}, {day}[, please/].
[Should I bring/Do I pack] [an umbrella/a coat/sunglasses] on {day}? I am in {city}.
On {day} I am in {city}. [What will the weather be/Will it rain/Do I need a coat]?
{day} in {city}: [sun or rain/warm or cold]?
held: Do I need an umbrella in {city} this {day}?
held: I travel to {city}; should I pack a coat for {day}?

find_route/get_route(start/origin/from:city, end/destination/to:city): directions
How do I [get/drive/go] to {end} from {start}?
Route from {start} to {end}[, please/].
Show the way [from {start} to {end}/to {end} from {start}].
I [am in/start in] {start} and [want/have] to [go to/be in] {end}. [Which way/What is the route]?
[Which road/Which way] [leads/goes] from {start} to {end}?
[Directions/The way] to {end}, [I start in/starting in] {start}.
Find the [best/shortest] way to {end}, [we leave/I leave] from {start}.
held: I drive from {start} to {end}, which way?
held: {end} is where I have to be; which road leads out of {start}?

book_flight/buy_flight(origin/from/start:city, destination/to:city, date/day:date): book a flight
Book a flight from {origin} to {destination} on {date}.
I [need/want] to fly from {origin} to {destination} on {date}.
[Flight please/Flight]: {origin} to {destination}, {date}.
On {date} I [fly/want to fly] to {destination}, [from {origin}/my airport is {origin}].
[By air: find/Get/Find] me a plane from {origin} to {destination}, [date/on]: {date}.
[A plane/One seat in a plane] for {destination}, [leaving from/start in] {origin}, {date}.
Fly me to {destination} on {date}. I [start/leave] from {origin}.
held: Get me on a plane to {destination} from {origin}, {date}.
held: It is {date} when I leave {origin} by air, the flight should end in {destination}.

find_train/train_times(origin/from/start:city, destination/to:city, day/date:day): look up trains
[Which trains go/When is a train] from {origin} to {destination} on {day}?
[Find/Look up] a train from {origin} to {destination}, {day}.
Trains on {day}: {origin} to {destination}.
I [go/travel] by train to {destination} on {day}, [starting in/I board it in/I get on in] {origin}.
On {day} I [need/want] a train to {destination} [that leaves from/from] {origin}.
[Train/Rail] from {origin} to {destination}, {day}[, please/].
held: By rail to {destination}! The day is {day} and I board in {origin}.
held: When on {day} do trains leave {origin}, if I want to reach {destination}?

book_hotel/reserve_hotel(city/place:city, nights/days:count, date/arrival/from_date:date): book a room in a hotel
Book a hotel in {city} for {nights} nights [from/starting] {date}.
I need a [room/hotel] in {city}, {nights} nights, starting {date}.
Find a hotel in {city}: {nights} nights from {date}.
[We arrive/I arrive] in {city} on {date} and stay {nights} nights. [Get us a hotel/Book a hotel].
[Hotel needed/Hotel], {city}, [arrival/from] {date}, {nights} nights.
From {date} [I am/we are] in {city} for {nights} nights, [we need a hotel/book a hotel].
For {nights} nights [from/as of] {date}, [a room/a bed] in {city}.
held: I stay {nights} nights in {city} as of {date}, get me a room.
held: A bed is needed for {nights} nights; arrival on {date}, and the town is {city}.

rent_car/hire_car(city/place:city, date/start_date:date, days/length:count): rent a car
Rent a car in {city} for {days} days from {date}.
I need a car in {city} for {days} days, starting {date}.
[We want/I want] to [rent/hire] a car on {date} in {city}, {days} days.
Car for {days} days, {city}, from {date}.
From {date} I need [a car/a rented car] [in/around/in and around] {city} for {days} days.
[Hire/Get] me a car: {city}, {date}, {days} days.
held: For {days} days I want to drive around {city} in a rented car, first day {date}.
held: A car should wait for me in {city} on {date}, which I hire for {days} days.

cancel_booking/cancel_trip(code/booking/reference:code): cancel a trip
Cancel [booking/my booking/the booking] {code}.
I [cannot/will not] travel, cancel {code}.
[Booking/Trip] {code} [must be/has to be] canceled.
We [stay at home/are ill], please cancel the [trip/booking] {code}.
Cancel trip: {code}
I [booked/have] {code} and do not [need/want] it [any more/now]. [Undo it/Cancel it/Undo this booking].
held: As I stay at home, {code} is a trip I do not need.
held: Undo what I booked as {code}, please cancel.

order_taxi/call_taxi(address/street/from:street, time/pickup_time:time): order a taxi
Send a [taxi/cab] to {address} at {time}.
I need a [cab/taxi] at {address}, {time}.
Taxi please: {address}, {time}.
[Pick me up/Pick us up] at {time}, {address}, [by taxi/I need a cab].
At {time} [a taxi/a cab] should [wait/be] at {address}.
[I am/We are] [at/in front of] {address} and [need/want] a [taxi/cab] at {time}.
[Order/Call/Get] a [taxi/cab] for {time} to {address}.
held: Pick me up by taxi from {address} at {time}.
held: It is {time} when the cab should stop in front of {address}.
"""

LEISURE = """
book_table/reserve_table(place/restaurant/venue:venue, people/guests/persons:count, time/at:time): reserve a table
Book a table for {people} at {place} at {time}.
We need a table at {place}, {people} people, {time}.
Reserve {place} for {people} people at {time}.
At {time} [we eat/we want to eat] at {place}, {people} [of us/people][. Book a table/].
Table for {people}, {time}, [restaurant/at] {place}.
[Dinner/Lunch] at {place} [at {time} for {people}/for {people} at {time}][, please/].
There are {people} of us [who want to eat/for dinner] at {place}, {time}[, get a table/].
held: Dinner for {people} at {place}, say {time}.
held: Could {place} keep a table? We are {people} and come at {time}.

buy_tickets/get_tickets(film/title/movie:title, count/tickets/seats:count, day/date:day): cinema tickets
Buy {count} tickets for {film} on {day}.
Get {count} [tickets to/seats for] {film}, {day}.
We want to [see/watch] {film} on {day}, {count} tickets.
On {day} [we go to/we watch] {film}, [buy/get] {count} tickets.
{film}, {day}, {count} [seats/tickets][, please/].
[Cinema/Film]: {film}. [Day/When]: {day}. Tickets: {count}
Reserve {count} seats for {film} on {day}.
held: {count} of us will watch {film} on {day}, get the seats.
held: It is cinema day on {day}, with {count} seats for {film}.

find_restaurant/search_restaurants(dish/food/meal:dish, city/place/town:city): where to eat
Find a restaurant with {dish} in {city}.
Where [can I/do they/can we] eat {dish} in {city}?
I am [in {city}/in {city} now] and [want/would like] to eat {dish}.
[Who/Which place] in {city} [makes/serves/has] good {dish}?
Restaurants for {dish} in {city}[, please/].
[I want/We want] {dish} tonight, we are in {city}.
held: {city} must have a place that serves {dish}, show me one.
held: I am hungry for {dish}; where in {city} should I go tonight?

find_recipe/get_recipe(dish/name/meal:dish, people/servings:count): look up a recipe
Find a recipe for {dish} for {people} people.
How do [I/we] [cook/make] {dish} for {people} people?
Recipe: {dish}, {people} people.
[I want/I have] to [cook/make] {dish}, we are {people} people.
[Show/Give/Teach] me [the/a] recipe for {dish}, {people} [servings/portions].
{people} people [eat/come to eat] here and [I make/I cook] {dish}. [Which recipe do I need/Tell me the recipe].
What do I need for {dish}? It should [feed/be enough for] {people} people.
held: I have to feed {people} people with {dish}, what is the recipe?
held: Teach me to cook {dish}, {people} servings of it.

find_course/search_courses(title/subject/topic:hobby, city/place/town:city): search courses
Find a course on {title} in {city}.
Where in {city} can I learn {title}?
[Courses/Lessons/Classes] in {title}, {city}.
I [want/would like] to learn {title} in {city}.
[Who/Which school] teaches {title} in {city}? [I need somebody to teach me/Somebody must].
I [live/am] in {city} and [look for/want/need] lessons in {title}.
In or near {city}, [is there a course/are there lessons] in {title}?
held: I want lessons in {title} near {city}.
held: Somebody near {city} should teach me {title}.

find_concert/search_events(event/kind/type:event, city/place/town:city, day/date:day): what is going on
[Is there/Find] a {event} in {city} on {day}?
[Look for/Search for] a {event} on {day} in {city}.
I [want/would like] to go to a {event} in {city} on {day}.
{event} in {city}, {day}: [what is there/anything going on]?
On {day} we are in {city}. [Is there a/Where is a] {event}?
Which {event} can [I/we] [visit/see] in {city} on {day}?
held: Anything like a {event} going on in {city}? We have time on {day}.
held: {day} would be a good day to visit a {event}, if {city} has one.

get_score/match_result(team/club:team, day/date:day): result of a match
[How did/What did] {team} [play/do] on {day}?
[Score/Result] of {team} on {day}[, please/].
Did {team} [win/lose] on {day}?
[What was/Tell me] the [score/result] of the {team} [match/game] on {day}.
On {day} {team} had a [match/game]. [Who won/What was the score/I missed it/What was their result]?
{team}, {day}: who won?
held: Could {team} win their game of {day}?
held: I missed the match of {team} on {day}, so what was the result?

search_books/find_book(title/book/name:title, author/writer:person): search the library
Find the book {title} by {author}.
Do you have {title} [by/of] {author}?
Search for {title}, author {author}.
[I want/I would like] to read {title}, [it was written by/the writer is] {author}.
[Is there/Does your library have] a book by {author} [called/with the title] {title}?
{author} wrote {title}. [Do you have it/Is it in the library]?
Book: {title}. [Author/Writer]: {author}
held: I am after {title}, written by {author}.
held: Among what {author} wrote there is {title}, is it in your library?

lend_book/renew_book(title/book:title, days/length:count): keep a library book for longer
[Renew/Keep] {title} for {days} [days/more days].
I [want/need] [to keep/to have] the book {title} {days} days longer.
[Lend me/Let me have] {title} for {days} days.
I [have not finished/did not finish/am not yet through with] {title}, give me {days} [more/extra] days.
Renew: {title}, {days} days
For {days} days more, I [need/keep] {title}.
held: {days} extra days would help me to finish {title}.
held: My book {title} should not go back yet, make it {days} days longer.
"""
