"""What further requests for the other tools are put together from, written as in `tools_clauses`."""

CLAUSES = """
create_ticket
do: [report/record/log] that our {device} {problem}|[open/make/write/create] a ticket|
tell the [help desk/support/technician] that our {device} {problem}|ask support for help|get my {device} repaired
noun: a ticket|help with my {device}|somebody who repairs the {device}|a repair of the {device}
say: [My/Our] {device} {problem}.|[My/Our] {device} {problem}, [I need help/who can help/please report it/can support help].|
I cannot work because our {device} {problem}.|There is a problem: our {device} {problem}.|We have a {device} that {problem}.
with: because our {device} {problem}|, my {device} {problem}|for the {device}|, it {problem}

close_ticket
do: [close/finish/end/resolve] [ticket/the ticket/case] {code}|mark {code} as [done/solved/closed]|set {code} to closed
noun: {code} closed|the ticket {code} closed|ticket {code} off the list
say: {code} [is/was/has been] [solved/fixed/repaired/done].|Everything in {code} works again.|The problem of {code} is gone.|
There is nothing left to do for {code}.|Nobody needs the ticket {code} any more.
with: , number {code}

create_user
do: [create/make/open/add] [an account/a user/a login]|register {name}|sign up {name}|give {name} an account|add {name} as a user
noun: an account|a login for {name}|a user account for {name}|a new user
say: {name} is new here.|{name} starts today and needs [an account/a login].|{name} wants to log in.|
Our new colleague is {name}, mail {email}|The new user is {name}.
with: for {name}|with the [mail/email/address] {email}|, mail {email}|under {email}|named {name}|with {email}

book_room
do: [book/reserve/get/find] [the room {room}/{room}]|[book/reserve] {room} for [us/our meeting/the team]|keep {room} for us|
[get/find] us a place to meet
noun: [the room /]{room}|a meeting room|{room} for a meeting|a booking of {room}
say: We want to [meet/talk/work] in {room}.|Is {room} free on {date}? Book it.|Our meeting [is/will be] in {room}.|
The team needs {room}.|{room} is where we meet.
with: on {date}|at {time}|from {time}|, {date}|for {date}|in {room}|at {time} on {date}|on {date} at {time}|, {time}

convert_currency
do: [convert/change/exchange/turn] {amount} {source} [to/into] {target}|
[calculate/work out/tell me] how much {amount} {source} [is/are] in {target}|give me {target} for {amount} {source}
noun: {amount} {source} in {target}|the value of {amount} {source} in {target}|{target} for my {amount} {source}
say: It costs {amount} {source}, how much is that in {target}?|I earn {amount} {source}. How many {target} is that?|
{amount} {source} make how many {target}?|The price is {amount} {source} and I pay in {target}.|
My money: {amount} {source}. I want {target}.|How much {target} [is/makes] {amount} {source}?
with: in {target}|to {target}

pay_bill
do: [pay/send/transfer/wire] {amount} to {company}|pay [the bill of /]{company}|send {company} {amount}|settle the bill of {company}|
move {amount} to {company}
noun: {amount} sent to {company}|the bill of {company} paid|a transfer to {company}|a payment of {amount}
say: {company} sent me a bill.|{company} [waits for/wants/asks for] {amount}.|I have to pay {company}.|My debt to {company} is {amount}.|
I bought something from {company}, it costs {amount}.|We owe {amount} to {company}.
with: to {company}|of {amount}|, {amount}|for {company}|, the amount is {amount}

request_money
do: ask {person} for {amount}|[get/claim/collect] {amount} from {person}|remind {person} of the {amount} I lent|
write {person} that I want {amount}|ask {person} to pay
noun: {amount} from {person}|what I lent to {person}|my {amount} from {person}|{person} to pay me {amount}
say: {person} has not paid me.|{person} still owes me {amount}.|I paid {amount} for {person}, ask for it.|{person} got {amount} from me.|
The debt of {person} is {amount}.|I gave {amount} to {person} and want it back.
with: from {person}|, {amount}|for {amount}|of {amount}

split_bill
do: [split/share/divide] {amount} [between/among/by] {people}|split the bill|divide the bill by {people}|
work out what each of {people} pays|share the cost
noun: a fair split|the share of each|the bill of {amount} split|equal parts of {amount}
say: We were {people} at dinner and paid {amount}.|{people} friends ate for {amount}.|What must each of {people} [people/friends] pay?|
The bill says {amount}.|We are {people}, the sum is {amount}.|{people} people, {amount} to pay.
with: among {people} people|between {people} people|for {people}|of {amount}|by {people}|, {people} people|, {amount} in all

get_stock
do: [tell/show/give] me the [price/value/rate] of {symbol}|look up {symbol}|check [the stock/the price of/how] {symbol}|
see how {symbol} is doing
noun: the [price/value/stock price/rate] of {symbol}|the latest on {symbol}|news on the price of {symbol}
say: How is {symbol} doing?|What is {symbol} worth [now/today]?|Has {symbol} gone up or down?|I own {symbol}, what is it worth?|
Is {symbol} expensive [now/today]?|How expensive is {symbol}?
with: of {symbol}

buy_shares
do: [buy/order/get/take] {count} [shares/pieces/stocks] of {symbol}|invest in {symbol}|put {count} {symbol} in my account|
add {symbol} to my shares|buy {symbol}
noun: {count} shares of {symbol}|{count} {symbol}|more of {symbol}|shares of {symbol}
say: I think {symbol} will rise, so buy {count}.|I want to own {symbol}.|{symbol} is cheap, get me {count} shares.|
I want to be the owner of {count} {symbol} shares.
with: , {count} shares|, {count} pieces|with {count} shares|of {symbol}

sell_shares
do: [sell/drop/give away] {count} [shares/pieces/stocks] of {symbol}|get rid of {count} {symbol}|sell {symbol}|
make money of {count} {symbol} shares
noun: {count} shares of {symbol} sold|{symbol} sold|to sell {symbol}
say: I think {symbol} will fall, so sell {count}.|I have too many {symbol}.|{symbol} has to go.|I do not believe in {symbol} any more.|
{count} of my {symbol} should be sold.
with: , {count} shares|, {count} pieces|of {symbol}

add_item
do: [add/put/write] {count} {item} [to/on] [the/my] list|[buy/get/note/remember] {count} {item}|add {item} to my shopping|add {item}
noun: {count} {item} on the list|{count} {item}|{item} on my shopping list
say: We [are out of/have no/need] {item}.|There are no {item} left at home.|I have to buy {count} {item}.|I want to buy {item}.|
Do not let me forget to buy {count} {item}.|{count} {item} are missing at home.
with: , {count} of them|, {count} pieces|, {count}|on my list

remove_item
do: [remove/delete/drop/erase/strike out] [the /]{item}|take [the /]{item} off [the/my] list|
[remove/delete] [the /]{item} from [the/my] [list/shopping list]
noun: no {item} on the list|the {item} off the list|a list without {item}
say: We [have/bought/found] {item} already.|I will not buy {item}.|Nobody wants {item}.|The {item} can [go/be removed].|
There are {item} at home.|Why are {item} on my list? Take them off.
with: from the list

check_price
do: [tell/show/give] me the [price/cost] of [a/the] {item}|look up what a {item} costs|find out the price of the {item}|
check what the {item} costs
noun: the [price/cost] of [a/the] {item}|a price for the {item}
say: Can I afford [a/the] {item}?|How much [do I pay/is it] for a {item}?|What is the {item} [sold for/worth]?|Is the {item} cheap?|
I want to buy a {item}, how much is it?|How much money do I need for the {item}?
with: of the {item}

check_stock
do: [check/find out/tell me/see] whether [there are /you have /]{item} [in stock/left]|look for {item} on the shelf|
see if {city} has {item}|ask the shop for {item}
noun: {item} from the shop|to know if there are {item}|{item} in {city}
say: Are there {item}?|Is the {city} shop out of {item}?|I am in {city} and look for {item}.|Who sells {item} in {city}?|
I am on my way to {city} for {item}.|Do they sell {item} in {city}?|Are {item} sold out in {city}?
with: in {city}|at the shop of {city}|in the {city} store|over in {city}

cancel_order
do: [cancel/stop/drop] [order/the order] {code}|call off [the order /]{code}|take back my order {code}|do not send {code}
noun: order {code} canceled|{code} stopped|an end to order {code}
say: I [ordered {code} by mistake/have changed my mind about {code}].|Order {code} is no longer needed.|
{code} is an order I do not want.|Please do not send order {code}.|I must take back order {code}.
with: because {reason}|since {reason}|as {reason}|: {reason}|, my reason: {reason}|for this reason: {reason}

return_item
do: [return/send back/give back] the {item}|take the {item} back|return the {item} of [order /]{code}|send {code} back
noun: to [return/send back] the {item}|to give back the {item}|what I paid for the {item}|a return of the {item}
say: The {item} [is broken/does not work/is too small/is too big/is the wrong one].|I do not [like/want] the {item} of {code}.|
I ordered a {item} but it is not right.|Order {code} had the wrong {item}.|My {item} is broken.
with: of order {code}|from {code}|, order {code}|in order {code}|that came with {code}|, {code}|of {code}

track_parcel
do: [track/find/follow/locate] [my/the] [parcel/package] {code}|[track/find/locate] {code}|tell me where {code} is|look where {code} is|
check on {code}
noun: the [place/status/position] of {code}|news of my parcel {code}|my parcel {code}
say: Where is {code} [now/today]?|When does {code} [come/arrive/get here]?|I am [still /]waiting for {code}.|
{code} has not [come/arrived] yet.|Is {code} still on its way?|How far has {code} come?|{code} is late.|
My parcel {code} should be here by now.
with: with the number {code}

order_food
do: [order/get/bring/send] [us /me /]{count} {dish}|order {dish}|have {dish} delivered|bring {dish} to {address}|
send {count} [plates/portions] of {dish}
noun: {dish}|{count} [plates/portions] of {dish}|{dish} for {count}|some {dish}
say: We are hungry for {dish}.|{count} people here want {dish}.|There is nothing to eat at {address}.|
We live at {address} and want {dish}.|I am at {address} and hungry.|Dinner is {dish}, {count} portions.
with: to {address}|for {count}|, {count} portions|, {address}|at {address}|, {count} times|for {count} people|delivered to {address}

get_weather
do: [tell/show/give] me the [weather/forecast]|[check/look up] the [weather/forecast]|find out if it [rains/snows/is sunny]|
see how the weather is
noun: the [weather/forecast/weather forecast]|the temperature|a forecast
say: [Is it/Will it be] [sunny/warm/cold/windy/dry/wet] in {city} on {day}?|[Does it/Will it] [rain/snow] in {city} on {day}?|
On {day} I am in {city}, [what should I wear/will it rain/do I need boots/do I need a jacket].|
Should I take [a coat/an umbrella/boots] to {city} on {day}?|We have a picnic in {city} on {day}. Will it stay dry?|
How [cold/warm/hot] is {city} on {day}?|Is an umbrella needed in {city} on {day}?
with: in {city}|for {city}|on {day}|for {day}|of {day}|, {city}|, {day}

find_route
do: [show/tell/find/give] me the [way/route/road]|[guide/lead/bring] me to {end}|plan a [route/trip]|get me from {start} to {end}|
find the way from {start} to {end}
noun: the [way/route/road/directions]|a route to {end}|a map of the way|directions to {end}
say: How do I [get/drive/go] from {start} to {end}?|I am in {start} and [must/want to] go to {end}.|Which [way/road] goes to {end}?|
I leave {start} by car and want to reach {end}.|We live in {start} and visit {end}.|How far is {end} from {start}?|
My way begins in {start} and ends in {end}.|To {end} I want to go, and I am in {start}.
with: from {start}|to {end}|from {start} to {end}|to {end} from {start}|starting in {start}|, {start} to {end}

book_flight
do: [book/get/find/reserve] [me /us /]a [flight/plane/seat on a plane]|fly me to {destination}|book a flight to {destination}|
get me a plane ticket
noun: a [flight/plane/plane ticket]|a flight to {destination}|a seat on a plane|a flight from {origin}
say: I [fly/want to fly/must fly] to {destination}.|I have to be in {destination}, by plane.|We fly from {origin} to {destination}.|
My plane should leave {origin} on {date}.|I leave {origin} by plane and go to {destination}.
with: from {origin}|to {destination}|on {date}|, {date}|from {origin} to {destination}|leaving {origin}|for {date}|
to {destination} from {origin}

find_train
do: [find/show/look up/search] [me /us /][a train/trains/the next train]|look for a train|find a train to {destination}|check the trains
noun: a train|a train to {destination}|the trains from {origin}|a connection by rail
say: When does a train [go/leave/run] to {destination}?|I want to [go/travel] to {destination} by train.|
Which train [goes/takes me] from {origin} to {destination}?|I take the train to {destination}.|How do I get to {destination} by train?|
I am in {origin} and need a train to {destination}.|Is there a train between {origin} and {destination}?
with: from {origin}|to {destination}|on {day}|, {day}|from {origin} to {destination}|leaving {origin}|for {day}|starting in {origin}

book_hotel
do: [book/get/find/reserve] [me /us /]a [hotel/room/bed/hotel room]|find a place to sleep|book {nights} nights|get me a bed in {city}
noun: a [hotel/room/bed/hotel room]|a place to sleep|{nights} nights in a hotel|a hotel in {city}
say: I [stay/sleep] in {city} for {nights} nights.|We come to {city} and stay {nights} nights.|Where can I sleep in {city}?|
I arrive in {city} on {date}.|We spend {nights} nights in {city}.|We will be in {city} from {date} on.
with: in {city}|for {nights} nights|from {date}|, {nights} nights|from {date} on|starting on {date}|, {city}|, arriving on {date}

rent_car
do: [rent/hire/book/get] [me /us /]a [car/rental car]|find a car to rent|rent a car in {city}|get us some wheels
noun: a [car/rental car/rented car]|a car in {city}|a car for {days} days|wheels
say: We need a car in {city}.|I want to drive a car in {city}.|I have no car in {city}.|On {date} I come to {city} and need a car.|
A car would be good for my {days} days in {city}.|I drive in {city} for {days} days.
with: in {city}|for {days} days|from {date}|on {date}|, {days} days|from {date} on|starting on {date}|, {city}

cancel_booking
do: [cancel/drop/undo] [booking/trip/the booking/my booking/the trip] {code}|call off my trip {code}|cancel what I booked under {code}
noun: {code} canceled|my trip {code} canceled|the booking {code} undone
say: The trip {code} [is off/will not happen].|I [do not travel/cannot go], so {code} is not needed.|We do not go on the trip {code}.|
I am ill and must give up {code}.|My booking {code} was a mistake.|I no longer need the booking {code}.
with: , number {code}

order_taxi
do: [order/call/get/send/book] [me /us /]a [taxi/cab]|send a [taxi/cab/car with a driver] to {address}|pick me up|let a taxi come
noun: a [taxi/cab]|a taxi to {address}|a cab at {address}|a ride
say: I stand at {address} and need a ride.|A taxi should come to {address}.|I must leave {address} at {time}, by taxi.|
My train goes soon, a cab should come to {address}.|Who drives me away from {address}?
with: at {time}|to {address}|for {time}|at {address}|from {address}|, {time}|, {address}|in front of {address}

book_table
do: [book/reserve/get/find] [us /me /]a table|book {place}|reserve seats at {place}|ask {place} for a table
noun: a table|a table at {place}|a table for {people}|seats at {place}
say: We [want to/will] eat at {place}.|{people} of us [have dinner/have lunch/eat] at {place}.|I invite {people} people to {place}.|
We are {people} and hungry, {place} is our choice.|Is there a table at {place}?
with: at {place}|for {people}|at {time}|for {people} people|, {time}|, {people} people|in {place}|for {time}

buy_tickets
do: [buy/get/order/reserve/book] [us /me /]{count} [tickets/seats]|get tickets for {film}|book {film}|take us to the cinema
noun: {count} [tickets/seats]|tickets for {film}|{count} tickets to {film}|seats in the cinema
say: We are {count} and want to see {film}.|I want to take {count} people to {film}.|We go to the cinema to see {film}.|
{film} is the film we want to see.|On {day} the cinema shows {film}.|{count} people want to watch {film}.
with: for {film}|on {day}|for {day}|to {film}|, {day}|, {count} seats|for {count}|, {film}

find_restaurant
do: [find/show/look for/search] [me /us /]a [restaurant/place/cafe] [with/for/that has] {dish}|tell me where to eat {dish}|find {dish}|
lead me to a place with {dish}
noun: a [restaurant/place/cafe] [with/for/that has] {dish}|{dish}|somewhere to eat {dish}|a good plate of {dish}
say: Who [cooks/makes/sells/serves] {dish} in {city}?|I am in {city} and [hungry for/dream of/feel like] {dish}.|
Is there {dish} in {city}?|Which place has {dish} in {city}?|I have never eaten {dish} in {city}.|
We are hungry and want {dish} in {city}.|{city} is where I want to eat {dish}.|Does {city} have a place with {dish}?
with: in {city}|, {city}|around {city}|somewhere in {city}|near {city}|here in {city}

find_recipe
do: [find/show/give/look up] [me /us /][a/the] recipe for {dish}|[tell/show] me how to [cook/make] {dish}|help me cook {dish}|
explain how {dish} is made
noun: a recipe for {dish}|the recipe of {dish}|a way to cook {dish}|instructions for {dish}
say: How is {dish} [made/cooked]?|I want to cook {dish}.|What goes into {dish}?|I invited {people} people and make {dish}.|
{people} guests come and want {dish}.|We are {people} and want to cook {dish}.|I have never made {dish}.
with: for {people}|for {people} people|, {people} servings|, {people} portions|that feeds {people}

find_course
do: [find/show/look for/search] [me /][a course/lessons/classes/a teacher]|find a course in {title}|teach me {title}|
find somebody who teaches {title}
noun: [a course/lessons/classes] in {title}|a {title} course|a teacher of {title}|{title} lessons
say: I want to [learn/try/get better at] {title}.|Where can I learn {title}?|Who teaches {title}?|
I live in {city} and want to learn {title}.|My new hobby is {title}.|Is there a {title} course in {city}?|I need a teacher for {title}.
with: in {city}|, {city}|around {city}|somewhere in {city}|near {city}|here in {city}

find_concert
do: [find/show/look for/search] [me /us /]a {event}|tell me about any {event}|look what is on in {city}|check if there is a {event}
noun: a {event}|a {event} in {city}|something like a {event}|a {event} on {day}
say: Is there [a/any] {event}?|I [want to see/feel like/would enjoy] a {event}.|We are in {city} on {day} and look for a {event}.|
Does {city} have a {event}?|On {day} I am free for a {event}.|What about a {event} in {city}?|Where can I go to a {event}?
with: in {city}|on {day}|, {day}|for {day}|, {city}|around {city}|this {day}

get_score
do: [tell/show/give] me [the score/the result/how {team} played]|look up the [score/result] of {team}|check how {team} played|
find out if {team} won
noun: the [score/result] of {team}|the latest score|the result of the game|news of {team}
say: [Did/Has] {team} [win/lose/won/lost]?|How did {team} play?|I did not see {team} play.|{team} played on {day}, who won?|
Was it a good [game/match/day] for {team}?|How many goals did {team} [get/score/make]?|Were {team} the winners?|
Against whom did {team} play, and who won?|I could not watch {team}.
with: on {day}|of {day}|, {day}|for {team}|last {day}|this {day}|in the game of {day}

search_books
do: [find/look for/search/get] [me /][the book /]{title}|look for a book by {author}|check if you have {title}|
see if {title} is on the shelf
noun: [the book /]{title}|a book by {author}|{title} by {author}|something by {author}
say: Do you have [the book /]{title}?|{author} is the author of {title}.|I want to read {title}.|The book is called {title}.|
Is {title} on your shelf?|My teacher told me to read {title}.|{author} has written {title}.
with: by {author}|from {author}|, author {author}|written by {author}|, a book of {author}|, title {title}|called {title}

lend_book
do: [renew/extend/keep] [the book /]{title}|let me keep {title}|give me more time for {title}|lend me {title}|extend the loan of {title}
noun: {title} [for longer/for more days]|more time for {title}|{days} more days with {title}|{days} days more
say: I am not done with {title}.|{title} is a long book.|I still read {title}.|I cannot bring back {title} yet.|
I need {days} more days to read {title}.|{title} has too many pages for one week.
with: for {days} days|for {days} more days|, {days} days|by {days} days|for another {days} days|for {title}

translate
do: [translate/put/turn] "{text}" [to/into] {language}|say "{text}" in {language}|write "{text}" in {language}|
tell me the {language} word for "{text}"
noun: "{text}" in {language}|the {language} for "{text}"|a translation of "{text}"|a {language} version of "{text}"
say: What do they call "{text}" in {language}?|How is "{text}" said in {language}?|
My friend only knows {language}, and I want to say "{text}".|I want to write "{text}" but in {language}.|
I do not know the {language} for "{text}".|Which {language} words mean "{text}"?
with: to {language}|into {language}|in {language}

define_word
do: [define/explain] [the word /]{word}|tell me what {word} [means/is]|look up {word}|[find/give/tell] me the meaning of {word}
noun: the [meaning/definition] of {word}|a definition of {word}|to know what {word} means
say: What is [a/the meaning of/meant with] {word}?|What do you understand by {word}?|I do not understand {word}.|
They said {word}. What is that?|Somebody called me {word}, what does it mean?|Which meaning does {word} have?|
The word {word} is new to me.
with: of {word}

find_rhyme
do: [find/give/tell] me [a rhyme/rhymes/something that rhymes] [for/with/on] {word}|rhyme on {word}|find a word that rhymes with {word}|
help me rhyme {word}
noun: a rhyme [for/on/with] {word}|a word that rhymes with {word}|rhymes [for/on] {word}|a word that sounds like {word}
say: Which words rhyme with {word}?|I write a song and need to rhyme {word}.|What sounds like {word}?|
My song has the word {word} and needs a rhyme.|Is there a rhyme for {word}?|The last word of my poem is {word}. What rhymes?|
What has the same ending as {word}?|In my verse stands {word}, which word sounds like it?
with: for {word}

convert_units
do: [convert/change/turn] {value} {source} [to/into] {target}|tell me how many {target} {value} {source} are|
give {value} {source} in {target}|write {value} {source} in {target}
noun: {value} {source} in {target}|the length of {value} {source} in {target}|{value} {source} changed into {target}
say: It is {value} {source} long, what is that in {target}?|How many {target} make {value} {source}?|
The table is {value} {source} wide, and I think in {target}.|I only know {target}. How much is {value} {source}?|
My map says {value} {source}, I want {target}.|The way is {value} {source}. In {target}?
with: in {target}|to {target}

random_number
do: [pick/choose/draw/give me/roll/throw] a [random /]number|[pick/choose] something between {low} and {high}|
roll a dice from {low} to {high}|think of a number
noun: a random number|a number between {low} and {high}|any number|some number from {low} to {high}
say: Which number should I take, from {low} to {high}?|We play a game and need a number between {low} and {high}.|
My number should be over {low} but under {high}.|Surprise me with a number from {low} to {high}.
with: between {low} and {high}|from {low} to {high}|, {low} to {high}|in the range from {low} to {high}|
of at least {low} and at most {high}

percent_of
do: [work out/calculate/tell me/take] {percent} percent of {value}|take {percent} percent from {value}|find {percent} percent of {value}
noun: {percent} percent of {value}|a share of {percent} percent|the part that is {percent} percent of {value}
say: How many are {percent} percent of {value}?|{value} is all I have, how much is {percent} percent?|
I get {percent} percent of {value}.|Of {value} people, {percent} percent came. How many?|
The tax is {percent} percent and the sum is {value}.|My share is {percent} percent of {value}.
with: of {value}|out of {value}

count_words
do: count the words [of/in] "{text}"|[count/tell me] how many words "{text}" has|find the number of words in "{text}"
noun: the number of words in "{text}"|a word count of "{text}"|the length of "{text}" in words
say: How long is "{text}" in words?|How many words does "{text}" have?|I wrote "{text}" and want to know how many words there are.|
My text is "{text}". Count it.|"{text}": are these many words?
with: in "{text}"

search_people
do: [find/get/search/look for] [me /us /]a [good /]{job}|tell me who is a {job}|look for somebody who works as a {job}|find a {job}
noun: a [good /]{job}|somebody who works as a {job}|the help of a {job}|a {job}
say: Who works as a {job}?|Is there a {job}?|We look for a {job}.|Only a {job} can help me.|I have a problem that a {job} could solve.|
Are there any good people who work as a {job}?|Does anybody know a {job}?
with: in {city}|, {city}|around {city}|from {city}|near {city}|who lives in {city}|here in {city}
"""
