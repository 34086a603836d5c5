"""What further requests for the tools of `tools_catalogue` are put together from.

A block a tool: its name; `do`, what somebody is asked to do; `noun`, what somebody wants; `say`, whole sentences that call for it;
`with`, adjuncts. Lines hold alternatives between bars, and a
line that ends with a bar goes on in the next. What a request leaves out is told by an adjunct.
"""

CLAUSES = """
set_timer
do: [start/set/run/begin] a [timer/countdown]|[start/set] a {minutes} minute timer|time my {label}|count down {minutes} minutes|
watch the clock for my {label}|[ring/beep] when {minutes} minutes are over
noun: a timer|a {minutes} minute timer|a countdown|a {label} timer|{minutes} minutes on the timer
say: My {label} [needs/takes/lasts/should take] {minutes} minutes.|The {label} must not be longer than {minutes} minutes.|
I begin my {label} now and should be told after {minutes} minutes.|Tell me when the {minutes} minutes are over.|
My {label} ends {minutes} minutes from now.
with: for {minutes} minutes|of {minutes} minutes|called {label}|named {label}|for my {label}|for the {label}|with {label} as its name|
, {minutes} minutes|that [ends/stops] after {minutes} minutes

set_alarm
do: [set/make] [an/the] alarm|wake me|wake me up|get me out of bed|ring me awake|[switch/turn] on the alarm clock
noun: an alarm|a wake up call|the alarm clock|an alarm at {time}|a {label} alarm
say: I [must not/cannot] sleep [longer than/past] {time}.|My {label} is early, so [wake me/I must not sleep] at {time}.|
At {time} I have to [get out of bed/open my eyes/stand up].|[There is/I have] {label} in the morning.|Do not let me sleep after {time}.
with: at {time}|for {time}|by {time}|called {label}|named {label}|for {label}|because of the {label}|labeled {label}|, {label}

create_event
do: [add/write/enter/put] [the/a] {title} [in/into/to] [my/the] calendar|schedule [the/a] {title}|plan [the/a] {title}|
save the date of the {title}|keep {date} free for the {title}|make a calendar entry
noun: a {title} in my calendar|a new entry in the calendar|a calendar entry for the {title}|a new date in my calendar
say: [I go/We go/I was invited] to [the/a] {title}.|[There will be/We plan/I have] a {title} on {date}.|
The {title} [is/takes place] on {date}.|[The/Our] {title} begins at {time}.|{date} is the day of the {title}.
with: on {date}|at {time}|from {time} on|, {date}|, {time}|starting at {time}|for the {title}|called {title}|on {date} at {time}|
at {time} on {date}

cancel_event
do: [cancel/delete/drop/erase] the {title}|take the {title} out of my calendar|free my calendar on {date}|clear the {title} from my plans
noun: the {title} out of my calendar|no {title} in my calendar|{date} free again, without the {title}
say: The {title} [does not take place/was called off/is canceled].|I [will not/cannot] [make it to/come to/be at] the {title}.|
We [skip/drop] the {title} [of/on] {date}.|Nobody comes to the {title}, so it can be deleted.|On {date} I stay home and skip the {title}.
with: on {date}|of {date}|, {date}|planned for {date}|the {title}

move_event
do: [move/reschedule/delay/bring forward] the {title}|find a new date for the {title}|change the date of the {title}|
put the {title} on {date}
noun: the {title} on another day|a new date for the {title}|the {title} at {time}
say: The {title} [cannot stay/will not be] on the old day.|We meet for the {title} on {date} now.|The {title} has a new date, {date}.|
The {title} was [moved/changed] to {time}.
with: to {date}|to {time}|on {date}|at {time}|from {time}|to {date}, {time}|to {time} on {date}|, now {date}

list_events
do: [show/read/tell/give] me [my calendar/my events/my dates/my appointments]|list [my/all] [events/appointments/dates]|
look into my calendar|check my calendar|tell me what I have to do
noun: my [calendar/agenda/schedule]|a list of my [events/appointments]|an overview of my day
say: [Where do I have to be/What is going on/What are my appointments/What awaits me] on {day}?|Am I [free/busy] on {day}?|
I [forgot/do not know] my [plans/appointments] for {day}.|Is {day} a [busy/free] day for me?|How many appointments do I have on {day}?
with: for {day}|on {day}|of {day}|, {day}

add_reminder
do: remind me that {text}|set a reminder|[wake my memory/give me a hint] that {text}|tell me that {text}|note that {text}
noun: a reminder|a reminder that {text}|a hint|a short notice that {text}
say: I [always/will surely] forget that {text}.|At {time} I [must/have to] think of this: {text}.|Keep in mind for me that {text}.|
I should [know/hear] at {time} that {text}.|I have a bad memory.
with: at {time}|when it is {time}|when the clock shows {time}|, at {time} exactly|: {text}|with the words "{text}"|which says that {text}

get_time
do: [tell/show/give] me [the time/the hour/the local time]|look at the clock|[find out/check] how late it is
noun: the [time/hour/local time/exact time]|the clock
say: [Is it/Are they] [morning/night/noon/asleep] in {city} [now/already]?|Which hour [is it/has it struck] in {city}?|
Are people in {city} [asleep/at work] now?|I [call/have a friend in] {city}. [How late is it there/What time is it there]?|
Can I call {city} at this hour?
with: in {city}|of {city}|for {city}|over in {city}

set_temperature
do: [heat/warm up/cool] the {room}|set the heating|make it {degrees} degrees in the {room}|change the temperature|
bring the {room} to {degrees} degrees|turn the heating to {degrees} degrees
noun: {degrees} degrees|a temperature of {degrees} degrees|a {room} of {degrees} degrees|the heating at {degrees} degrees
say: I [freeze/am cold/sweat/am too warm] in the {room}.|It is too [cold/hot] in the {room}.|
The {room} [must/should/has to] [be/have/reach] {degrees} degrees.|We like it {degrees} degrees warm.|
{degrees} degrees are [right/best/good] for the {room}.
with: to {degrees} degrees|in the {room}|of the {room}|, {degrees} degrees|for the {room}|at {degrees} degrees

set_light
do: [set/change/turn/switch] the [light/lamps/lights]|[make/color] the light {color}|dim the [lamps/light] to {brightness} percent|
light up the {room}
noun: {color} light|{brightness} percent of light|{color} lamps|a {color} light of {brightness} percent
say: It is too [dark/bright] in the {room}.|The {room} [looks/would look] [nice/better/good] in {color}.|
I [like/love] {color} [light/lamps].|The lamps [shall/should] be {color}.|{brightness} percent [is/are] bright enough.
with: in the {room}|of the {room}|to {brightness} percent|at {brightness} percent|in {color}|, {color}|with {brightness} percent|
with a brightness of {brightness}|to {color}

switch_device
do: [turn/switch/put] the {device} {state}|[turn/switch] {state} the {device}|change the {device} to {state}|set the {device} to {state}|
make sure the {device} is {state}|check that the {device} is {state}
noun: the {device} {state}|the {device} to be {state}|the {device} switched {state}
say: The {device} [must/has to/should] [be turned/be switched/go] {state}.|Why is the {device} not {state}?|
The {device} is not {state} yet. [Change that./Do it now.]|With the {device}, I want it {state}.|{state} with the {device}!
with: to {state}|, {state}

lock_door
do: lock the {room}|[lock/bolt/shut] the door [of/to] the {room}|turn the key of the {room} door|keep the {room} locked|secure the {room}
noun: the {room} locked|a locked {room}|the {room} door shut
say: [Is/Was] the {room} locked? If not, lock it.|The {room} door is still open.|I do not want anybody in the {room}.|
No one may [enter/go into] the {room}.|I forgot to lock the {room}.|I leave [now/the house], and the {room} is not locked.
with: of the {room}

open_blinds
do: [open/raise/lower/move/pull/set] the blinds|open the {room} blinds|bring the blinds to {percent} percent|let light into the {room}
noun: the blinds at {percent} percent|the {room} blinds at {percent} percent|blinds open by {percent} percent|some sun
say: The sun [is too strong/should come in] in the {room}.|
It is [dark/too bright] in the {room}, the blinds should go to {percent} percent.|The {room} needs [sun/daylight].|
I want to look out of the {room} window.
with: in the {room}|of the {room}|to {percent} percent|at {percent} percent|by {percent} percent|, {percent} percent

vacuum_room
do: [clean/vacuum/sweep] the {room}|[clean/vacuum/sweep] the floor|send the robot into the {room}|run the vacuum|
get the dust out of the {room}
noun: a clean {room}|the floor of the {room} clean|the vacuum in the {room}|the {room} cleaned
say: There is [dust/dirt/sand] in the {room}.|The {room} [needs cleaning/looks dirty/is full of dust].|
The robot should clean the {room}.|Guests come, the {room} must be clean.
with: at {time}|from {time} on|in the {room}|of the {room}|, {time}|starting at {time}

restart_device
do: [restart/reboot/reset] the {device}|start the {device} again|give the {device} a [restart/fresh start]|turn the {device} off and on
noun: a [restart/reboot] of the {device}|the {device} restarted|a fresh start for the {device}
say: The {device} [does not respond/is frozen/behaves badly/is slow].|The {device} [should/must] [start again/be restarted/be rebooted].|
My {device} [needs/wants] a fresh start.|Something is wrong with the {device}, only a [restart/reboot] helps.
with: in {delay} minutes|after {delay} minutes|, {delay} minutes from now|when {delay} minutes have passed|with a delay of {delay} minutes

water_plants
do: [water/feed] the [plants/flowers] in the {room}|give the {room} plants some water|run the water in the {room}|
turn on the water for the flowers
noun: water for the {room} plants|some water in the {room}|{minutes} minutes of watering
say: The [plants/flowers] in the {room} [are dry/are thirsty/look sad/need water].|It is hot and the {room} flowers are thirsty.|
The earth in the {room} pots is dry.
with: for {minutes} minutes|in the {room}|during {minutes} minutes|, {minutes} minutes|lasting {minutes} minutes|over {minutes} minutes

play_music
do: [play/start/put on] [music/songs/a record/something] by {artist}|let me hear {artist}|play {artist}|turn on {artist}|
set the volume to {volume} and play {artist}
noun: [music/songs/a record/something] [by/of/from] {artist}|{artist}|a little {artist}|{artist} at volume {volume}
say: I am in the mood for {artist}.|Nothing is better than a song by {artist}.|We want to dance to {artist}.|Let us listen to {artist}.|
My favorite singer is {artist}.
with: at volume {volume}|with volume {volume}|with the volume at {volume}|at {volume} percent volume|, volume {volume}|
as loud as {volume} percent

play_film
do: [play/show/start/put on/run] {title}|[play/show/start] the [film/movie] {title}|let us see {title}|bring {title} to the screen
noun: {title}|the [film/movie] {title}|{title} on the screen|a film, {title}
say: [We/I] have never seen {title}.|Tonight we watch {title}.|We sit in the {room} and want to see {title}.|
The {room} is ready for {title}.|Everybody is in the {room}, the film is {title}.
with: in the {room}|on the screen of the {room}|on the {room} screen|for us in the {room}|, {room}

send_message
do: [tell/write/text/message/inform] {to} that {text}|send {to} [a message/a note/a text]|let {to} know that {text}|pass this on to {to}|
send {to} the words "{text}"|say to {to} that {text}
noun: a message to {to}|a note to {to} that {text}|a short message for {to}|{to} to know that {text}
say: {to} [does not know/has to know/must hear/has no idea] that {text}.|Does {to} know that {text}? Send a message.|
{to} waits for a message from me.|Say hello to {to} and that {text}.|I promised to tell {to} that {text}.
with: : {text}|saying that {text}|with the text "{text}"|which says that {text}|that {text}|to {to}|for {to}

send_email
do: [write/send/compose/start] [a mail/an email/mail]|email {to}|mail {to}|write to {to}|[send/write] {to} [a mail/an email/a few lines]|
mail something about {subject}
noun: an email|a mail to {to}|an email about {subject}|a new mail about {subject}|a few lines to {to}
say: I have to [answer/write to/tell] {to} [something about/about] {subject}.|{to} [wants/has] to [hear/read] about {subject}.|
Let {to} know about {subject} by mail.|There should be a mail about {subject}.
with: to {to}|about {subject}|with the subject {subject}|on {subject}|for {to}|, subject {subject}|titled {subject}|to the address {to}

call_number
do: [call/dial/ring/phone] {number}|[make/start] a [phone /]call to {number}|connect me with {number}|phone the number {number}|
get {number} on the phone
noun: a call to {number}|{number} on the phone|a connection to {number}|to talk to {number}
say: I [must/have to/want to] [speak to/talk to/reach] {number}.|Somebody at {number} waits for my call.|The number to call is {number}.|
{number} called me, so call back.
with: to {number}

find_contact
do: [find/show/look up/open/search for/get] {name}|look for {name} in [my/the] [contacts/address book/list]|
[show/give/tell] me [the address/the number/the contact] of {name}|check whether I know {name}
noun: the [number/address/contact/details/phone number] of {name}|the entry of {name}|what you have on {name}
say: I [forgot/lost/need] the number of {name}.|Do I know [anybody/somebody] called {name}?|Which number does {name} have?|
Where does {name} live?|Is {name} in my [contacts/address book]?|I want to write to {name} but have no address.
with: in my contacts|of {name}

add_contact
do: [save/store/add/keep/enter/remember] [the number of {name}/{name}/the contact {name}]|make a [new /]contact for {name}|
put {name} into my [phone/contacts]|write down the number {phone}|save the number {phone}
noun: {name} in my contacts|a new contact, {name}|the number {phone} in my contacts
say: {name} has a [new number/phone].|I met {name}, the number is {phone}.|{phone} is the number of {name}.|{phone} belongs to {name}.|
{name} gave me {phone}.|My new [friend/colleague] {name} has the number {phone}.
with: with {phone}|under {phone}|for {name}|, phone {phone}|, number {phone}|with the phone number {phone}|as the number of {name}|
, {phone}

delete_contact
do: [delete/remove/erase/drop/forget] {name}|[delete/remove/erase] the [contact/entry/number] of {name}|
take {name} out of my [contacts/phone/address book]|throw {name} out
noun: {name} out of my contacts|the contact of {name} deleted|no {name} in my phone
say: I [do not need/no longer need/never call] {name}.|{name} [is no friend of mine/is not a friend] any more.|
The number of {name} can go.|{name} should not be in my [contacts/phone/list].|I will never call {name} again.
with: from my contacts

video_call
do: [start/plan/set up/make] a video call|video call {person}|call {person} with the camera on|show me {person} on video
noun: a video call|a video call with {person}|{person} on the screen|a call with pictures
say: {person} and I want to see each other.|I want to see the face of {person}.|{person} waits for a video call.|
At {time} I talk to {person} on the screen.
with: with {person}|at {time}|for {time}|, {time}|to {person}|starting at {time}

send_postcard
do: [send/mail/post] [a card/a postcard]|[send/mail] {name} a [card/postcard]|write {name} a card|write "{text}" on a postcard
noun: a card|a postcard for {name}|a card that says "{text}"|a postcard
say: {name} is to have a card from me.|{name} likes cards and lives at {address}.|I am on holiday and {name} should get a card.|
A card must go to {address}.
with: to {name}|to {address}|at {address}|with the text "{text}"|, text: {text}|saying that {text}|for {name}|, {address}|
who lives at {address}

open_website
do: [open/load/visit/show/go to] {url}|[open/load/show] the [page/site/website] {url}|bring up {url}|point the browser to {url}
noun: the [page/site/website] {url}|to see {url}|to read {url}
say: I want to look at {url}|The page I need is {url}|My browser should show {url}|What does {url} say?|Is there anything new on {url}
with: at {url}

web_search
do: [search/look/google] [for /]{query}|search the [web/internet] for {query}|look up {query}|
find [something/pages/anything/more] about {query}|check the web for {query}
noun: pages about {query}|everything about {query}|something on {query} from the web|news about {query}
say: I [know nothing/want to know more] about {query}.|What does the web say about {query}?|What is known about {query}?|
Who can tell me about {query}?|The internet should know {query}.|Are there pages about {query}?
with: on {query}

create_file
do: [create/make/write/save/start] [a file/a new file/the file {name}]|[save/store/write] "{text}" [in/into/to] {name}|
put "{text}" into a [new /]file|make {name}
noun: a [new /]file|a file named {name}|a file with the text "{text}"|a new file called {name}
say: There is no {name} yet, write one.|I need a place for these words: {text}.|"{text}" should be in a file.|
The file {name} should say that {text}.
with: called {name}|named {name}|with the text "{text}"|with "{text}" in it|with "{text}" as content|that says "{text}"|
containing "{text}"|under the name {name}

delete_file
do: [delete/erase/remove/kill/drop/throw away] {name}|[delete/erase/remove] the file {name}|get rid of {name}|throw {name} into the bin|
wipe {name}
noun: {name} gone|the file {name} deleted|{name} in the bin
say: I [do not need/no longer need/have no use for] {name}|The file {name} is [old/useless/empty] and can go.|
{name} [takes too much space/is of no use].|Nobody needs {name} any more.|{name} should be deleted.
with: from the disk

rename_file
do: [rename/change] {source} to {target}|[rename/move] [the file /]{source}|give {source} the [new name/name] {target}|
change the name of {source} to {target}|call the file {source} {target}|turn the name {source} into {target}
noun: {source} under the name {target}|the file {source} renamed to {target}|a new name for {source}
say: {source} is a bad name, {target} is better.|{target} [should be/is] the new name of {source}|
The old name is {source}, the new one {target}|I want {source} to be called {target}|{source} becomes {target}|
Let {source} be called {target}|{target} is a better name than {source}|The name {target} fits {source} better.
with: to {target}|into {target}|as {target}|from {source}|, now {target}

open_file
do: [open/show/read/load/view/print] {name}|[open/show/read/load] the file {name}|show me what is in {name}|read {name} to me
noun: the file {name}|to see {name}|to read {name}|the contents of {name}
say: What [is in/is written in/does it say in] {name}|I want to [read/see/work on/edit] {name}|Which words are in the file {name}|
I have not read {name} yet.
with: from the disk

print_document
do: [print/print out] {title}|make {copies} [copies/prints] of {title}|put {title} on paper|send {title} to the printer|
run off {copies} copies
noun: {copies} copies of {title}|{title} on paper|a print of {title}|{copies} prints
say: I need {title} on paper.|{copies} people want to read {title}.|My boss wants {title} from the printer.|
We need {copies} copies for the meeting.
with: , {copies} copies|of {title}|{copies} times|in {copies} copies|, {copies} times
"""
