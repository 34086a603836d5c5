"""More whole requests for the tools of the clock and the house: the name of a tool, then what people say when they mean it."""

REQUESTS = """
set_timer
Once {minutes} minutes are up, the {label} [must come out/has to stop/needs a look], so keep a timer on it.
Would you mind running a timer on the {label}? [Say/About/Make it] {minutes} minutes.
My hands are [wet/full/covered in flour], so please start the clock on {label}: {minutes} minutes, no more.
Too much {label} is as bad as too little, so [warn/alert] me as soon as a timer of {minutes} minutes has run out.
timer {label}, {minutes} min [/thx/pls]
A timer labelled {label} would [help/be great/do nicely]; let it run down from {minutes} minutes.
I only ever allow {minutes} minutes for {label}. [Clock it/Keep the time] for me.
[Sorry to bother you/Pardon me], but could a countdown named {label} be started with {minutes} minutes on it?
Let {minutes} minutes tick away on a new timer that [goes by/bears] the name {label}.
The recipe calls for {minutes} minutes, and I keep losing track, so [kick off/launch] a timer titled {label}.
[Beep/Buzz/Chime] when {minutes} minutes of {label} have passed.
Nothing beats a timer for {label}. [Give/Grant] it {minutes} minutes, starting now.
How about a {label} countdown, [beginning/starting] at {minutes} minutes?
With {label} I always overdo it, hence a timer [limiting/holding] me to {minutes} minutes.

set_alarm
I sleep like a [log/stone/bear], so an alarm for {label} had better sound at {time}.
Could the alarm[/ clock] be set to {time}, under the label {label}?
If I oversleep, I miss {label}. [Get me out of bed/Rouse me] at {time}.
alarm {time} tmrw, label {label}[/, ta/, thanks]
Because {label} starts early, I'd like to be [woken/roused] at {time}.
No snoozing past {time}! Create an alarm that [is called/reads] {label}.
An alarm [tagged/titled] {label} would save me; {time} is when it should go off.
Tomorrow is {label}, which means [rising/waking] at {time}. Please see to the alarm.
At {time} sharp, [sound/trigger] the alarm I want to be known as {label}.
[Would you be so kind as to/Would you please] wake me when it is {time}? It's on account of {label}.
Don't let me sleep beyond {time}, or {label} [goes on without me/will be over].
I wish I were a morning person, but {label} needs an alarm, and that alarm [belongs/has to be] at {time}.
Make {time} my wake-up time and [use/take] {label} as what the alarm is called.
For {label}, an early start is needed. [Ring the alarm/Drag me out of bed] at {time}, will you?

create_event
Guess what, we're [invited to/going to] a {title}! Mark {date} in my calendar, from {time}.
Would you [pencil in/enter/jot down] a {title} for {time} on {date}?
So that nobody books me elsewhere, my calendar should show {title} on {date}, [beginning/starting] {time}.
cal entry: {date}, {time}, {title}[/, thx]
They've fixed the {title} for {date}, and doors open at {time}. [Get it into/Make it part of] my schedule.
My calendar is [missing/lacking] something: at {time} on {date} there is {title}.
If {date} is still free at {time}, let a {title} [go/be entered] there.
I've just been [told about/asked to] a {title}, {time} on {date}, which ought to be in the diary.
An appointment has to be made: what, {title}; which day, {date}; [what hour/from when], {time}.
Let my calendar [hold/carry] an event by the name of {title}, whose day is {date} and whose start is {time}.
Keep {time} free for me on {date}, since that's when the {title} [kicks off/gets going].
[Sorry, one more/Oh, another] appointment: {date}, {time} onwards, the {title}.
From {time} I'll be at the {title}. It falls on {date}, and I'd like [an entry/a calendar entry] for it.
It would be a shame to miss the {title}, so [plan/slot] it in at {time} on {date}.

cancel_event
We've called off the {title}, so [clear/wipe] it from my calendar on {date}.
Could the {title} that I had planned for {date} be [scrapped/dropped/called off]?
As I'll be [ill/away/abroad] on {date}, the {title} has to go from my schedule.
scrap {title}, {date} [/pls/please]
{date} looks too full. [Drop/Ditch/Lose] the {title}, it's the least important entry.
My calendar still shows {title} for {date}, although that [got cancelled/fell through/never came about].
I'm afraid I won't make the {title}, so [erase/rub out] the entry for {date}.
[Sorry, change of heart/Bad news]: no {title} for me on {date}. Take that appointment off.
Free up {date} by [cancelling/striking] the {title}.
Whatever I said about the {title} on {date}, [forget it/scratch it] and empty that calendar slot.
The organisers withdrew the {title}, which makes the entry on {date} [pointless/useless]. Off with it.
If there's still a {title} standing on {date}, it [should/can] be deleted.
Instead of going to the {title}, I'd [rather/much rather] stay home on {date}. Cancel my appointment.
On {date} you will find an event, {title}, that I [don't want/want no more of] in my calendar.

move_event
Since half of us can't come, the {title} gets a new slot: {time}, on {date} [instead/from now on].
Would it be possible to [push/bump] the {title} to {date}, starting {time}?
The {title} clashes with something. [Make it/Let it be] {time} on {date} instead.
{title} -> {date}, {time}. [Same people/All else the same/Rest unchanged], just moved.
They've shifted the {title}; my calendar [should/ought to] show it at {time} on {date} now.
Instead of the [old/present/planned] slot, give the {title} one on {date} at {time}.
[Sorry/Apologies], the {title} doesn't suit me as planned. Could it happen on {date}, say {time}, instead?
I'd rather have the {title} on {date}, so drag it over there and [have/let] it begin at {time}.
Pick up the {title} from where it stands and [drop/set] it on {date} at {time}.
{date} is now the day of the {title}, {time} the hour. [Correct/Amend] the existing entry.
If I can still change my mind: {time} on {date} is [far better/more convenient] for the {title} than what we had.
Our {title} has been rescheduled by the boss, to {time} on {date}, so [adjust/fix] the appointment.
Bring the {title} [forward/back], to {date}, and let {time} be its new start.
A later {title} would suit all of us; {date} was proposed, with {time} as the new hour, so [shift/change] it.

list_events
Before I promise anything for {day}, [which/what] appointments are already there?
I've lost track of my schedule. [Go through/Run me through] the appointments I have on {day}.
agenda {day}[/?/ pls]
How [full/packed/crowded] is {day}? Read out what I've got planned.
Take a look at {day} and [tell/let] me know which events there are.
What does {day} [hold/have in store] for me?
I wonder [what/which things] my calendar says about {day}.
If {day} has any appointments, [name/list] them one by one.
So that I can plan ahead, [pull up/bring up] my schedule of {day}.
[Where/When] do I have to be on {day}, according to my calendar?
Give me an overview of {day}: [meetings, visits, everything/all my appointments].
{day}, what's [happening/going on] then in my calendar?
Someone wants to [meet/see] me on {day}. Can I, or is there something scheduled?
My agenda for {day} would be [useful/good to see/nice to have].

add_reminder
I'm [hopeless at/bad at] remembering things, so nudge me at {time}: {text}.
Could you give me a nudge at {time}? It's about this: {text}. [I'd forget/It matters].
{text}, and that is something I [tend to forget/always forget], so bring it back to me at {time}.
reminder {time} - {text}[/ - thx]
When the clock shows {time}, a note should [pop up/appear] to say that {text}.
By {time} I'll have forgotten that {text}; [jog/refresh] my memory then.
My head is like a sieve. At {time}, [bring up/mention] once again that {text}.
Ping me at {time} with [the words/this]: {text}.
I'd be [grateful/glad] for a reminder that {text}, due {time}.
[Sorry, I know I'm forgetful/I'm getting old], but could you recall for me at {time} that {text}?
Around {time} it will matter that {text}, so [prompt/poke] me at that moment.
So that it doesn't slip my mind that {text}, let a reminder [come/arrive] at {time}.
It should not be forgotten that {text}. I'd [like/want] to be reminded when it's {time}.
Schedule a memo to myself, {time}, [whose text is/reading]: {text}.

get_time
I want to ring my aunt in {city}, but is it too [late/early] over there? What hour is it?
When it's now here, what [hour/time of day] do they have in {city}?
{city} time[/ now/ pls]?
My watch is still on home time. What [should it show/would it say] in {city}?
Are people in {city} [asleep/awake/at lunch] by now? Tell me their clock time.
Before I call {city}, I'd better know the [hour/time] there.
Check the clock [over in/out in] {city} for me.
I've just landed in {city}, and I need the [correct/right] time for my watch.
The time in {city}, [would you happen to know it/can you tell me that]?
Which hour has [struck/come] in {city}?
If I looked at a clock on a wall in {city}, [what/which time] would I read?
For someone living in {city}, what's the time[/ just now/ right this minute]?
Time zones confuse me. Whatever the clocks of {city} [show/display] at present, let me have it.
{city} is [far off/in another time zone], and I'm curious what time they've got there.

set_temperature
I'm [freezing/shivering] in here, bring the {room} up to {degrees} degrees.
Would {degrees} degrees be possible in the {room}? [I'm cold/It's chilly there].
thermostat {room}: {degrees} [/pls/now]
The baby sleeps in the {room}, so the heating there should be [held/kept] at {degrees} degrees.
Let the temperature of the {room} [rise/climb/go] to {degrees} degrees.
Guests are coming, and I'd like them to find the {room} at {degrees} degrees, [cosy/snug].
Adjust the thermostat [in/of] the {room} so that it reads {degrees} degrees.
At {degrees} degrees the {room} is just [right/fine]. See that it gets there.
To save on [gas/fuel/bills], {degrees} degrees must be enough for the {room}.
{degrees} degrees, that's what the heating of the {room} should [aim/go] for.
If the {room} isn't at {degrees} degrees yet, turn the [heater/radiator] to it.
Why is it so [cold/stuffy/hot] in the {room}? I asked for {degrees} degrees on the thermostat.
My toes are ice. [Get/Bring] some heat into the {room}, {degrees} degrees if you can.
I wish the {room} were {degrees} degrees, not this [fridge/oven/sauna].

set_light
It's [gloomy/dim/dreary] in the {room}; give us {color} light there, at {brightness} percent.
Could the {room} be lit in {color}, with the brightness [at/on] {brightness} percent?
lights {room}: {brightness} pct, {color}[/, now/, pls]
For a [party/cosy] mood, {color} would be lovely in the {room}, {brightness} percent bright.
My eyes hurt, so dim the {room} to {brightness} percent and [choose/pick] {color} for the colour.
Bathe the {room} in {color}, with lamps [burning/shining] at {brightness} percent.
We're [reading/painting/playing] in the {room}. Lamps to {brightness} percent, please, and their colour to {color}.
Instead of that [cold/harsh/dull] white, I'd have {color} lamps in the {room} at {brightness} percent.
Photos look best when the {room} has {color} lamps, so [arrange/do] that, turned up as far as {brightness} percent.
{color}, that's the lamp colour I fancy for the {room}; {brightness} percent is [bright enough/plenty].
Change the lighting: {brightness} percent strong, {color} in hue, and [only/just] in the {room}.
If it isn't too much trouble, [tint/colour] the lamps {color} in the {room}, dialled to {brightness} percent.
I can't see a thing in the {room}! Bring the lights up to {brightness} percent, [preferably/ideally] {color}.
The bulbs in the {room} can be any colour, so why not {color}, and [why not/maybe] at {brightness} percent?

switch_device
I forgot about the {device}, it [ought to/has to] be {state} by now.
My arms are full of [shopping/laundry]; kindly flick the {device} to {state} while I put it down.
{device}: {state} [/pls/now/thx]
Why isn't the {device} turned {state} [yet/already]? Kindly flip the switch.
Nobody bothered with the {device} today, so kindly [click/flick] its switch to {state}.
[Have/Get] the {device} turned {state} for me.
If you would, flick {state} the [switch of the/good old] {device}.
The {device} isn't {state}, although I'd like it [to be/that way].
I can't reach the [button/plug/switch], so the {device} has to be turned {state} by you.
Power: {device} goes {state}[, right away/, at once/].
[Flip/Click] the {device} to {state} and leave it like that.
It's [high time/about time] the {device} was {state}.
To {state} with the {device}, [would you/please]!
What I [wish for/ask] is simple: a {device} which is switched {state}.

lock_door
There have been [burglars/thieves] about, so bolt the {room} door.
Is the {room} door [locked/bolted]? If not, turn the key.
{room} lock [/pls/now]
I hear a [raccoon/fox] outside, so bolt whatever leads to the {room}.
The children shouldn't [wander/sneak] into the {room}. Keep it locked.
Would you [secure/bolt] the door of the {room} behind me?
I think I left without locking the {room}, please do it [for me/in my place].
The {room}: [lock it up/turn the key], would you?
With my valuables in the {room}, an unlocked door [won't do/is a bad idea].
Let no one [enter/in] through the {room} door, put the lock on.
[Strangers/Visitors] keep walking into the {room}, so I want its door locked.
Everyone has left, which means the {room} can be [locked up/locked for the night].
[Oh dear/Sorry], I forgot the key again. Have the {room} door locked remotely.
So that the dog [stays in/can't get out], the door of the {room} needs locking.

open_blinds
The sun is [blinding/dazzling] me in the {room}; bring the blinds to {percent} percent.
Would you let the blinds [of/in] the {room} up to {percent} percent?
blinds {room}: {percent} pct [/pls/now]
I can't [see/read] my screen in the {room}, so adjust the shades there to {percent} percent.
At {percent} percent, the {room} blinds would let in just [enough/the right amount of] light.
My plants like daylight, so have the blinds {percent} percent [open/up] in the {room}.
Neighbours can look into the {room}. Blinds to {percent} percent, [quick/please].
[Roll/Draw] the blinds up to {percent} percent, I mean those in the {room}.
{percent} percent open is how I like the blinds when I [work/sit/rest] in the {room}.
It's a lovely morning! Let the {room} have its blinds at {percent} percent, [do/please].
If the blinds in the {room} aren't at {percent} percent, [shift/slide] them there.
I'd [prefer/love] the window blinds of the {room} opened {percent} percent, neither more nor less.
How dark the {room} is! The blinds could [go/stand] at {percent} percent.
Somebody [pulled/touched] the {room} blinds again; they belong at {percent} percent.

vacuum_room
The dog has been [shedding/rolling] all over the {room}, so run the vacuum there at {time}.
Could the robot [do/tackle] the {room} at {time}?
vacuum {room}, {time} [/pls/thx]
There are crumbs [everywhere/under the table] in the {room}. Hoover them up at {time}.
When {time} comes, the vacuum cleaner should [set off for/head for] the {room}.
I'll be out by {time}, which is a good moment to [hoover/sweep] the {room}.
Guests arrive later, hence I want the {room} [vacuumed/hoovered] at {time}.
Don't run the vacuum yet, the baby sleeps. {time} is [fine/soon enough] for the {room}.
Send the [robot/vacuum robot/little cleaner] to the {room} at {time}.
Would it be too [noisy/much] to have the carpet of the {room} vacuumed at {time}?
[Plan/Schedule] a cleaning run through the {room}, beginning {time}.
At {time} nobody is in the {room}, so its floor can be [swept/done] then.
I [spilled/dropped] sand in the {room}, could the hoover go over it at {time}?
From {time} on, let the vacuum [roam/work its way through] the {room}.

restart_device
I'm still saving my work, so hold off {delay} minutes before you [restart/reboot] the {device}.
Is it all right to [reboot/restart] the {device} with a countdown of {delay} minutes before it goes down?
reboot {device}, {delay} min [/pls/thx]
Odd noises and error boxes, that's my {device} lately. Reboot it, but [not until/only when] {delay} minutes have \
passed.
Give me {delay} minutes to finish, then [power-cycle/reboot] the {device}.
An update needs the {device} to [come up fresh/boot anew], so do that {delay} minutes hence.
When {delay} minutes have gone by, the {device} should be [rebooted/restarted].
[Sorry to say/I fear] the {device} froze once more. Let it start over, with a delay of {delay} minutes.
Queue a restart: the machine is the {device}, the [delay/wait] is {delay} minutes.
Wouldn't the {device} run [faster/better] after a reboot? Do one {delay} minutes later.
I want the {device} [started afresh/booted again], though not before {delay} minutes are over.
Since nothing else helps, the {device} gets a reboot; [wait/allow] {delay} minutes so people can log off.
Let {delay} minutes pass and then have the {device} [reboot/restart] itself.
With a {delay} minute [delay/pause] first, please reboot that [stubborn/slow] {device}.

water_plants
It hasn't [rained/been watered] for days in the {room}; run the water for {minutes} minutes.
Would you turn the sprinkler on the [ferns/tomatoes/orchids], those in the {room}, and shut it off after {minutes} \
minutes?
water plants {room}, {minutes} min [/pls/thx]
The leaves are [drooping/turning brown] in the {room}, so let the plants drink for {minutes} minutes.
Thirsty ferns everywhere in the {room}! A shower lasting {minutes} minutes [would do them good/should revive them].
[Run/Turn on] the sprinkler in the {room} and stop it when {minutes} minutes are over.
I'm on holiday, so could the pots in the {room} be watered[/ once], for {minutes} minutes?
{minutes} minutes of watering should be [enough/plenty] for what grows in the {room}.
As the soil in the {room} is bone dry, I'd like [irrigation/the hose] on for {minutes} minutes.
For the flowers' sake, let water flow in the {room}, and [keep it up/go on] for {minutes} minutes.
Nobody has looked after the green things in the {room}. [Soak/Drench] them for {minutes} minutes.
[Irrigate/Sprinkle] the {room}, duration {minutes} minutes.
To keep my basil from [dying/wilting], have the sprinkler of the {room} running {minutes} minutes long.
I [forgot/neglected] the herbs in the {room} all week, so they should be watered, {minutes} minutes in total.

play_music
It's too [quiet/silent] in here. Some {artist} at volume {volume} would fix that.
Is {artist} in our [collection/playlist]? Then let me hear a few tracks, loudness at {volume}.
music {artist} vol {volume} [/pls/now]
Nothing cheers me up like {artist}, so [spin/start] a few songs with the volume on {volume}.
Let's dance! [Crank/Turn] it to {volume} and give us {artist}.
I'm in the mood for {artist}; [keep/hold] the volume to {volume}, though.
Instead of the news, I'd sooner listen to {artist}, volume [at/on] {volume}.
The baby is asleep, hence only volume {volume}, but I'd [love/like] songs by {artist}.
[Stream/Queue] something sung by {artist} at a volume of {volume}.
{artist} has a new record, and I want it playing at volume {volume}[/ right away/ tonight].
How about a tune from {artist}? Loudness {volume}, [not a notch more/please].
While I [cook/work/tidy up], let {artist} play in the background at volume {volume}.
My guests adore {artist}. Have the music going, [set/fixed] to volume {volume}.
At volume {volume}, {artist} sounds [best/wonderful], so put a record of theirs on.

play_film
We've got popcorn ready in the {room}, so [roll/let us see] the film {title}.
Could {title} be shown on the television in the {room}? [Everyone's waiting/We are all here].
film {title}, screen {room} [/pls/now]
The kids are [bored/restless] in the {room}. Let them watch {title}.
It's movie night! Have {title} [on/up] on the {room} screen.
I've never seen {title}, and I'd like to see that movie [while sitting/lying down] in the {room}.
The TV in the {room} is free, so [get/set] the movie {title} running there.
For our evening in the {room} we picked the film {title}. [Go ahead/Let it begin].
How about a movie? {title}, say, and the {room} is where we'll [watch/view] it.
Whoever is in the {room} wants to see the movie {title}, so [screen/run] it there.
[Stream/Beam] the movie {title} to the {room}.
Instead of a book, tonight it's {title} for me, on the [big/small] screen of the {room}.
Since we couldn't get [seats/tickets] at the cinema, we'll watch {title} at home, in the {room}.
I'd be [thrilled/happy] if the {room} television showed {title}, the film everyone talks about.
"""
