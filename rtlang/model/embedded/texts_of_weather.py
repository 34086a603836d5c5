"""Whole texts about the weather, each of which tells every field of a record. Held-out ones are in `kinds_of_travel`."""

from rtlang.model.embedded.kinds import lines

WEATHER_TEXTS = lines("""
Why the long face? [Because/Since] my trip to {city} falls on {day}, and they announced {condition}, gusts measuring \
{wind} km/h, no reading above {high} and one as poor as {low}.
Bus shelter notice, {city}. {day} brings {condition}. Warmest {high}, coldest {low}, wind {wind} km/h. \
[Passengers/Travelers] should wait inside.
An anemometer in {city} showed {wind} km/h on {day}; next to it hung a thermometer that went no lower than {low}, no \
higher than {high}, and a sign [announcing/reading] "{condition}".
[Mum/Dad] phoned from {city}: {condition} there all {day}, {low} at dawn, {high} after lunch, and the wind clocks \
{wind} km/h.
[Homework/Exercise]: draw a weather chart of {city}. Write {day} on top, {condition} beside the sun symbol, {wind} \
km/h beside the arrow, {high} in red for the maximum, {low} in blue for the minimum.
Ferry passengers to {city} hear this on {day}: "We sail despite {wind} km/h of wind. Outside it was {low} before \
breakfast, [heading for/bound for] {high}, weather type {condition}."
[yo/hey] whats {city} like {day}?? - {condition} lol, {low} min {high} max, wind {wind} kmh
Guess what the app thinks of {city}! [Title/Heading] {day}, icon {condition}, red number {high} for the peak, blue \
number {low} for the bottom, arrow with {wind} km/h of wind.
STATION {city} -- DAY {day} -- SKY {condition} -- TMAX {high} -- TMIN {low} -- WIND {wind} KMH
No warmer than {high}, no colder than {low}: that sums up {day} for {city}, where [forecasters/experts] foresee \
{condition} weather plus a {wind} km/h wind.
Having bottomed out at {low}, temperatures around {city} recovered to {high} on {day}. Sky report: {condition}; wind \
[measurement/reading]: {wind} km/h.
"{condition} again," sighed the baker of {city} on {day}, reading {high} as the maximum, {low} as the minimum and \
{wind} km/h [on the wind gauge/for the wind].
Sailors, note that {wind} km/h winds sweep {city} come {day}. Skies look {condition}, and the thermometer ranges \
[between {high} and {low}/from {high} down to {low}].
Dear [listeners/viewers], {day} greets {city} with {condition} weather. You will sweat or shiver at {high} tops, \
{low} at the least, and feel {wind} km/h of wind.
Frost or not, {low} is the bottom value that {city} records on {day}, {high} is the peak, {wind} km/h is what the \
wind does, and the whole day [counts as/feels] {condition}.
On {day} the airport at {city} logged: sky {condition}; wind speed {wind} km/h; daily minimum {low}; daily \
[maximum/peak] {high}.
Wedding guests, [listen/attention]! {city}, this {day}, weather {condition}. Tents are fixed against {wind} km/h \
wind, heaters run at {low} and fans at {high}, the two extremes of the day.
"{condition}", prints the [newspaper/gazette] about {city} for {day}, and below it three figures: wind {wind} km/h, \
night {low}, noon {high}.
My balcony plants in {city} survived {low} overnight, bathed in {high} at noon and danced in {wind} km/h of wind: \
that was {day}, weather type [reading/being] {condition}.
Which coat should I wear in {city} on {day}? [Well/Hm], {condition} skies, {wind} km/h of wind, at most {high} and at \
least {low} degrees ought to help you decide.
Nobody in {city} should count on more than {high} degrees or [worry about/fear] less than {low} come {day}; think \
{condition}, think {wind} km/h wind.
{day}'s question in {city} is not whether but how strongly it blows: {wind} km/h. [Besides/Also], {condition}, with \
{low} as the lower limit and {high} as the upper.
Max {high}. Min {low}. {wind} km/h. {condition}. That is {day} in [good old/sunny or not,] {city}.
Kites [love/need] wind, and {city} supplies {wind} km/h of it on {day}; the sky is meant to be {condition}, the range \
{low} at the cold end, {high} at the warm end.
Farmers near {city} were told to cover their plants, as {day} night plunges to {low}; before that, {high} is attained \
under a {condition} sky [and/with] {wind} km/h winds.
{day} + {city} = {condition}. Temps: {high} (max), {low} (min). Wind [speed/now]: {wind} km/h.
Just landed in {city}! The pilot announced {condition} weather for {day}, wind {wind} km/h, a peak of {high} and a \
[chilly/nightly] minimum of {low}.
Hikers setting off from {city} on {day} must reckon with {wind} km/h gusts. It is [set/supposed] to be {condition}, \
with {high} degrees when warmest and {low} when coldest.
Dispatch from our reporter in {city}, {day}: "{condition} at the moment. Cold [bit/nipped] at {low} last night, but \
{high} came later, and {wind} km/h of wind messed up my hair."
Seen from my [window/balcony] in {city}, {day} appears {condition}. My thermometer read {low} before sunrise, {high} \
at three o'clock; the wind app displays {wind} km/h.
Umbrella verdict for {city}, {day}: the wind, {wind} km/h, decides. [Other facts/The rest]: {condition}; {high} when \
the sun is highest, {low} when everyone sleeps.
City {city}; weekday {day}; general picture {condition}; warmest value {high}; coldest value {low}; [wind speed/air \
movement] {wind} km/h.
Heating in {city} kicked in on {day} when the sensor felt {low}, and switched off at {high}, the day's peak. The \
[display/panel] also showed {condition} and wind {wind} km/h.
Wind? {wind} km/h. Sky? {condition}. Max and min? {high} and {low}. Where and when? {city}, [next/this coming] {day}.
Bees stay home in {city} on {day}, [says/explains] the honey seller: {wind} km/h is their wind, {condition} their \
weather, {low} their night and {high} their noon.
The [mayor/council] of {city} warns cyclists: {day} delivers {wind} km/h headwinds. Temperatures span {low} to \
{high}, and overall it seems {condition}.
Three numbers and a word for {city}, please! {day}: {low} minimum, {high} maximum, {wind} km/h wind, and the word \
[is/goes] {condition}.
Between a {low} degree morning and a {high} degree afternoon, {city} spends its {day} being {condition}, \
[fanned/brushed] by a {wind} km/h wind.
Never mind the calendar: {day} in {city} tops out at {high}, bottoms out at {low}, stays [mostly/largely] {condition} \
and sees {wind} km/h winds.
{city} residents [woke/rose] on {day} to find it {condition}. Instruments registered a {wind} km/h wind, {low} as the \
daily low and {high} as the daily high.
[FLASH/ALERT]: wind {wind} km/h hits {city} on {day}. {condition}. Temps peak {high}, trough {low}.
Tourists bound for {city} will notice on {day} that the wind, which achieves {wind} km/h, [matters/counts] more than \
the {condition} sky or the {high} high and {low} low.
Our sensor [recorded/stored] these values on {day}: {high} highest, {low} lowest, {wind} km/h wind. Its camera in \
{city} judged the sky {condition}.
I hear {day} turns out {condition} over in {city}, with the wind pushing {wind} km/h; [dress/prepare] for {low} early \
on and {high} later.
Although {high} degrees tempt people outside in {city} on {day}, the {wind} km/h wind and a nightly {low} keep \
[some/many] at home. Officially it is {condition}.
WEATHER CARD * {day} * {city} * {condition} * [warm end/upper value] {high} * [cold end/lower value] {low} * wind \
{wind} km/h
Roof work at our {city} branch is [postponed/off]. Reason: {wind} km/h of wind on {day}. Further data for the \
planner: {condition}; thermometer maximum {high}, thermometer minimum {low}.
Runners, the {city} race happens on {day}! Start at {low} degrees, finish at {high}, [count on/reckon with] \
{condition} weather and {wind} km/h blowing.
I checked two apps about {city}. Both [gave/named] {condition} for {day} and {wind} km/h for the wind; they also \
shared a minimum of {low} and a maximum of {high}.
Tent diary, {day}, near {city}. Slept badly at {low}, [sunbathed/lunched] at {high}, the day's two extremes. The \
ranger had warned us: {condition}, wind {wind} km/h.
{wind} km/h winds, {low} to {high} degrees and a {condition} outlook make up the [bulletin/briefing] issued for \
{city} concerning {day}.
Question for {day}: can you stand {wind} km/h of wind? If so, {city} [offers/serves] you {condition} hours ranging \
from a {high} peak to a {low} trough.
The sky above {city} keeps {condition} throughout {day}. Daytime warmth ends at {high}, night brings it back to \
{low}, and the wind [maintains/holds] {wind} km/h.
{condition}! That word describes {city} on {day}, [says/writes] our reporter, who noted {wind} km/h of wind, a \
minimum of {low} and a maximum of {high}.
Monthly log, entry {day}: coldest {low}, warmest {high}, wind {wind} km/h, appearance {condition}, place of \
[observation/measurement] {city}.
Crane operators, {city} site: {wind} km/h wind on {day}, so [lower/secure] the jib. Shift starts at {low} degrees, \
the day's least, and ends at {high}, its most; weather {condition}.
Where will I be on {day}? In {city}, land of {condition} and {wind} km/h wind, wearing a coat at {low} and \
[carrying/dropping] it at {high}.
So {city} expects {condition} for {day}, does it? Yes, and [the app/my phone] adds: wind {wind} km/h, night {low}, \
day {high}.
Children in {city} may play outdoors on {day}, the school decided, given that it is {condition}, {high} at midday, \
{low} at [sunrise/daybreak] and the wind only shows {wind} km/h.
Skiers and swimmers alike ask about {city}. For {day} the answer reads {condition}, {wind} km/h winds, [lows/minimum] \
near {low}, [highs/maximum] near {high}.
""")
