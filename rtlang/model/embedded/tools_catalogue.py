"""Tools of a house, a day and a desk, by theme: their heads, and requests that call each, known and held out."""

TIME = """
set_timer/start_timer(minutes/duration/length:minutes, label/name:label): start a timer
[Set/Start] a timer [for {minutes} minutes/of {minutes} minutes] [called/named/for] {label}.
Start a {minutes} minute timer [for {label}/and call it {label}].
Timer please: {label}, {minutes} minutes.
[Count down/Count] {minutes} minutes[ for {label}/, this is for {label}].
[The timer for {label}/The {label} timer] should [ring/run] [after {minutes} minutes/for {minutes} minutes].
{label} takes {minutes} minutes, [start a timer/set the timer/time it].
I want [to hear a timer/a ring] [after/in] {minutes} minutes. [Call it/Name it/It is for] {label}.
It [rings/ends] after {minutes} minutes: that is [the timer/a timer] I need for {label}.
held: I want a {label} timer that rings in {minutes} minutes.
held: In {minutes} minutes the timer should go off, the name is {label}.

set_alarm/wake_up(time/at:time, label/reason:label): set an alarm
[Wake me/Wake me up] at {time} [for {label}/because of {label}].
Set [an alarm/the alarm] for {time} [called/named/with the name] {label}.
Alarm at {time}, [name it/call it/label] {label}.
[I have to/I must] get up [at/by] {time} for {label}, [set an alarm/wake me].
{label} alarm, {time}[, please/].
I have to be up [at/by] {time}. [Set an alarm/Wake me up] and call it {label}.
Let the alarm [ring/go off] at {time}. The [label/name] is {label}.
held: I must be up by {time} because of {label}.
held: For {label}, an alarm that goes off at {time}.

create_event/add_event(title/event/name:event, date/day:date, time/start:time): add to the calendar
[Add/Put] {title} [to/in] my calendar on {date} at {time}.
Schedule [the/a] {title} for {date}, {time}.
Put {title} in the calendar: {date}, {time}.
[There is a/We have a] {title} [on {date} at {time}/at {time} on {date}], [add it/put it in the calendar].
New event: {title}. [When/Date]: {date}, {time}.
On {date} at {time} I go to [the/a] {title}. [Please note that in my calendar/Add that to the calendar].
[Block/Keep] my calendar on {date} from {time}, it is a {title}.
{title} [starts/begins] at {time}. The day is {date}. [Into the calendar with it/Note that in my calendar].
held: Block {date} at {time} for {title}.
held: My calendar needs a new event, {title}, which starts at {time} on {date}.

cancel_event/delete_event(title/event:event, date/day:date): remove from the calendar
[Cancel/Delete/Remove] the {title} on {date}.
[Take/Remove] the {title} of {date} [out of/from] my calendar.
The {title} on {date} [will not happen/is off], [delete it/remove it/cancel it].
I [cannot go/am not going] to the {title} on {date}, [delete it/take it out].
Cancel event: {title}, {date}.
There is no {title} on {date} [any more/after all]. [Delete/Remove] it.
[Strike out/Cross out] the {title} [on/of] {date}.
held: Strike the {title} from my calendar, the one of {date}.
held: Forget about {date}, the {title} is off.

move_event/reschedule(title/event:event, date/new_date:date, time/new_time:time): move an event
Move the {title} to {date} at {time}.
[Reschedule/Shift] the {title}: {date}, {time}.
The {title} [now takes place/is now] on {date} at {time}, [move it/change that in the calendar].
[Put off/Postpone] the {title} to {date}, {time}.
Change the {title} to {time} on {date}.
We [have to/must] move the {title}. The new [date/day] is {date}, the new time is {time}.
{title}: [better/it would suit me] on {date} at {time}[, not on the old day/].
held: Let us shift the {title}, the new time being {time} on {date}.
held: {date} at {time} would suit us better for the {title}, so reschedule it.

list_events/show_calendar(day/date:date): events of a day
What is on my calendar [on/for] {day}?
[Show/List/Read] my events [for/of/on] {day}.
[Do I have/Have I got] [anything/any events] on {day}?
What [do I have to do/is planned/are my plans] on {day}?
Events on {day}[, please/]?
[Am I busy/Am I free/Is my calendar full] on {day}?
held: How full is my day on {day}?
held: Tell me what is planned for {day}.

add_reminder/remind_me(text/task/note:note, time/when:time): remember something
Remind me at {time} that {text}.
[At {time}/When it is {time}], remind me [of this/about this]: {text}.
Reminder [for/at] {time}: {text}.
[Set/Make] a reminder for {time} [which says/with the text]: {text}.
I must not forget that {text}, remind me at {time}.
[Do not let me forget/Help me remember] that {text}. [Remind me/The time is] at {time}.
{text}. [This is important, think of it/I must think of it once more], remind me at {time}.
held: It is important that {text}, so let me think of it at {time}.
held: Once it is {time}, help me to remember that {text}.

get_time/local_time(city/place/location:city): time in a city
What time is it in {city}?
[Tell me/Show me/Give me] the time in {city}.
[Current/Local] time in {city}[, please/]?
How late is it in {city} [now/right now/at the moment]?
Is it [already night/still day/early/late] in {city}? What does the clock say?
held: What does the clock show in {city} right now?
held: People in {city}: how late is it for them?
"""

HOME = """
set_temperature/heat_room(room/place:room, degrees/temperature:degrees): heating
Set the {room} to {degrees} degrees.
Make the {room} {degrees} degrees warm.
[Heat/Warm] the {room} to {degrees} degrees.
In the {room} [I want/it should be] {degrees} degrees[ warm/].
[Change/Turn] the heating in the {room} to {degrees} degrees.
The {room} is too [cold/warm], {degrees} degrees [would be nice/is what I like/please].
[Heating/Temperature]: {room}, {degrees} degrees.
held: I would like {degrees} degrees in the {room}.
held: {degrees} is the temperature to reach, the place is the {room}.

set_light/change_light(room/place:room, color/colour:color, brightness/level:percent): control lamps
Make the light in the {room} {color} at {brightness} percent.
Light in the {room}: {color}, {brightness} percent.
Turn the {room} light {color}, brightness {brightness}.
[I want/I would like] {color} light in the {room}, brightness {brightness}[ percent/].
[The lamps in the {room}/The {room} lamps] should [be/burn/shine] {color}, {brightness} percent[ bright/].
[Set/Put] the lamps of the {room} to {color} and {brightness} percent.
At {brightness} percent, let the {room} [shine/glow] in {color}.
held: The {room} should glow {color} at {brightness} percent.
held: With {brightness} percent of brightness and in {color}, that is how the {room} should shine.

switch_device/turn_device(device/name:device, state/mode:switch): turn a device on or off
[Turn/Switch] {state} the {device}.
[Turn/Switch] the {device} {state}[, please/ for me/ now/].
[Can/Could] you [turn/switch] the {device} {state}?
The {device} should be {state}.
Device: {device}, state: {state}
I [want/need] the {device} {state}.
held: Please see to it that the {device} is {state}.
held: {device} {state}, now.

lock_door/lock(room/door:room): lock a door
Lock the [door of the {room}/{room} door][, please/].
[Close/Shut] and lock the {room}.
[Did I/Did we] leave the {room} open? Lock it.
[Nobody should/Not everybody may] get into the {room}, lock the door.
[Make sure that/See to it that] the {room} is locked.
I am going [out/to bed], lock the {room}[ door/].
held: The door to the {room} has to be locked.
held: Keep everybody out of the {room} with the lock.

open_blinds/set_blinds(room/place:room, percent/position:percent): move the blinds
Open the blinds in the {room} to {percent} percent.
[Blinds/The blinds] in the {room}[, please/]: {percent} percent[ open/].
[Move/Set] the {room} blinds to {percent} percent.
[Let/I want] some sun [into the {room}/in the {room}], blinds at {percent} percent.
The blinds of the {room} should be open [at/by] {percent} percent.
In the {room}, [lower/raise] the blinds to {percent} percent.
held: Let the sun in: raise {percent} percent of the {room} blinds.
held: I would like blinds that are open {percent} percent, in the {room}.

vacuum_room/clean_room(room/place:room, time/start:time): clean the floor
[Clean/Vacuum] the {room} at {time}.
[Start/Begin] [cleaning/to clean] the {room} at {time}.
At {time}, [clean/vacuum] the floor [of/in] the {room}.
The {room} is dirty, [clean it/vacuum it] at {time}.
The floor of the {room} [must/has to] be [clean/vacuumed] [at/from] {time}[ on/].
Cleaning: {room}, {time}.
held: Begin at {time} with the dirty floor of the {room}.
held: Could the vacuum go through the {room}? Start it at {time}.

restart_device/reboot(device/name:device, delay/minutes/wait:minutes): restart a device
Restart the {device} in {delay} minutes.
Reboot the {device}, [wait {delay} minutes first/but not now, only in {delay} minutes].
In {delay} minutes, [restart/reboot] the {device}.
[Wait {delay} minutes and/After {delay} minutes,] [restart/reboot] the {device}[, please/].
The {device} [hangs/is stuck/needs a restart], [restart/reboot] it {delay} minutes from now.
[Switch the {device} off and on again/Cycle the power of the {device}] in {delay} minutes.
held: Power cycle the {device} {delay} minutes from now.
held: The {device} needs a reboot, but only after a wait of {delay} minutes.

water_plants/water(room/place:room, minutes/duration:minutes): water the plants
[Water/Give water to] the plants in the {room} for {minutes} minutes.
The plants in the {room} [need/want] water, {minutes} minutes [please/of it/will do].
[For {minutes} minutes/Take {minutes} minutes and], water the {room} plants.
Water the {room} for {minutes} minutes.
[The {room} flowers/All {room} flowers] are dry, water them [for/during] {minutes} minutes.
Watering: {room}, {minutes} minutes.
held: Let water run on the dry plants of the {room}, {minutes} minutes long.
held: {minutes} minutes of water for the flowers in the {room}.

play_music/play_artist(artist/name:person, volume/level:percent): play songs
Play {artist}[ at volume {volume}/, volume {volume}].
Put on [some/songs by/music by] {artist}, volume {volume}.
I want to hear {artist}, volume {volume}.
[Music please: {artist}/Some music by {artist}, please], volume {volume}.
[Turn the volume to {volume}/Volume {volume}] and play [something by /songs of /]{artist}.
[I love/I like] {artist}. Play [a song/an album], [loud/low], volume at {volume}.
[Blast/Fill] the whole house with {artist}, volume {volume}[, the neighbors being out/].
held: Blast {artist} with the volume at {volume}.
held: Songs of {artist} should fill the house, the volume being {volume}.

play_film/show_film(title/film/name:title, room/place:room): show a film
Play the film {title} in the {room}.
[Show/Start] {title} on the screen in the {room}.
[I want/We want] to [watch/see] {title} in the {room}.
[Put on/Start] the film {title}, [I am/we are] in the {room}.
Film: {title}, {room}.
In the {room}, [play/show/start] {title}[, please/].
held: The {room} screen should show {title}.
held: It is film night in the {room}, and {title} is what we watch.
"""

MESSAGES = """
send_message/text_person(to/person/recipient:person, text/message/body:note): send a message
Tell {to} that {text}.
Send {to} a message: {text}.
Message {to}: {text}
[Write/Text] {to} that {text}.
Send [this message/these words] to {to}: {text}.
{to} should [know/hear/be told] that {text}.
[Please inform/Inform] {to} [: {text}/that {text}].
Message for {to}[, please/]. [It says/The text is]: {text}.
held: Please let {to} know at once that {text}.
held: I want {to} to hear this from me: {text}.

send_email/write_email(to/address/recipient:email, subject/title/topic:phrase): write an email
Email {to} with the subject {subject}.
Write an email to {to}, subject {subject}.
Send mail to {to} about {subject}.
[Start/Open] a new email. [Subject/Topic]: {subject}. To: {to}
[Write/Send] a [line/few lines] about {subject} to {to}.
The subject is {subject}, [send it to/mail it to/the address is] {to}
{subject} is the [topic/title] of an email to {to}
[Drop/Send] {to} [a line/a mail] with [the title/a text titled] {subject}.
held: Drop a line to {to}, titled {subject}.
held: On the topic of {subject}, mail should go to {to}

call_number/dial(number/phone/phone_number:phone): make a call
Call {number}.
Dial {number}.
Please [ring/phone/call] {number} for me.
[I want/I need] to [talk to/speak to/call] {number}[, please/ now/, whoever answers/].
[Make/Start] a [phone call/call] to {number}.
[Can/Could] you [dial/ring/call] {number}?
Put me [through to/on the line with] {number}.
held: Get me {number} on the line.
held: I would like to speak with whoever answers {number}.

find_contact/get_contact(name/person/full_name:person): address book
What is the [number/address/email] of {name}?
Find {name} in my contacts.
Look up {name} in the address book.
[Show/Give/Get] me [the contact of/the number of] {name}.
[Do I/Do we] have [a number/an address] [for/of] {name}?
I want to [reach/contact] {name}, [look up the number/what is the number]?
Contact: {name}?
held: How can I reach {name}?
held: Where in my address book is {name}?

add_contact/save_contact(name/person:person, phone/number/tel:phone): save a contact
Save {name} with the number {phone}.
Add {name}, {phone}, to my contacts.
New contact: {name}, {phone}
[Save/Store/Keep] {phone} as the number of {name}.
[The number of {name} is {phone}/{name} has the number {phone}], [save it/add it/remember it].
Put {name} in [my/the] address book, [phone/number] {phone}.
You can call {name} at {phone}. [Save that/Remember it/Store that].
held: Remember that {name} can be called at {phone}.
held: Under {phone} you will from now on find {name}, keep that.

delete_contact/remove_contact(name/person:person): forget a contact
[Delete/Remove/Forget] {name} [from my contacts/from the address book].
Delete the contact {name}.
[I no longer need/I do not need/I may live without] the number of {name}, [delete it/remove it].
[Take/Remove] {name} out of [my contacts/the address book].
{name} should [go/be removed] from my contacts.
Delete contact: {name}
held: I can do without {name} in my address book.
held: The contact named {name} may go.

video_call/start_video_call(person/name/contact:person, time/at:time): call with pictures
Start a video call with {person} at {time}.
Video call: {person}, {time}[, and only once/].
[I want/I would like] to [see/video call] {person} at {time}.
[Call {person} with video/Ring {person} by video] at {time}.
At {time}, [start/set up] a video call with {person}.
{person} [expects/waits for] my video call at {time}.
held: Set me up by video with {person}, {time}.
held: {person} and I will talk by video once it is {time}.

send_postcard/mail_card(name/to:person, address/street:street, text/message:note): send a card
Send a [postcard/card] to {name}, {address}: {text}.
Write {name} a card [which says/that] {text}. The address is {address}.
[Mail/Post] a card to {address} for {name}. [Text/It says]: {text}.
Postcard for {name} ({address}): {text}.
A card with the text "{text}" should go to {name}, {address}.
{name} lives at {address}, send a card [which says/with the text]: {text}.
held: Put "{text}" on a card, address it to {name}, and mail it to {address}.
held: At {address}, {name} should find a postcard from me: {text}.
"""

OFFICE = """
open_website/browse(url/page/link:url): open a page
Open {url}
Go to {url}
Show me {url} in the browser.
[Visit/Load] [the page /the site /]{url}
[I want/I need] to [see/read/visit] {url}
[Bring/Take] me, please, to [the page/the site] {url}
Browser: {url}
held: Take me to {url}
held: What is there to read on {url} today?

web_search/search_web(query/text/words:phrase): search the internet
Search the web for {query}.
[Look for/Search for/Find] {query} [on the internet/on the web/online].
[What does the web say/What can you find online] about {query}?
Web search: {query}
[Find pages/Search pages/Show results] about {query}.
I want to [know more/read] about {query}, search the [web/internet].
held: See what the internet has on {query}.
held: Online, is there anything about {query}?

create_file/new_file(name/file/path:file, text/content:note): write a file
[Create/Make/Write] a file {name} [with the text/that says]: {text}.
New file {name}: {text}.
[Save/Write] "{text}" [to/in/into] the file {name}
[Make/Create] {name} and write [into it/there]: {text}.
The file {name} [contains/should hold/should contain]: {text}.
[Put/Store] this [text in/in] {name}: {text}.
held: A file should be made that contains "{text}", call it {name}
held: Let {name} hold the words: {text}.

delete_file/remove_file(name/file/path:file): delete a file
[Delete/Remove] [the file /]{name}
I [do not need/no longer need] {name}, [delete it/remove it].
[Throw away/Get rid of] the file {name}
{name} can be [deleted/removed/cleared/thrown away]. [Clear it/Delete it].
Delete file: {name}
[Please/Can you] [delete/remove] {name} [for me/from the disk]
held: Clear the disk of {name}
held: The disk has no place for {name} any more.

rename_file/move_file(source/old_name/from:file, target/new_name/to:file): rename a file
Rename [the file /]{source} to {target}
[Move/Rename] {source} to {target}
[Change the name of/Give a new name to] {source}: {target}
{source} [should be called/shall have the name/should be named] {target}
The new name of {source} is {target}
The file {source} is [now/from now on] {target}, rename it.
The name of the file [reads/is so far] {source} and [should become/shall be] {target}
held: What was {source} so far shall be named {target}
held: Change {source} so that its name reads {target}

open_file/show_file(name/file/path:file): show a file
Open [the file /]{name}
[Show/Read] me [the file /]{name}
What [does/might] the file {name} [say/contain]? [Display it/Open it].
I [want/need] to [read/see/edit] {name}
[Can/Could] you open {name} for me?
Open file: {name}
held: Let me have a look into {name}
held: Display what the file {name} contains.

print_document/print(title/document/name:title, copies/count:count): print a document
Print {copies} copies of {title}.
[Print/Print out] {title}, {copies} [copies/times].
[I need/We need/Make] {copies} [printed/paper] copies of {title}.
Send {title} to the printer, {copies} copies.
Printer: {title}, {copies} copies
The document {title} [must/has to] be printed, {copies} copies.
held: Let the printer give me {title} on paper, {copies} times.
held: {copies} times I want to hold {title} on paper.

create_ticket/report_problem(device/item:device, problem/issue/text:problem): report a problem
The {device} {problem}. [Open/Create/Write] a ticket[, please/].
[Open/Create/Make] a ticket: the {device} {problem}.
Report [to the help desk/a problem]: {device} {problem}.
[I have a problem/There is a problem/We need help], our {device} {problem}.
My {device} {problem}, [report it/tell the help desk/open a ticket].
Ticket: {device}, {problem}
held: The help desk should hear about my {device}, as it {problem}.
held: What can be done about a {device} that {problem}? File a ticket.

close_ticket/finish_ticket(code/ticket/ticket_id:code): close a ticket
Close [ticket/the ticket] {code}.
[The problem of {code} is solved/{code} is done/The work on {code} has been done], close [it/the ticket].
Ticket {code} [can be closed/is finished/is solved].
Mark [the ticket /]{code} as [closed/done/solved].
Please close {code}, [it works again/all is fine now].
Close ticket: {code}
held: We are done with {code}, mark that ticket.
held: As {code} has been solved, its ticket can go.

create_user/add_user(name/full_name:person, email/mail/address:email): make an account
[Create/Open/Make] an account for {name}, {email}
[Add/Create] the user {name} [with the address/with the email] {email}
New user: {name}, {email}
{name} needs an account, the email is {email}
[Register/Sign up] {name} [with/under] {email}
User {name} [has the address/can be reached at/is not registered under] {email}, [add the account/create it].
{email} [belongs to/is the email of] {name}, [open an account/register it].
held: Have {email} registered, the account belongs to {name}.
held: There should be an account under the name {name}; mail goes to {email}

book_room/reserve_room(room/place:venue, date/day:date, time/start:time): reserve a meeting room
[Book/Reserve] the room {room} on {date} at {time}.
[We need/I need] the meeting room {room}, {date}, {time}.
Room {room}, {date} at {time}[, please/]: [book it/reserve it].
Reserve {room} on {date} from {time} [for our meeting/for us].
We meet [in/in the room] {room} on {date} at {time}, [book it/reserve the room].
On {date} at {time} [we need/I want] the room {room}.
The team meets [at {time} on {date}/on {date} at {time}] and {room} should be ours[, book it/].
held: Keep the room {room} free for our meeting, {time} on {date}.
held: Our team meets on {date}; from {time} on, {room} has to be ours.
"""
