"""Still more that requests for the tools are put together from: indirect and unusual ways, written as in `tools_clauses`."""

CLAUSES = """
set_timer
do: [beep/shout/knock/call me] after {minutes} minutes|let {minutes} minutes run down|
stop my {label} after {minutes} minutes
noun: {minutes} minutes for my {label}|a bell after {minutes} minutes|somebody who watches the clock
say: {minutes} minutes of {label} and not one more.|My {label} burns if it takes more than {minutes} minutes.|
I always forget my {label}.|
The {label} starts now.|Without a clock, my {label} would go on for hours.
with: , {minutes} minutes and no longer|, all this for my {label}|, its name being {label}|
, and {minutes} minutes on the clock

set_alarm
do: [ring/beep/shout/sing] at {time}|throw me out of bed|end my night at {time}|see that I am awake at {time}
noun: a loud bell at {time}|my night to end at {time}|a morning that begins at {time}
say: The {label} does not wait for people who sleep.|I always sleep too long.|Without a bell I miss the {label}.|
{time} is when I have to open my eyes.|{label} calls, and I am a deep sleeper.
with: , {time} sharp|, the reason being {label}|, all because of {label}|so that I do not miss the {label}|
, not later than {time}

create_event
do: [note/mark/pencil in/book] [the/a] {title}|fill {date} with a {title}|remember the {title}|
make room for a {title} in my calendar
noun: a place for the {title} in my calendar|a note of the {title}|{date} with a {title} in it
say: My friends asked me to a {title}.|The {title} got a date.|I said yes to a {title}.|On {date} comes the {title}.|
{time} is when the {title} begins.|I might miss the {title} if it is not in my calendar.
with: , day: {date}|, {time} is the hour|, the date being {date}|at {time} of {date}|, and that at {time}

cancel_event
do: [scratch/wipe out/drop/erase] the {title}|free my {date} of the {title}|do away with the {title}
noun: my {date} without the {title}|the {title} gone|an end to the {title}
say: The {title} was called off.|Nobody comes to the {title}.|I am ill and must miss the {title}.|
We will not have the {title}.|
On {date} I have no time for the {title}.
with: , the one on {date}|, dated {date}|that was on {date}|which I had on {date}

move_event
do: [push/bring/carry] the {title} to {date}|give the {title} a new date|let the {title} begin at {time}|
change when the {title} is
noun: the {title} on another day|a later {title}|a new date for the {title}
say: I have no time for the {title} on the old day.|The {title} was moved.|The guests of the {title} asked for {date}.|
The {title} is too early as it is.|On {date} we could have the {title}.
with: , now on {date}|, new day: {date}|, new time: {time}|, and the hour is {time}|to {date}, {time}

list_events
do: [go through/open/print/read out] my plans for {day}|look what happens on {day}|count my meetings on {day}
noun: a view of {day}|my day on {day}|the plan for {day}
say: Somebody wants to meet me on {day}. Am I free?|Is there room on {day}?|What keeps me busy on {day}?|
Did I promise anything for {day}?|
Who do I meet on {day}?
with: , the day being {day}|when it is {day}

add_reminder
do: [shout/whisper/ring] that {text}|keep in mind that {text}|knock at {time} and say that {text}|
bring back to my mind that {text}
noun: a bell at {time}|a nudge at {time}|a message to myself that {text}
say: My head is full, but {text}.|{text}, and I will not think of it.|I am a person who forgets.|
At {time} nothing matters but this: {text}.|
Somebody must tell me that {text}.
with: when {time} has come|, not before {time}|, and the words are: {text}|, in my own words: {text}|
as soon as it is {time}

get_time
do: [read/check] the clocks [in/of] {city}|see what the clocks say in {city}|ask somebody in {city} for the time
noun: the hour of {city}|a look at the clocks of {city}
say: Do the shops in {city} still sell bread at this hour?|Have they had lunch in {city} yet?|Is it tomorrow in {city}?|
My sister in {city} might be in bed, so how late is it there?
with: , the town being {city}|, for friends in {city}

set_temperature
do: [stop/end] the cold in the {room}|let the {room} be {degrees} degrees|get {degrees} degrees into the {room}|
make us a warm {room}
noun: the {room} at {degrees} degrees|warm air in the {room}|a warmer {room}
say: The {room} feels like [winter/summer].|{degrees} degrees and not less for the {room}.|
My feet are cold in the {room}.|
The baby sleeps in the {room}.|Nobody can work in this {room}, it needs {degrees} degrees.
with: , at best {degrees} degrees|until it is {degrees} degrees|, which should have {degrees} degrees|, place: {room}

set_light
do: [paint/fill/bathe] the {room} in {color}|give the {room} {color} light|let there be {color} light|
bring the lamps down to {brightness} percent
noun: a {color} {room}|{color} from the lamps|the {room} in {color}
say: Everything in the {room} should look {color}.|It is party time in the {room}.|{color} is the color of the night.|
My eyes hurt in the {room}.|{brightness} percent is all the light I can stand.
with: , {brightness} percent strong|, all in {color}|, the color being {color}|, power: {brightness} percent|
over in the {room}

switch_device
do: [have/get] the {device} {state}|bring the {device} to {state}|let the {device} be {state}
noun: my {device} {state}|the {device} on the setting {state}
say: I want to go to bed, so: {device} {state}.|{device}? Make it {state}.|The {device} is wrong, it should be {state}.|
From now on the {device} is {state}.
with: , the word is {state}|, mode {state}

lock_door
do: [shut off/close up/seal] the {room}|make the {room} safe|let nobody [enter/into] the {room}
noun: the {room} safe|the bolt of the {room} shut|the key of the {room} turned
say: My brother should not get into the {room}.|The {room} stands open.|I hear somebody at the {room} door.|
Is the {room} safe for the night?|We are on holiday, and the {room} is open.
with: , door: {room}

open_blinds
do: [wind/roll] the {room} blinds to {percent} percent|let {percent} percent of the day into the {room}|
change the view from the {room}
noun: {percent} percent of sun in the {room}|a {room} with a view|blinds at {percent}
say: I cannot see the garden from the {room}.|The neighbors look into the {room}.|
{percent} percent open is right for the {room}.|
It is noon and the {room} is dark.
with: , {percent} percent and no more|, as far as {percent} percent|, position {percent}|at the {room} window

vacuum_room
do: [wake/start] the robot at {time}|take the crumbs out of the {room}|let the robot do the {room}
noun: a {room} without dust|the {room} swept|a robot in the {room}
say: The dog was in the {room}.|We had a party in the {room}.|My mother comes, and look at the {room}.|
You could eat from every floor but that of the {room}.|Nobody has swept the {room} for weeks.
with: , not before {time}|when it is {time}|as soon as it is {time}|, time: {time}

restart_device
do: [bring back/wake/refresh] the {device}|kick the {device}|put the {device} to sleep and wake it
noun: a {device} that works again|new life for the {device}|the {device} up again
say: The {device} does nothing any more.|I clicked everything, but the {device} sleeps.|My {device} is dead.|
Nothing moves on the {device}.
with: , but give me {delay} minutes|, {delay} minutes later|, to be done {delay} minutes from now|
, delay: {delay} minutes

water_plants
do: [save/wet/shower] the plants in the {room}|let it rain on the {room} flowers|
give the {room} a {minutes} minute shower
noun: a drink for the {room} plants|wet earth in the {room}|rain in the {room}
say: The leaves in the {room} hang down.|My roses in the {room} are nearly dead.|
I was away, and the {room} plants had nothing to drink.|
Nobody looked after the flowers of the {room}.
with: , {minutes} minutes should do|, not more than {minutes} minutes|, time: {minutes} minutes

play_music
do: [sing/bring/give] us {artist}|let {artist} sing|fill my ears with {artist}|make it a {artist} evening
noun: the voice of {artist}|an hour of {artist}|the best of {artist}
say: {artist} would be right for this party.|Too quiet here, we miss {artist}.|My girlfriend loves {artist}.|
I dance to {artist} only.|
Do you have anything by {artist}?
with: , with {volume} on the knob|, and make it {volume} percent loud|, loudness {volume}

play_film
do: [roll/begin] {title}|let {title} run|take us into {title}
noun: an evening with {title}|popcorn and {title}|the story of {title}
say: The popcorn is ready for {title}.|The children want {title}.|I have waited all week for {title}.|
The lamps of the {room} are off.
with: , here in the {room}|to all of us in the {room}|, place: {room}

send_message
do: [warn/remind/tell/surprise] {to} that {text}|[break/bring] the news to {to}|make sure {to} hears that {text}
noun: some words to {to}|the news sent to {to}|{to} told that {text}
say: {to} is [waiting/worried].|{to} asked me about it, and {text}.|Nobody told {to} yet that {text}.|
{to} should not hear it from others.|
For {to} this is news: {text}.
with: , namely that {text}|, and the text is: {text}|, my words being: {text}|, and the receiver is {to}|
in a note to {to}

send_email
do: [ask/answer/inform] {to} about {subject}|get {subject} off to {to}|send word about {subject}
noun: a word about {subject}|{subject} in the mail|a reply to {to}
say: {to} asked what is new about {subject}.|Nobody at {to} knows about {subject} yet.|I owe {to} a mail.|
{subject} is what my mail is about.
with: , the topic being {subject}|, headed {subject}|, receiver: {to}|, to be read by {to}|under the heading {subject}

call_number
do: [try/reach/get] {number}|pick up the phone and dial {number}|let {number} ring
noun: a talk with {number}|the line {number}|a ring at {number}
say: My doctor has the number {number}.|On the card it says {number}.|{number} should hear from me.|
Who is it that picks up at {number}?
with: , number {number}

find_contact
do: [tell/remind] me how to reach {name}|dig out {name}|see what we have on {name}
noun: a way to reach {name}|the card of {name}|{name} from the list
say: {name} gave me a card, but where is it?|I met {name} and wrote it all down.|Did I save {name}?|
How does one get hold of {name}?|
I promised {name} a letter.
with: , the name being {name}

add_contact
do: [take/note] {name} down|add a friend, {name}|learn the number of {name}|file {phone} under {name}
noun: {name} with the number {phone}|a card for {name}|{name} on my phone
say: {name} has moved and got {phone}.|When {phone} rings, it is {name}.|{name} is a new neighbor.|
I must not lose the number of {name}.
with: , who picks up at {phone}|, and the line is {phone}|, to be called at {phone}|, whose phone is {phone}

delete_contact
do: [clear/wipe/cut] {name} from my list|lose the number of {name}|free my phone of {name}
noun: a list without {name}|{name} off my phone|the number of {name} wiped
say: {name} and I no longer talk.|{name} left town for good.|Why is {name} still on my phone?|I have {name} twice.
with: , I mean {name}

video_call
do: [bring/get] {person} on the screen|open the camera for {person}|show my face to {person}
noun: {person} face to face|a picture of {person} while we talk|the camera on for {person}
say: {person} has not seen me for a year.|My camera waits for {person}.|I would like to see how {person} looks.|
{time} suits {person}.
with: , {time} sharp|when it is {time}|, not before {time}|, the other side being {person}

send_postcard
do: [surprise/greet] {name} with a card|put a stamp on a card|let the mail bring {name} a card
noun: greetings to {name}|some words on a card|a card in the mail
say: {name} is alone and would like some mail.|The card should say that {text}.|The postman knows {address}.|
{name} lives far away.
with: , address {address}|, going to {address}|, with these words: {text}|, and on it: {text}|, meant for {name}|
, on which it says that {text}

open_website
do: [get/fetch/bring] me to {url}|surf to {url}|type {url} into the browser
noun: the start page of {url}|a look at {url}
say: They say it is all on {url}|My friend put pictures on {url}|I forgot what stands on {url}
with: , address {url}

web_search
do: [dig/hunt/ask around] for {query}|find out about {query}|see who sells {query}
noun: facts about {query}|links on {query}|an answer on {query}
say: What in the world is {query}?|I have never heard of {query}.|Everybody talks about {query}, why?|
My son asks me what {query} is.|
There must be something about {query} somewhere.
with: about {query}

create_file
do: [keep/note down/store] "{text}" under {name}|begin a file|start {name} with "{text}"
noun: {name} with "{text}" in it|"{text}" saved|some room for "{text}"
say: I want to keep these words: {text}.|"{text}" is all that stands in {name}.|There should be a {name}.|
I would like to read "{text}" tomorrow, too.
with: , file name {name}|, and the text is "{text}"|, its words being "{text}"|, the name being {name}

delete_file
do: [burn/shred/trash/clear] {name}|make {name} go away|free the disk of {name}
noun: a disk without {name}|{name} in the trash|no more {name}
say: Nobody reads {name}|{name} is full of mistakes and of no use to us.|I made {name} by accident.|
Why do we still have {name}
with: , the file {name}

rename_file
do: [relabel/retitle] {source}|put the name {target} on {source}|from {source} make {target}
noun: {target} as the name of {source}|{source} with the name {target}
say: I gave {source} the wrong name.|Everybody looks for {target} but it is called {source}|{source} is hard to find.|
There is no {target} yet, only {source}
with: , new name {target}|, which is now {target}|, in future {target}|, formerly {source}

open_file
do: [fetch/bring up/pull up/get out] {name}|let me read {name}|put {name} on the screen
noun: {name} on the screen|the text of {name}|a look at {name}
say: I forgot what I wrote in {name}|My boss asks what {name} says.|It must be somewhere in {name}|
Who knows what is in {name}
with: , file {name}

print_document
do: [run/put] {title} through the printer|give everybody {title} on paper|make paper of {title}
noun: a stack of {copies} copies|{title} in my hand|{title} from the printer
say: Nobody likes to read {title} on a screen.|We are {copies}, and each wants {title}.|The printer is free for {title}.
with: , number of copies {copies}|for {copies} people|, and that {copies} times|as often as {copies} times

create_ticket
do: [complain/write down] that our {device} {problem}|call in help for the {device}|get support to look at my {device}
noun: a report on the {device}|a note to support|a case for my {device}
say: I have had enough: our {device} {problem}.|Every day our {device} {problem}.|
Nobody can work as long as the {device} {problem}.|
The {device} drives me mad.
with: , as it {problem}|, what it does: it {problem}|, for my {device} {problem}|, the fault being that it {problem}

close_ticket
do: [shut/archive/wrap up] the case {code}|take case {code} off the list|cross out the case {code}
noun: case {code} wrapped up|an end to ticket {code}|a line under the case {code}
say: The trouble of {code} is history.|The user of {code} is happy again.|Why is {code} still open?|
We repaired what {code} was about.
with: , the ticket {code}

create_user
do: [let in/welcome/enter] {name}|let {name} log in|make {name} a member
noun: a place in the system for {name}|{name} as a member|{name} in the system
say: {name} cannot log in yet.|We hired {name}.|{name} joined the team.|From today on {name} works with us.
with: , and the mailbox is {email}|, reached at {email}|, mailbox {email}|, the person being {name}|
, and the mail is {email}

book_room
do: [block/hold/save] {room}|get us into {room}|let us have {room}
noun: {room} to ourselves|{room} for the team|the key to {room}
say: We have guests and want {room}.|Nobody else should sit in {room}.|{room} is big enough for us.|
On {date} we sit together.
with: , day {date}|, hour {time}|, in fact {room}|when it is {time}|, and the day is {date}

convert_currency
do: [swap/trade] {amount} {source} for {target}|get me {target} for {amount} {source}|
put {amount} {source} into {target}
noun: {target} instead of {amount} {source}|the {target} price of {amount} {source}
say: {amount} {source} is the price. And in {target}?|In my pocket are {amount} {source}, I need {target}.|
Are {amount} {source} a lot in {target}?|Here they take {target} only, and I have {amount} {source}.
with: , all in {target}|, in terms of {target}

pay_bill
do: [clear/cover] what {company} wants|give {company} the money|free me of my debt to {company}
noun: {company} paid|my debt to {company} gone|{amount} on its way to {company}
say: {company} wrote a second time.|{company} did good work.|My account still holds the {amount} for {company}.|
I do not want trouble with {company}.
with: , namely {amount}|, in full {amount}|, sum {amount}|, the firm being {company}

request_money
do: [press/nudge/bother] {person} for {amount}|tell {person} to pay {amount}|make {person} pay
noun: a letter to {person} about the money|{amount} back|{person} to settle the {amount}
say: {person} forgot the {amount}.|I am still waiting for {person} to pay.|{person} ate at my cost.|
It was I who paid for {person}.
with: , in all {amount}|, the sum being {amount}|, sum {amount}|, and {person} is the one

split_bill
do: [cut/break] {amount} into {people} parts|let everyone pay the same|be fair with {amount}
noun: {people} equal parts|what everyone pays|the part of each
say: Dinner came to {amount}.|We sat at one table, {people} of us.|Nobody should pay more than the others.|
{amount} stands on our bill.
with: , {people} being at the table|, {people} heads|, the bill being {amount}|over {people} people

get_stock
do: [ask/see] what {symbol} costs|watch {symbol}|report on {symbol}
noun: a number for {symbol}|{symbol} at this minute|the market on {symbol}
say: Am I rich with my {symbol}?|They talk about {symbol} on the news.|Should I worry about {symbol}?|
Is it a good day for {symbol}?
with: , symbol {symbol}

buy_shares
do: [grab/collect/pick up] {count} {symbol}|make me an owner of {symbol}|put my money into {symbol}
noun: {symbol}, {count} of it|a part of {symbol}|{count} more {symbol}
say: Everybody gets rich with {symbol}.|My money should work at {symbol}.|{symbol} looks good.|I believe in {symbol}.
with: , number of shares {count}|, in all {count}|, and that {count} times

sell_shares
do: [drop/unload/cash in] {count} {symbol}|free me of {symbol}|give up {count} of my {symbol}
noun: money for my {symbol}|{count} {symbol} off my hands|an end to my {symbol}
say: {symbol} makes me nervous.|I need cash for a house and have {symbol}.|With {symbol} it goes down.|
I held {symbol} for too long.
with: , number of shares {count}|, in all {count}|, and that {count} times

add_item
do: [jot down/mark down] {count} {item}|think of {item}|bring {count} {item} from the shop
noun: {count} {item} from the shop|more {item}|{item} in the basket
say: The children used up the {item}.|Our {item} are gone.|Next time in the shop I need {item}.|
My wife asked for {count} {item}.
with: , number {count}|, {count} will do|, and {count} of them

remove_item
do: [cross out/wipe/scratch] the {item}|forget the {item}|leave out the {item}
noun: the list, but no {item}|{item} crossed out|a shorter list, no {item}
say: My mother gave me {item}.|I have {item} enough.|Who wrote {item} on my list?|It was a mistake to note {item}.
with: , I mean the {item}

check_price
do: [ask/see] how much a {item} is|price a {item}|name the price of a {item}
noun: a number for the {item}|the tag of the {item}|an idea what a {item} costs
say: My savings should be enough for a {item}.|Would a {item} make me poor?|
I dream of a {item}, if it is not too expensive.|
What do they want for a {item}?
with: , item {item}

check_stock
do: [ring/call] the shop about {item}|count the {item} in {city}|see what is left of the {item}
noun: the number of {item} left|{item}, if there are any|an answer about the {item}
say: I would drive to {city} if they had {item}.|My shop is out of {item}.|Did the {city} shop get new {item}?|
I hope {city} has {item}.
with: , shop: {city}|, the town being {city}|on the shelves of {city}

cancel_order
do: [halt/break off/scrap] order {code}|tear up the order {code}|let order {code} go
noun: order {code} called off|the money of order {code} back|no delivery of {code}
say: {code} should never reach me.|I am sorry about {code}.|There is no need to pack {code}.|Do not bother with {code}.
with: , you see, {reason}|, the cause being that {reason}|, after all {reason}
"""
