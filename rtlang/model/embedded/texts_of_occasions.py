"""Whole texts of events and recipes, each of which tells every field of a record. Held-out ones are in `kinds_of_occasions`."""

from rtlang.model.embedded.kinds import lines

EVENT_TEXTS = lines("""
Having [rented/secured] the {place}, {host} is throwing {an_event} on {date}; the first guests are expected at {time}.
{time}, that's when {host} wants everyone inside the {place}. The {event} falls on {date}, [don't be late/be \
punctual].
Due to [heavy rain/popular demand], the {event} that {host} had in mind was moved to the {place}: {date}, from {time} \
onward.
Did you hear? {host} is [cooking up/dreaming up] {an_event}, {date}, {time}, and the {place} will be packed!
"It [kicks off/gets going] at {time} and not a minute later," warned {host}, speaking of the {event} scheduled for \
{date} over at the {place}.
[LOG/INFO] calendar_entry type="{event}" [loc/location]="{place}" day="{date}" [start/begin]="{time}" owner="{host}"
{event} CONFIRMED STOP {date} AT {time} STOP [GO TO/COME TO] {place} STOP {host}
yo, {host} texted. {event} at the {place}, {date}, guess around {time}? [u in/you coming]?
[Locals/Neighbors] flock to {place} as {host} stages {event} on {date}, {time}
[Dear guest/Dear neighbor], it is my pleasure to request your company at {an_event} in our {place}. We assemble at \
{time} on {date}. Yours faithfully, {host}
Tickets for the {event} are [selling fast/going like hot cakes]! {host} presents it on {date} in the {place}; curtain \
up at {time}.
Got plans? [Drop/Scrap] them: {host} treats us all to {an_event}. Destination {place}, departure {date}, and lateness \
after {time} [costs a drink/will be punished].
If you [happen/chance] to pass the {place} on {date}, drop in: from {time}, {host} will be giving {an_event}.
[Caretaker/Janitor], unlock the {place} before {time} on {date}, since {host} needs it for {an_event}.
[Poster/Flyer] on the wall: {event}! {place}! {date}! {time}! Presented by {host}.
Whoever [fancies/enjoys] {an_event} should turn up at the {place} when the clock strikes {time} on {date}. It was \
{host} who arranged it.
The mayor has [allowed/permitted] {host} to use the {place} for {an_event}, provided that nobody shows up before \
{time} on {date}.
No, the {event} isn't [cancelled/off]. {host} merely shifted it to {date}, {time}, and to the {place}.
{date} [can't come soon enough/will be a big day]: at {time}, {host} unveils the {event} in the {place}.
Once the [bell rings/music plays] at {time}, {host} will declare the {event} open. Head for the {place} on {date}.
A little bird told me {host} is the one behind {an_event}; people [whisper/murmur] of {date}, of the {place}, of \
{time}.
Who's the [brain/boss] behind the {event}? {host}. And where do people gather? In the {place}, {date}, {time}.
{place}, {date}. [Crowds/Visitors] will line up well before {time}, for {host} is holding {an_event}.
I've [talked/roped] {host} into hosting {an_event}! Keep {date} free and show up at the {place} around {time}.
For your [diary/planner] -> {date} @ {time} -> {event} -> {place} -> [c/o/contact] {host}
time={time}; [venue/loc]={place}; title={event}; [by/owner]={host}; date={date}
{event} | {host} | {date} | [from /at /]{time} | {place}
Thanks to {host}, our [village/street] finally gets {an_event}. The fun starts in the {place} at {time}, and the day \
to remember is {date}.
[Please RSVP/Kindly reply] to {host}, who is expecting you at the {event}: {place}, {date}, {time}.
[Chairs/Tables] will be set up in the {place} by noon on {date}, so that {host} can launch the {event} at {time}.
Although the {place} is [small/hard to find], {host} insists on having the {event} there on {date}. Arrive by {time} \
to get a seat.
[Breaking/Just in]: {host} picks {date} for {event}, {place} to fill from {time}
Let's not [forget/miss] what {host} promised us, namely {an_event} on {date}. Shall we walk to the {place} together \
and be there at {time}?
Under the [guidance/direction] of {host}, {an_event} will unfold in the {place}. Timing: {date}, {time}.
It's [official/settled]! After months of talk, {host} signed for the {place}, and the {event} goes ahead on {date} at \
{time}.
Mom, on {date} I'm off to the {place}. There's {an_event} that {host} is putting together, and it [begins/gets under \
way] at {time}.
Last [call/reminder]: registration for {an_event} by {host} ends soon. We get together {date}, {time}, inside the \
{place}.
[Staff/Crew] must report to {host} in the {place} by {time}, as the {event} is due on {date}.
Of all days, {host} has fixed {date} for the {event}. So, {time} at the {place}, [rain or shine/come what may].
Room planner: the {place} [is blocked/stays locked] for others as of {time} on {date}, because {host} needs it. \
Reason given: {event}.
[Bring cake/Wear warm shoes]! {host} celebrates with {an_event}, out at the {place}, {date}, and things get rolling \
at {time}.
By order of {host}: {an_event} shall be conducted in the {place} on {date}, commencing [promptly/precisely] at {time}.
Picture this: {date}, {time}, the {place} full of [laughter/lights], and {host} beaming because the {event} has drawn \
a crowd.
Voicemail: "[Hiya/Hello], {host} speaking. We pushed the {event} back to {time}, still {date}, still the {place}. \
Bye!"
Nobody knows the {place} better than {host}, so the {event} there on {date} is [in good hands/bound to succeed]. Turn \
up at {time}.
[Parking/Seating] near the {place} is limited on {date}; those joining the {event} of {host} should be seated by \
{time}, when it starts.
[Fans/Lovers] of a good {event} rejoice: {host} brings one to the {place}, {date}, {time}.
Program. [Opening/Welcome]: {time}. Offered: {event}. Setting: {place}. Calendar day: {date}. In charge: {host}.
When {host} [sends out/mails] invitations, people come. So on {date} at {time} they will stream into the {place} for \
the {event}.
[To all members/To all staff]: the {event}, headed by {host}, convenes in the {place} at {time}, and the day chosen \
is {date}.
Would {time} [suit/work for] you? That is the hour at which {host} will kick off the {event}, {date}, in the {place}.
{host} couldn't [resist/help it]: {an_event}, right in the {place}! Circle {date} and come by at {time}.
Since the old hall burned down, {host} has had to relocate the {event} to the {place}. [Nothing else changes/The rest \
stays]: {date}, {time}.
Only those who reach the {place} by {time} on {date} will catch the {event}, [says/explains] its organizer {host}.
Minutes: it was [decided/resolved] that {host} shall prepare {an_event}. Slot: {date}, {time}. Room: {place}.
My [aunt/boss/teacher], {host}, is sponsoring {an_event} on {date}, and I'm to greet people at the {place} from \
{time}.
[Hungry for company/Nothing to do] on {date}? At {time} the {place} comes alive with {an_event}, courtesy of {host}.
Brought to you by {host}, [this season's/this year's] {event} lands in the {place} on {date}, {time}.
As of [today/now], {date} is taken: {host} reserved my {time} for {an_event} down at the {place}.
To [mark/celebrate] the end of the year, {host} gives {an_event}. {place}, {date}, and from {time} there will be \
music.
""")

RECIPE_TEXTS = lines("""
With {needs} in the [house/fridge/pantry], nothing stops you from serving {dish} to {servings} people in just \
{minutes} minutes.
[Chop/Wash and chop] {needs}, simmer the lot for {minutes} minutes, then divide the {dish} among {servings} plates.
{servings} hungry mouths were fed when mother boiled {needs} for {minutes} minutes and [called/named] the result \
{dish}.
{Dish} requires [no more than/nothing but] {needs}, keeps you busy for {minutes} minutes and satisfies {servings} \
eaters.
Having bought {needs}, the chef spent {minutes} minutes on {dish}, which was shared by {servings} \
[guests/friends/neighbours].
Could you fix us some {dish}? We will be {servings} people, we own {needs}, and dinner starts in {minutes} minutes, \
[exactly/just] as long as it has to cook.
The secret of our {dish} lies in {needs}, baked for [precisely/a full] {minutes} minutes and sliced into {servings} \
portions.
[Tip of the day/Kitchen news]: {dish}! Throw {needs} together, give them {minutes} minutes, and {servings} people \
will thank you.
Name of dish: {dish} | Cooking: {minutes} min | Yield: {servings} portions | [Basket/Shopping]: {comma}
A pan, a fire, {minutes} minutes and {needs}: that is how {dish} comes into being, [sufficient/plenty] for {servings}.
My aunt swears by {needs} whenever she bakes {dish} for {servings}; [she says/and] the oven does its job in {minutes} \
minutes.
If {servings} people drop in, whip up {dish}. Grab {needs}, set the timer to {minutes} minutes and [relax/smile].
[Dear Anna/Dear friend], you asked about my {dish}. It consists of {needs}, is on the table {minutes} minutes after I \
begin, and yields {servings} portions.
{minutes} minutes sounds [long/short/about right], but that is what {dish} demands. Besides time, you must supply \
{needs}; the reward is {servings} full plates.
Did you know that {needs}, heated for {minutes} minutes, give a wonderful {dish}? [My pot/One pot] holds {servings} \
servings.
{servings} bowls, please! The waiter wants {dish}, so fry {needs} and [hurry/move], since it all takes {minutes} \
minutes.
No time to cook? {Dish} asks for {minutes} minutes only. Besides {needs} you will need no ingredients, and {servings} \
people [eat well/get their share].
From {needs} the [monks/villagers] brew their {dish}, leaving it to bubble for {minutes} minutes before {servings} \
persons gather around it.
DISH {dish} STOP BRING {comma} STOP COOK {minutes} MINUTES STOP [EXPECT/FEED] {servings} GUESTS
"Delicious," said all {servings} guests about the {dish}. The hostess [admitted/revealed] that she had merely roasted \
{needs} for {minutes} minutes.
Portions: {servings}. Minutes on the heat: {minutes}. What goes in: {comma}. What comes out: {dish}. [Enjoy/Good \
luck]!
Before the {servings} children come home, [steam/grill] {needs} for {minutes} minutes and hide the {dish} under a lid.
The {dish} I learned from [a neighbour/my uncle] combines {needs}. Allow {minutes} minutes, and reckon with \
{servings} helpings.
Picture this: {needs} sizzling away for {minutes} minutes while {servings} people wait for their {dish} at the \
[long/old] table.
Because {servings} of us were starving, we turned {needs} into {dish}; the clock showed that only {minutes} minutes \
had [passed/gone by].
[Card/Page] 12. {dish}. Blend {comma}. Rest for {minutes} minutes. Portion out for {servings}.
Whoever wants to offer {dish} to {servings} visitors should stock up on {needs} and [set aside/reserve] {minutes} \
minutes.
omg this {dish} is so good!! just {needs}, {minutes} min and boom, [dinner/lunch/food] for {servings}
When the {minutes} minutes are up, remove the pot, spoon the {dish} onto {servings} plates and [praise/bless] what \
made it so tasty: {needs}.
Unlike other recipes for {dish}, this one skips the fancy stuff and relies on {needs}. {servings} persons are full, \
and {minutes} minutes [suffice/are enough].
The menu promises {dish}. Behind it [hide/stand] {needs}, {minutes} minutes of work by the cook, and a bowl big \
enough for {servings} eaters.
{needs}, these are the things to [fetch/pick up] from the market if {servings} people are to enjoy {dish} tonight. \
The stove needs {minutes} minutes.
How many will your {dish} feed? {servings}. And what is inside? {needs}. When can we sit down? [In/After] {minutes} \
minutes.
Start [early/now], as {dish} must stew for {minutes} minutes. Into the pot belong {needs}. Ladle out {servings} \
servings.
According to the cookbook, {servings} diners will manage one pot of {dish}, which you obtain by warming {needs} over \
{minutes} [slow/gentle] minutes.
Layer {needs} in a dish, slide it into the oven, [read a book/take a nap] for {minutes} minutes, and surprise \
{servings} people with {dish}.
Quantity: {servings} portions. Product: {dish}. Raw materials: {comma}. Process time: {minutes} minutes. \
[Approved/Checked] by the kitchen.
Granny never measured anything, yet her {dish} always [sufficed/was right] for {servings}: {needs}, a stir now and \
then, {minutes} minutes, finished.
To feed {servings} at once, the camp cook tossed {needs} into a kettle; {minutes} minutes later {dish} was \
[ladled/dished] out.
A [newspaper/magazine] printed this {dish} on Sunday: purchase {needs}, knead well, bake {minutes} minutes, cut for \
{servings}.
Don't forget {needs} on the way home, [darling/dear]! I plan {dish} for {servings}, and it has to go in the oven \
{minutes} minutes before we eat.
{Dish} smelled so good while {needs} cooked! It [needed/swallowed] {minutes} minutes and was gone at once, for \
{servings} hungry people had licked their plates clean.
Not two, not three, but {servings} persons can dine on this {dish}. You [peel/rinse] {needs} and boil them for \
{minutes} minutes.
[Kitchen timer/Oven display]: {minutes} minutes remaining. Program: {dish}. Servings programmed: {servings}. \
Ingredients loaded: {comma}.
I always thought {dish} was difficult, until I saw that {needs} suffice. Now I treat {servings} friends to it, as \
{minutes} minutes [fly by/are nothing].
Among the students {dish} counts as a classic: everyone chips in for {needs}, somebody watches the pan for {minutes} \
minutes, and {servings} [roommates/people] tuck in.
First come {needs}, then {minutes} minutes of [patience/waiting], and finally {servings} portions of the finest \
{dish}.
Tonight's {dish} will stretch to {servings} people. While {minutes} minutes tick away on the [oven/stove], recall \
what you put in: {needs}.
[Whisk/Beat] {needs} until smooth, chill for {minutes} minutes, and there it is: {dish}, meant to be split between \
{servings}.
They say that in the village {dish} is cooked with {needs} and that a batch, ready within {minutes} minutes, \
[lasts/nourishes] {servings} people.
Serving {servings}, the {dish} on this card combines {comma}. Preparation and cooking [together/combined] last \
{minutes} minutes.
Mix it, heat it, eat it! {minutes} minutes separate {needs} from {dish}, and {servings} [people/lucky guests] from a \
good meal.
A reader asks about {dish}. [Answer/Our answer]: fill the pan with {needs}, keep the flame low, count {minutes} \
minutes; such amounts are right for {servings} eaters.
{comma} - that's the list. {minutes} minutes - that's the time. {servings} people - that's the crowd. {Dish} - that's \
the [dish/meal].
Who would have thought that {needs} could become such a {dish}? We [counted/measured] {minutes} minutes of cooking \
and {servings} generous portions.
The cooking class of [Monday/Thursday] produced {dish}: each group sliced {needs}, cooked for {minutes} minutes and \
arranged {servings} servings.
Should {servings} visitors ring the bell, [stay calm/don't panic]: {dish} happens in {minutes} minutes, provided that \
{needs} are at hand.
Reserve the big pot for {dish}. Its {servings} servings involve {needs}, plus a cooking time that [runs to/amounts \
to] {minutes} minutes.
We sat down, {servings} in number, and devoured the {dish} that Father had conjured up from {needs} in \
[hardly/barely] {minutes} minutes.
Under the heading {dish} my [notebook/old diary] says: melt {comma}; stir for {minutes} minutes; pour into {servings} \
cups, one per person.
""")
