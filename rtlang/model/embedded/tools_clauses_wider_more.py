"""What is in `tools_clauses_wider` for the other tools."""

CLAUSES = """
return_item
do: [swap/hand back/mail back] the {item}|get rid of the {item}|free me of the {item}
noun: a label to send the {item} back|the {item} gone|another {item}
say: The {item} fell apart.|The {item} is not what I saw in the shop.|My wife laughed at the {item}.|
I opened the box and the {item} was wrong.
with: , the order being {code}|, bought under {code}|, which I got with {code}|, see {code}

track_parcel
do: [hunt/chase] the parcel {code}|see if parcel {code} moves|ask the driver about {code}
noun: a sign of my parcel {code}|a map with parcel {code} on it|the way of my parcel {code}
say: The driver should have brought {code}.|I stay at home for the parcel {code}.|
Is there a problem with the parcel {code}?|
Did somebody else get {code}?
with: , parcel {code}

order_food
do: [feed us/make us happy] with {dish}|let the cook make {count} {dish}|fetch {dish}
noun: {dish} at the door|a hot {dish}|{count} times {dish}
say: My fridge is empty and I love {dish}.|Nobody wants to cook, so {dish} it is.|We are {count} with an empty stomach.|
The driver finds us at {address}.
with: , and that {count} times|, portions: {count}|, brought to {address}|, the door is at {address}|
, number of plates: {count}

get_weather
do: [ask/see] if it stays dry|look at the sky of {city}|warn me of rain
noun: the sky over {city}|the degrees in {city}|a look at the clouds
say: I want to wash my car in {city} on {day}.|Can the children swim in {city} on {day}?|
On {day} I marry in {city}, and rain would be bad.|
We hike near {city} on {day}, and I hate rain.|Is {day} a day for the beach in {city}?
with: , the town being {city}|, the day being {day}|when it is {day}|over {city}

find_route
do: [lead/send] us out of {start}|work out how we reach {end}|draw the way to {end}
noun: the shortest way|a good road|the turns on the way to {end}
say: The car stands in {start}.|My aunt waits in {end}.|We are lost in {start}.|How long is the drive to {end}?
with: , start: {start}|, end: {end}|, setting out in {start}|, with {end} as the goal|, and we are in {start}|
, because we have to be in {end}

book_flight
do: [put/take] me into the air|fly us out of {origin}|bring me through the air to {destination}
noun: wings to {destination}|one seat over the clouds|the plane out of {origin}
say: My friends wait in {destination}.|The car is too slow, so I take a plane.|
I live in {origin} and want to see {destination}.|
On {date} the holidays begin.
with: , up in {origin}|, down in {destination}|, takeoff in {origin}|, landing in {destination}|, the day being {date}|
, day {date}

find_train
do: [see/ask] which trains run|put me on a train|help me get to {destination} on the rails
noun: a seat in a train|rails to {destination}|the departures of {origin}
say: I do not drive, so I take the train.|I stand on the platform in {origin}.|My boss expects me in {destination}.|
The rails lead to {destination}.
with: , the start being {origin}|, the end being {destination}|, getting on in {origin}|, getting off in {destination}|
, the day being {day}

book_hotel
do: [put/keep] me under a roof in {city}|let me sleep in {city}|see to my nights in {city}
noun: a roof over my head|a pillow in {city}|{nights} nights of sleep
say: I have no friends in {city}.|The trip to {city} is long.|I will be tired when I reach {city}.|
On {date} my train gets in.
with: , night one on {date}|, the town being {city}|, number of nights {nights}|, until {nights} nights are over|
, in all {nights} nights

rent_car
do: [lend me/give me] a car|put me behind a wheel|let me drive through {city}
noun: four wheels|a car under my feet|the keys to a car
say: There is no bus in {city}.|My own car stays at home.|The children want to see all of {city}.|
In {city} one has to drive.
with: , day one being {date}|, number of days {days}|, the town being {city}|, to be returned after {days} days|
, pick up on {date}

cancel_booking
do: [give back/strike/scrap] the trip {code}|tear up the booking {code}|free me of the trip {code}
noun: the money of trip {code} back|an end to trip {code}|no trip {code}
say: My boss says no to the trip {code}.|My leg is broken, and {code} was for skiing.|{code} would be no fun alone.|
Nobody comes along on the trip {code}.
with: , I mean {code}

order_taxi
do: [fetch/collect/drive] me|stop a taxi for me|let a driver ring the bell at {address}
noun: a driver|a lift|wheels at {address}
say: My bags stand in front of {address}.|I missed the last bus.|My leg hurts, and {address} is far from the station.|
At {time} I want to be off.
with: , the hour being {time}|, the door is at {address}|, to be at {address}|not later than {time}|
, from the door of {address}

book_table
do: [tell/call] {place} that we come|hold some chairs at {place}|let us eat at {place}
noun: {people} chairs at {place}|a place to eat|dinner at {place}
say: My mother loves {place}.|It is my birthday, and we go to {place}.|We will be {people}.|
The kitchen of {place} is the best.
with: , the hour being {time}|, heads: {people}|, we are {people}|, and the house is {place}|, not before {time}

buy_tickets
do: [save/hold] {count} seats|let {count} of us see {film}|get us into {film}
noun: a row of {count}|an evening with {film}|chairs for {film}
say: The whole class wants to see {film}.|Everybody talks about {film}.|{film} is on at last.|
I promised the children {film}.
with: , the day being {day}|, number of seats {count}|, the film being {film}|when it is {day}

find_restaurant
do: [lead/send] me to good {dish}|tell us who cooks {dish}|get me a plate of {dish}
noun: a cook who makes {dish}|the best {dish}|a kitchen with {dish}
say: My stomach says {dish}.|My wife wants {dish} and nothing else.|I smell {dish}, but where?|
Everybody in {city} eats {dish}.
with: , the town being {city}|on the streets of {city}|while I am in {city}

find_recipe
do: [teach/show] me {dish}|list what goes into {dish}|read me the recipe of {dish}
noun: the secret of {dish}|a page on {dish}|{dish} step by step
say: My grandmother made {dish}.|There will be {people} at my table.|The kitchen is ready for {dish}.|
I bought everything for {dish}.
with: , heads: {people}|, number of servings {people}|, enough for {people}|, the guests being {people}

find_course
do: [sign me up/look] for {title}|let me learn {title}|bring me to people who do {title}
noun: somebody to teach me {title}|a first hour of {title}|a class with {title}
say: I am bad at {title}.|My doctor tells me to try {title}.|All my friends do {title}.|
I have free evenings and love {title}.
with: , the town being {city}|on the map of {city}|, not far from {city}

find_concert
do: [take/send] us to a {event}|see who has a {event}|get us out to a {event}
noun: a night out with a {event}|a good {event}|a place with a {event}
say: My friends and I like any {event}.|We are bored in {city}.|The children have never seen a {event}.|
It has been years since my last {event}.
with: , the town being {city}|, the day being {day}|when it is {day}|on the streets of {city}

get_score
do: [ask/see] how it ended for {team}|report on {team}|count the goals of {team}
noun: the goals of {team}|a report on {team}|the points of {team}
say: My father cheers for {team}.|Is {team} still on top?|Should I be happy or sad about {team}?|
I slept while {team} played.
with: , the day being {day}|, and that was on {day}|when it was {day}

search_books
do: [hunt/dig] for {title}|bring me {title}|see what {author} wrote
noun: a copy of {title}|the pages of {title}|{author} on paper
say: My daughter needs {title} for school.|Where do you keep {title}?|I love the books of {author}.|
A friend told me of {title}.
with: , the pen being that of {author}|, whose author is {author}|, the name on the cover is {author}|
, and it is called {title}

lend_book
do: [leave/lend] me {title}|push back the date of {title}|let {title} stay here
noun: a longer loan of {title}|{title} on my table|another {days} days
say: I am only halfway through {title}.|My son reads {title}, too.|I was ill and could not read {title}.|
There is no time to read {title} this week.
with: , number of days {days}|, {days} days should do|until {days} days are over|, and that for {days} days

translate
do: [bring/change] "{text}" into {language}|teach me "{text}" in {language}|find {language} words for "{text}"
noun: {language} words for "{text}"|"{text}" as they say it in {language}|the {language} of "{text}"
say: A friend writes me in {language}, and I answer "{text}".|My {language} is bad, what is "{text}"?|
On the card it should say "{text}".|
My teacher of {language} asks me for "{text}".
with: , all in {language}|, language {language}|, only in {language}

define_word
do: [ask/say] what {word} is|help me with the word {word}|open the dictionary at {word}
noun: a sentence on {word}|the sense of {word}|some light on {word}
say: My son came home with the word {word}.|I read {word} in a book.|Is {word} a good thing?|
Nobody could tell me what {word} means.
with: , word {word}

find_rhyme
do: [match/pair] {word} with something|end my line like {word}|see what goes with {word}
noun: a partner for {word}|a line that ends like {word}|something that sounds like {word}
say: My song stops at {word}.|The poem needs a word like {word}.|Cat goes with hat, and {word} with what?|
I am a poet and stuck at {word}.
with: , word {word}

convert_units
do: [measure/tell] {value} {source} in {target}|make {target} of {value} {source}|put {value} {source} into {target}
noun: {target} for {value} {source}|{value} {source}, but in {target}|the {target} in {value} {source}
say: The ruler says {value} {source}, my plan wants {target}.|It is {value} {source} high. And in {target}?|
My friend thinks in {target}, the rope has {value} {source}.|Are {value} {source} much, if you think in {target}?
with: , all in {target}

random_number
do: [surprise me with/throw me/shout] a number|draw a lot from {low} to {high}|let chance speak
noun: a lucky number|a lot between {low} and {high}|what chance says
say: I cannot make up my mind between {low} and {high}.|The winner has a number from {low} to {high}.|
Pull one out of the hat.|Let luck choose.
with: , low {low}, high {high}|, anything from {low} up to {high}|, starting with {low} and ending with {high}|
, {low} up to {high}

percent_of
do: [give me/cut off] {percent} percent of {value}|figure out {percent} percent of {value}|
see what {percent} percent of {value} makes
noun: {percent} percent out of {value}|the result of {percent} percent of {value}|a slice of {percent} percent
say: The shop takes {percent} percent off, and it was {value}.|I own {percent} percent of {value} shares.|
There were {value} of us, {percent} percent left.|
{percent} percent are mine, and it is {value} in all.
with: , the whole being {value}|, if all is {value}|, all of it being {value}

count_words
do: [say/see] how many words stand in "{text}"|go through "{text}" word by word|number the words of "{text}"
noun: a count of "{text}"|how many words are in "{text}"|the words of "{text}" counted
say: My teacher wants to know how long "{text}" is.|Is "{text}" too long?|
"{text}" should be a short note, but how short?|I pay by the word for "{text}".
with: , text "{text}"

search_people
do: [send/call] me a {job}|see if anyone is a {job}|name somebody who is a {job}
noun: a {job} who has time|the name of a {job}|a {job} nearby
say: My uncle needs a {job}.|Only a {job} knows what to do.|We pay well for a {job}.|Where do I meet a {job}?
with: , the town being {city}|, working in {city}|on the map of {city}|, at home in {city}
"""
