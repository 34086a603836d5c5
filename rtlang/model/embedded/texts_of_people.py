"""Whole texts about people and their troubles, each of which tells every field of a record. Held-out ones are in `kinds_of_people`."""

from rtlang.model.embedded.kinds import lines

PERSON_TEXTS = lines("""
Having [grown up/settled] in {city}, {name} trained as {a_job}, discovered {hobby} and has just hit {age}.
{hobby} keeps {name} [sane/going], a must after long shifts as {a_job} in {city}. {first} was {age} last time I asked.
Being {a_job} in {city} isn't [easy/simple], says {name}, {age}, so {hobby} helps a lot.
"At {age}, I've [earned/deserved] my hours of {hobby}," jokes {name}, still employed in {city} as {a_job}.
[LOG/INFO] profile_created name="{name}" age={age} [job/role]="{job}" [city/town]="{city}" hobby="{hobby}"
[WANTED/LOOKING FOR] PEN PAL STOP AM {a_job} IN {city} STOP {age} YEARS STOP CRAZY FOR {hobby} STOP {name}
hey, {name} here, {age}, {city}. i do {hobby} a lot, [bills get paid/rent gets paid] by being {a_job} lol
[Local/Proud] {job}, {name}, {age}, puts home town {city} on the map with {hobby}
Did you know that the {job} on our street, {name}, is already {age}? Nobody in {city} is as [keen on/devoted to] \
{hobby}.
[Dear editor/Dear reader], as {a_job} of {age} who adores {hobby}, I was pleased by your article. Sincerely, {name}, \
{city}
Ever since {name} opened shop in {city} as {a_job}, {hobby} has had to [wait/take second place]. Such is life when \
you're {age}!
[Candidate/Applicant] {name} gave {hobby} as an interest, {age} as age, {city} as residence and {job} as present post.
What does {a_job} do to unwind? In the case of {name}, {age}, from {city}, the answer [is/would be] {hobby}.
Few would guess that {name} is {age}. Perhaps {hobby} [does the trick/is the secret], or the easy life of {a_job} in \
{city}.
If you need {a_job} while staying in {city}, [ring/call] {name}. But bring up {hobby} and {first}, now {age}, will \
talk for hours.
Mom's cousin {name} resides in {city}, has {age} candles on the cake, toils as {a_job} and [dabbles in/tries out] \
{hobby}.
Caption: {name} ({age}) [practicing/enjoying] {hobby} in a {city} park after a day's work as {a_job}.
[Table/Seat] for {name}, please. You know, the {job} from {city}, the one who never shuts up about {hobby}. Just \
turned {age}.
Nothing beats {hobby}, [thinks/finds] {name}, who serves the people of {city} as {a_job} and is {age}.
[Jury/Club] member: {name}. Born {age} years back, residing in {city}. Earns a crust as {a_job}; devotes Sundays to \
{hobby}.
Once {a_job}, always {a_job}: {name} of {city} won't [retire/quit], not even at {age}, though {hobby} beckons.
Rumor has it that the new {job} in {city} is {name}, aged {age}, [a fan of/hooked on] {hobby}.
{name} | {job} | {city} | {age} [yrs/y] | [into/loves] {hobby}
person: name={name}; city={city}; [age/years]={age}; [pastime/hobby]={hobby}; job={job}
{city} -> {name} -> {job} -> [age /]{age} -> {hobby}
Guess who joined our {hobby} [club/group]! It's {name}, {age}, who practices in {city} as {a_job}.
Although {name} [makes/draws] a salary as {a_job}, the heart belongs to {hobby}. You can find {first}, {age}, all \
over {city}.
[Her Honor/The judge] asked for particulars. The witness stated: "{name}, {age}, {job}, resident of {city}." Pastime? \
"{hobby}, Your Honor."
Congratulations, {name}, on reaching {age}! May {city} [treasure/keep] its best {job}, and may you never lack time \
for {hobby}.
Dating profile. I go by {name}. Number of birthdays: {age}. Base: {city}. I [slave away/spend my days] as {a_job} and \
swear by {hobby}.
At the {city} [station/market], ask for {name}. Everybody there knows the {job}, {age}, from all that {hobby}.
Between jobs as {a_job}, {name} squeezes in some {hobby}; at {age}, life in {city} is [sweet/good].
[Breakfast/Coffee], then off to work as {a_job}, then {hobby} till dark: that is how {name}, {age}, passes the days \
in {city}.
Let me tell you about my [uncle/landlord/tenant] {name}. Age? {age}. Trade? {job}. Whereabouts? {city}. Weak spot? \
{hobby}.
Without {hobby}, {name} would [go mad/be bored stiff]. Picture {a_job}, {age}, sharing a flat in {city}.
A salute to {name}, {city}'s [finest/busiest] {job}, who at {age} has taken up {hobby}!
{age} and [not tired/still curious], {name} divides the week between the duties of {a_job} in {city} and the joys of \
{hobby}.
The latest [column/blog] portrays {name}, {a_job} whom {city} adores; {age} by now, {first} swears there is no cure \
for {hobby}.
Not every {job} has a talent for {hobby}. {name}, who dwells in {city} and is {age}, [certainly/clearly] does.
For {name}, moving to {city} meant a [fresh start/new life]: hired as {a_job} at {age}, and surrounded by people who \
share a passion for {hobby}.
They say {hobby} is for the young. [Nonsense/Wrong], replies {name}, {a_job} from {city} who admits to being {age}.
Twice a week, {name} shuts the books, forgets about being {a_job}, and [plunges into/escapes to] {hobby}. Hometown: \
{city}; years so far: {age}.
I [married/fell for] {a_job}! The name's {name}, {age}, from {city}, and yes, {hobby} comes with the package.
Contestant, please [step forward/come up]! {name}, {age}, traveled from {city}, pays the rent as {a_job} and lives \
for {hobby}.
Interested in {hobby}? So is {name}. You'll [get along with/warm to] {first}: age {age}, {a_job}, house in {city}.
[Census/Survey] sheet. Respondent {name}. Completed years {age}. Dwelling in {city}. Livelihood {job}. Leisure \
{hobby}.
[Widowed/Divorced] and {age}, {name} found comfort in {hobby}, stayed on as {a_job}, and wouldn't trade {city} for \
any place on earth.
If it weren't for {hobby}, nobody in {city} would ever see {name} [smile/outdoors], who at {age} is still busy day \
and night as {a_job}.
Thank you for [calling/writing], {name}. So you're {age}, you reside in {city}, your occupation is {job}, and you \
pursue {hobby}. Have I got that right?
[Patient/Client] {name} presents with a sore back, probably from {hobby}. {age}, {city}, self-employed as {a_job}.
Tired of {city}? Never, [laughs/grins] {name}. "I'm {age}, being {a_job} suits me, and where else could I indulge in \
{hobby}?"
It was through {hobby} that I [befriended/got to know] {name}, who is {a_job} over in {city} and feels great at {age}.
[Bosses/Customers] praise {name} as {a_job}, teammates praise the {hobby}. Not bad for someone who is {age} and new \
in {city}!
[Granted/True], {name} is {age}. Yet no other {job} in {city} brings such energy to {hobby}.
Since I [quit/left] school I've been {a_job}. You'll spot me around {city}, mostly doing {hobby}. Signed: {name}, age \
{age}
To whom it may concern: {name}, {age}, has faithfully served our {city} [office/branch] as {a_job}. We'll miss the \
tales of {hobby}.
{city}'s [radio/newspaper] interviewed {name} about {hobby}. Few listeners knew that {first} is {age} and otherwise \
active as {a_job}.
[Shy/Quiet] by nature, {name} blossoms when {hobby} is mentioned. Other facts: {age} springs old, employed as \
{a_job}, rooted in {city}.
Who [taught/showed] me {hobby}? That would be {name}, the {job} next door in {city}, who is {age} and sharp as a tack.
{a_job} by vocation, {name} [inhabits/rents] a tiny flat in {city}, counts {age} years and collects trophies in \
{hobby}.
""")

TICKET_TEXTS = lines("""
Due to a {device} that {problem}, {reporter} cannot [work/carry on/finish anything] in room {room}; ticket {ticket} \
was rated {priority} in [priority/urgency].
Having tried [everything/every trick] on a {device} that {problem}, {reporter} gave up and submitted ticket {ticket} \
from room {room}, choosing {priority} as the priority.
Could a colleague [walk over/drop by] to room {room}, where {reporter} is stuck with a {device} that {problem}? \
Reference {ticket}, urgency {priority}.
Freshly [dropped/arrived] in our queue: {ticket}, rated {priority} in priority. Its author {reporter} points to a \
{device} over in room {room} that {problem}.
[HELPDESK LOG/SYSTEM LOG/NEW ENTRY] id={ticket} priority={priority} user={reporter} room={room} device={device} \
problem="{problem}"
{Priority} is the priority [assigned/given/attached] to {ticket}, the ticket in which {reporter} describes a {device} \
that {problem} over in room {room}.
Guess what, the {device} down in room {room} now {problem}. So {reporter}, [poor soul/bless him], had to create \
ticket {ticket}, and it went in at priority {priority}.
Nobody in room {room} can use the {device}, because it {problem}. {reporter} begs for help under ticket number \
{ticket}, to be handled with {priority} priority.
"It [simply/just] {problem}," sighed {reporter} about the {device}, while the technician at door {room} ticked the \
box {priority} under priority and scribbled {ticket} as ticket number.
[Fault/Defect] in room {room}! {device}: {problem}. Contact person {reporter}, quote ticket {ticket}, treat it as \
{priority} priority.
Ever since {reporter} moved into room {room}, the {device} there has been a headache: it {problem}. We track this as \
{ticket} at {priority} [priority/urgency].
The {device} that {reporter} uses apparently {problem}, [I hear/people say]. Passing room {room}? Then bring along \
ticket {ticket}, whose priority was set to {priority}.
[Dear support team/Dear helpdesk], my {device} is driving me mad, for it {problem}. Come to room {room} and mention \
{ticket}, the ticket I got; its priority reads {priority}. Sincerely, {reporter}
For the [attention/eyes] of the night shift: {ticket} remains unsolved. {reporter}, room {room}, owns a {device} that \
{problem}, and the priority stays {priority}.
TICKET {ticket} STOP {device} STOP IT {problem} STOP ROOM {room} STOP PRIORITY {priority} STOP [SIGNED/SENT BY] \
{reporter}
One press of the button by {reporter} and [trouble began/disaster struck]: room {room} owns a {device} that \
{problem}. The desk issued {ticket} and judged the priority to be {priority}.
Not {reporter} but the {device} is to blame: it {problem}. Ticket {ticket} sends you to room {room} and [asks \
for/demands] {priority} priority.
[Hey/Yo] it's {reporter}, so the {device} just {problem} lol. im in room {room}, ticket's {ticket}, prio's {priority}
According to the [dashboard/display/monitor], ticket {ticket} carries {priority} priority, concerns a {device} that \
{problem}, points to room {room}, and names {reporter} as the sender.
Technician wanted in room {room}: a {device} that {problem}, and a user, {reporter}, who is [desperate/at a \
loss/annoyed]. File {ticket}, priority level {priority}.
Any {device} that {problem} makes people lose patience, and {reporter} in room {room} is no exception. We labelled \
the complaint {ticket} and ranked it {priority} on the [priority/urgency] scale.
A {priority}-priority request, {ticket}, reached the [helpdesk/IT desk] from room {room}, where {reporter} has been \
fighting with a {device} that {problem}.
The one waiting in room {room} is {reporter}. The thing to repair is a {device}, as it {problem}. The ticket to \
[close/solve] is {ticket}, and its priority is {priority}.
[Step one/First]: open ticket {ticket}. [Step two/Then]: find {reporter} in room {room}. Step three: repair the \
{device}, which {problem}. Keep in mind the {priority} priority.
They tell me that {reporter} of room {room} has [once more/again] run into a {device} that {problem}; the matter goes \
by {ticket} and ranks as {priority} priority.
Subject: {device}, which {problem}. Body: I can be found in {room}, second door, your computer assigned me {ticket} \
as ticket and suggests priority {priority}. [Best wishes/Warmly], {reporter}
[Yesterday/On Monday/Last week] a {device} belonging to {reporter} broke down in room {room}: it {problem}. Anyone \
picking up {ticket} will see {priority} in the priority field.
{ticket} is all about a {device}. It {problem}, and its user {reporter} would be [grateful/glad] for a visit to room \
{room}. Consider the priority {priority}.
Why so much fuss about {ticket}? [Well/You see], {reporter} depends on that {device} in room {room}, and it \
{problem}. That is why {priority} priority was stamped on the ticket.
Room {room} called again. {reporter} claims the {device} suddenly {problem}, [so/and thus] I started ticket {ticket} \
and left the priority at {priority}.
Behind door {room} sits {reporter}, staring at a {device} that {problem}. [Helpdesk/Service] ticket {ticket} rates \
this as {priority} priority.
A glance at {ticket}: priority {priority}; [complaint/symptom] "{device} still {problem}"; where, room {room}; raised \
by {reporter}.
Once you have read ticket {ticket}, you know that {reporter} depends on a {device} in room {room} and that it \
{problem}. [Urgency/Priority] there: {priority}.
[Good evening/Hello again], may I bring up {ticket} once more? Room {room} has not changed: its {device} still \
{problem}. Remember that you promised {priority} priority to this ticket. Cordially, {reporter}
As {reporter} put it, "my {device}, as usual, {problem}." The chat ended with ticket {ticket}, {priority} priority, \
and a [promise/plan] to look in on room {room}.
Escalation notice: {reporter} insists that the {device} once again {problem}. Priority of {ticket} changed to \
{priority}. [Send/Dispatch] someone to room {room}.
{room} is the room, {reporter} is the person, and the {device} is what {problem}. You will find it [all/recorded] \
under ticket {ticket} with priority {priority}.
Would you [kindly/please] inspect the {device} of my colleague {reporter} in room {room}? It {problem}. She was \
handed ticket number {ticket} and told the priority was {priority}.
[Summary/Recap] of the call: caller {reporter}, calling from room {room}, equipment {device}, which {problem}. \
Outcome: ticket {ticket} generated, priority {priority}.
One {device}, one problem: it {problem}. {reporter} [discovered/spotted] this in room {room} and was told to expect \
an answer to ticket {ticket} with {priority} priority.
Let us not forget {reporter}, who has waited in room {room} since [Friday/yesterday] with a {device} that {problem}; \
ticket {ticket} was classed as {priority} priority.
Although {priority} priority was all we granted, ticket {ticket} deserves an answer: {reporter} sits in room {room} \
with a {device} that {problem}.
Pinned on the board: {ticket}. Sender, {reporter}. [Statement/Explanation]: room {room} houses a {device}, and it \
{problem}. Chosen level of priority: {priority}.
[Careful/Attention], keep your hands off the {device} of {reporter}: it {problem}. Technicians were alerted by way of \
ticket {ticket} and will enter room {room} as {priority} priority demands.
Reminder for Tuesday: visit {reporter}, room {room}, ticket {ticket}. The job is a {device}; [it seems/apparently] it \
{problem}. Prioritised as {priority}.
Thank you, {reporter}! We regret that your {device} currently {problem}, and [will come/are coming] to room {room}. \
Keep the ticket number {ticket}; your case enjoys {priority} priority.
Priority {priority}, that is how [the boss/my manager] ranked {ticket}. It was {reporter} who sent it after a look at \
the {device} kept in room {room}, which {problem}.
In short: {device}, {problem}. [Longer version/In full]: {reporter} tried to use it in room {room}, failed, and \
applied for help, receiving ticket {ticket} and {priority} priority.
Status of ticket {ticket}: [unassigned/waiting]. Complainant: {reporter}. Office: {room}. Hardware: {device}. \
Symptom: {problem}. Importance: {priority}.
What bothers {reporter} is a {device} that {problem}. Whoever takes ticket {ticket} should head for room {room}; the \
priority, [by the way/incidentally], is {priority}.
The technician went through ticket {ticket} line by line: priority {priority}, room {room}, user {reporter}, and at \
the [bottom/end] the words "{device} - {problem}".
Work has stopped for {reporter}: what used to be a faithful {device} now {problem}. Follow ticket {ticket} to room \
{room} and [treat/tackle] it at {priority} priority.
[Friends/Folks], who can spare ten minutes for {reporter}? Room {room}, {device}, it {problem}. You can claim \
{ticket} in the system, listed under {priority} priority.
Our [tracker/system] shows {reporter} as the owner of ticket {ticket}. Cause: a {device} which, standing in room \
{room}, {problem}. The priority flag says {priority}.
I regret to announce that my {device} no longer behaves, it {problem}. Mine is room {room}, mine is the name \
{reporter}, and mine is ticket {ticket} with its {priority} [priority/urgency].
{device} - {problem}! Room {room} - {reporter}! Ticket - {ticket}! Priority - {priority}! [Now you know/That is \
everything].
Bad luck follows {reporter} everywhere: [today/this time] room {room} offers a {device} that {problem}. Add {ticket} \
to the tickets on your pile, {priority} priority.
In your hands now: {ticket}. There is a {device} that {problem}; it serves {reporter}, whose room number is {room}. \
[Deadline/Response time] according to {priority} priority.
Before [lunch/the meeting], swing by room {room}, greet {reporter}, and examine the {device}, since it {problem}. \
Afterwards close {ticket}, one of our {priority} priority tickets.
The janitor overheard {reporter} cursing in room {room} about a {device} that {problem}. There already exists a \
ticket, {ticket}, and [the desk/support] deems its priority {priority}.
""")
