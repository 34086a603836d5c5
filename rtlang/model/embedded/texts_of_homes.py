"""Whole texts about books and homes to rent, each of which tells every field of a record. Held-out ones are in `kinds_of_goods`."""

from rtlang.model.embedded.kinds import lines

BOOK_TEXTS = lines("""
Critics praised {author} for "{title}", {a_genre} that hit the shops in {year} and [runs/stretches] to {pages} pages.
Spare me short stories! "{title}" feeds {genre} fans with {pages} pages, as {author} [intended/wished] when it \
appeared on the market in {year}.
Yesterday I borrowed {a_genre} titled "{title}"; all {pages} pages were composed by {author} back in {year}, [the \
label says/says the cover].
Nobody expected {author} to produce {a_genre}, yet in {year} along came "{title}", {pages} pages [thick/strong].
Over {pages} pages, {author} unfolds the {genre} plot of "{title}", first [issued/sold] in {year}.
"{title}" kept me awake for {pages} pages! {author} invented this {genre} in {year}, and I [adore/admire] it.
CATALOG CARD: {author}. {title}. First edition {year}. {pages} pp. [Class/Shelf]: {genre}.
Ever since {year}, when "{title}" reached bookshops, {author} has been a name in the {genre} [scene/field]; the \
volume counts {pages} pages.
[hey/psst] got a tip for u: {title}, author {author}, its {a_genre}, {pages} pages, from {year}
Shop assistant: "{author}? Sure, we stock {title}, from {year}." Customer: "{pages} pages of {genre}? [Wrap it \
up/I'll take it]!"
My [aunt/teacher] swears by {author}, especially by "{title}": {genre}, {pages} pages, year of publication {year}.
Only {pages} pages? Yes, but what pages! {author} created "{title}" in {year}, {a_genre} to [fall in love \
with/remember].
Credited to {author}, the {pages}-page book "{title}" dates back to {year} and is [shelved/classed] as {genre}.
{year} gave us "{title}". {author} delivered {pages} pages of {genre}, and we [thank/salute] the author for each one.
Item for sale: used {genre} book, {title}, {pages} pages, author {author}, printed {year}, [good/fair] condition.
Please return "{title}" to the library: it is the {genre} volume of {pages} pages from {year} that {author} \
[authored/signed].
Dear [editor/publisher], enclosed you find my {genre} manuscript "{title}", {pages} pages, meant to come out in \
{year}. Yours, {author}
Among everything {author} ever put on paper, "{title}" stands out: {pages} pages, the year {year}, [pure/genuine] \
{genre}.
{author}'s {year} book "{title}" comprises {pages} pages and has been [labelled/called] {genre} ever since.
If {a_genre} is what you crave, {author} wrote one in {year}; ask for "{title}" and [set aside/reserve] time for \
{pages} pages.
Clocking in at {pages} pages, {author}'s {genre} "{title}" saw the light of day in {year}, [reports/notes] the \
magazine.
Which {genre} did {author} bring out in {year}? "{title}", [of course/naturally], all {pages} pages of it.
Our reading [club/circle] chose {author} this time. We are discussing "{title}", {a_genre} dated {year}; everyone \
must get through {pages} pages.
Stop press: {author} [unveils/launches] "{title}" in {year}, {a_genre} weighing in at {pages} pages
Page {pages} is the last one of "{title}", the {genre} with which {author} surprised the [public/world] in {year}.
"{title}", by which {author} is best known, was brought out in {year}; {pages} pages of {genre} [await/welcome] you.
[Grandma/Mother] read me "{title}" at bedtime, {pages} pages in total. It's {a_genre} that {author} thought up in \
{year}.
Not a poem, not a play: "{title}" is {a_genre}. {author} had it printed in {year}, and {pages} pages [were bound/got \
filled].
Copyright {year} by {author}. "{title}" contains {pages} pages. [Category/Section]: {genre}.
I, {author}, dedicate my {genre} "{title}" to my children. They waited {pages} pages for it, [right up to/until] \
{year}.
Whoever opens "{title}" will meet {pages} pages of {genre} from the pen of {author}, who [submitted/completed] them \
in {year}.
Auction lot 12: {author}, "{title}", {year} edition, {pages} leaves counted as pages, [subject/style] {genre}.
Although "{title}" runs for {pages} pages, I devoured it in a night, so well does {author} handle {genre}. \
[Publication/Launch] took place in {year}.
In the {genre} corner you will [spot/find] {author} with "{title}", a {year} release of {pages} pages.
ORDER SLIP / 1 x {title} / writer {author} / {pages} pages / {genre} / edition of {year}
Having sold well since {year}, "{title}" earned {author} a fortune. It [presents/offers] {pages} pages of {genre}.
Few {genre} books are as loved as "{title}", which {author} gave to the world in {year} and which [covers/occupies] \
{pages} pages.
Would {author} ever top "{title}"? That {genre}, {pages} pages and born in {year}, [remains/stays] unmatched, say \
reviewers.
Review: four stars. {author} [spreads/stretches] the {genre} story of "{title}" across {pages} pages. First available \
in {year}.
Turning {pages} pages has never been so easy: "{title}", {author}'s {genre}, [debuted/premiered] in {year}.
The prize for best {genre} went in {year} to the newly published "{title}"; its creator {author} [bowed/smiled] and \
held up all {pages} pages.
On the spine: {title}. Below it: {author}. Inside: {pages} pages, {genre}, [stamped/marked] {year}.
Students must [study/analyse] {author}'s "{title}" ({genre}, {pages} pages, appeared {year}) before the exam.
Translated from the original of {year}, "{title}" by {author} now numbers {pages} pages and still [ranks/passes] as \
{genre}.
[Wanted/Sought]: "{title}", {a_genre} that came off the press in {year}. It should have {pages} pages and {author} on \
the cover.
Without {author}, {year} would have lacked its finest {genre}, the {pages}-page [wonder/treasure] "{title}".
Rumor says {author} dictated "{title}" in bed. True or not, {year} brought this {genre} into stores, {pages} pages \
[long/and all].
Book no. 88 | by {author} | called {title} | length {pages} pages | type {genre} | out since {year} | [available/on \
loan]
You asked about "{title}". [Our/The] computer lists {author} as author, {genre} as genre, {year} as year, and {pages} \
as page count.
Back in {year} a young writer named {author} mailed {pages} pages to a publisher, who [titled/named] the {genre} \
"{title}" and put it out that same year.
As {genre} goes, "{title}" is hard to beat; {author} [packs/squeezes] it into {pages} pages, and readers have enjoyed \
it since {year}.
{title}? Oh, that's {author}'s, {a_genre}. {year}, I [think/believe], and {pages} pages if you count them all.
Published {year}: {title}. Fans of {genre} will [cherish/welcome] what {author} achieves within {pages} pages.
For my birthday I [got/unwrapped] {a_genre}. The jacket reads "{title}", {author}, {year}; the final page bears \
number {pages}.
It's {author} who deserves credit for "{title}"; {genre} lovers bought the {pages}-page volume [in droves/eagerly] on \
its release in {year}.
Lend me "{title}", will you? I mean the {genre} by {author} that was launched in {year}; {pages} pages won't \
[scare/bother] me.
A masterpiece of {genre}, "{title}" consists of {pages} pages, owes its existence to {author} and [hails/stems] from \
{year}.
Sitting on the train, a man leafed through {pages} pages of "{title}", the {genre} that {author} [brought \
out/printed] in {year}.
METADATA title={title}; creator={author}; issued={year}; extent={pages} pages; genre={genre}; [status=ok/language=any]
[Today/Tonight] {author} reads from "{title}", {a_genre} published in {year}, though surely not from all {pages} \
pages.
""")

HOUSE_TEXTS = lines("""
Tenants pay {rent} a month for this {area} square meter {kind} at {address}, {city}, which [comprises/contains] \
{rooms} rooms.
[Anyone/Somebody] interested in {a_kind}? {city}, {address}, {rooms} rooms, {area} sqm, {rent} monthly, dm me
Situated at {address} in {city}, the {kind} boasts {rooms} rooms, spreads over {area} square meters and \
[fetches/commands] {rent} per month.
Monthly payments of {rent} secure you {a_kind} in {city}: {address}, {rooms} rooms, [altogether/in total] {area} \
square meters.
Goodbye hotel, hello {city}! Your next {kind} stands at {address}, counts {rooms} rooms, [covers/fills] {area} square \
meters and sets you back {rent} monthly.
My [aunt/uncle] lets her {kind} in {city} for {rent} a month; it stretches across {area} square meters, is divided \
into {rooms} rooms and bears the address {address}.
LETTING NOTICE -- {kind} -- {address} -- {city} -- {rooms} rms -- {area} sqm -- {rent} pcm -- [apply within/call now]
Nobody has lived at {address} since spring, so the owner in {city} is letting the {kind}, {area} square meters and \
{rooms} rooms, [cheaply/again] for {rent} a month.
With {area} square meters to fill, you won't feel cramped in this {kind} ({rooms} rooms). {address}, {city}. {rent} \
is [due/payable] each month.
Dear Sir or Madam, I [wish/am writing] to let my {kind}, {address}, {city}. Its {rooms} rooms total {area} square \
meters and the rent amounts to {rent}.
Students, share this! {rooms} rooms, one {kind}, {rent} a month between you; find it in {city} at {address}, {area} \
square meters [large/big].
Recently renovated, the {kind} on offer at {address} provides {area} square meters, {rooms} rooms and a \
[charming/handy] spot in {city}, all for {rent} monthly.
Why share a sofa when {rent} monthly [unlocks/opens] {a_kind}? It is {city} we are talking about, {address} to be \
precise, {area} square meters, {rooms} rooms.
Would {rent} per month be too much for {rooms} rooms in {city}? The {kind} in question, {address}, [extends/runs] to \
{area} square meters.
Owing to a move abroad, we hand over our {area} square meter {kind} in {city} ({rooms} rooms, {address}) to whoever \
[pays/affords] {rent} a month.
Form A. City: {city}. Street and number: {address}. Object: {kind}. Floor space: {area} square meters. Room count: \
{rooms}. [Rent due/Monthly charge]: {rent}.
If you fancy living in {city}, consider {address}: {a_kind}, neither too big nor too small at {area} square meters, \
{rooms} rooms, [rented out/going] for {rent} monthly.
"How big?" "{area} square meters, {rooms} rooms." "How much?" "{rent} a month." "Where?" "{address}, {city}, [a \
lovely/a real] {kind}."
Broker's pick: {a_kind}, {city}. [Viewing/Meeting] point {address}. After {rooms} rooms and {area} square meters of \
walking, sign for {rent} monthly.
Grandparents upstairs, kids downstairs: {rooms} rooms make it possible. {city}, {address}, {kind}, {area} square \
meters, rent [fixed/frozen] at {rent} a month.
Only {rent}! That is what one month in the {kind} at {address} costs. {city} surrounds it, {rooms} rooms \
[share/divide] the {area} square meters.
Just listed in {city}: {area} m2 {kind}, {rooms} rooms, {rent} monthly, key [available/waiting] at {address}
Transfer {rent} by the first of each month and the {kind} is yours, [promised/said] the owner of {address}, {city}. \
It holds {rooms} rooms within {area} square meters.
How about {a_kind}? [Imagine/Picture] {rooms} rooms and {area} square meters in {city}, at {address}, against {rent} \
each month.
Measured by an expert, the {kind} has {area} square meters exactly. Its {rooms} rooms at {address}, {city}, are being \
[leased/let] at {rent} a month.
Will you [feed/keep] my fish? Then I sublet you my {kind} for {rent} a month. I mean the one in {city}, {address}, \
where {rooms} rooms make {area} square meters.
To let in {city} from May: spacious {kind}, number of rooms {rooms}, living space {area} square meters, {address}, \
[asking/basic] rent {rent}.
According to the [advert/newspaper], one pays {rent} per month at {address}, {city}, and occupies {a_kind} with \
{rooms} rooms spanning {area} square meters.
My landlord wants out, so I am [seeking/hunting for] a successor: {kind}, {city}, {address}; I paid {rent} a month \
for {area} square meters and {rooms} rooms.
Six friends or one family, {rooms} rooms can take you all. The {kind} occupies {area} square meters at {address}, \
{city}; [budget/reckon] {rent} monthly.
{address} is where it is, {city} is the town, {kind} is the type. You get {area} square meters in {rooms} rooms and \
[owe/pay] {rent} per month.
Don't miss this {kind}! {rooms} rooms and {area} square meters rarely go for {rent} a month in {city}, and surely not \
[at/near the park at] {address}.
Contract summary. Premises: {kind}, {address}. Town: {city}. Extent: {area} square meters, {rooms} rooms. Tenant \
shall [remit/settle] {rent} monthly.
Having [inherited/bought] {a_kind} in {city}, I now let it: {rent} a month, {area} square meters, {rooms} rooms, door \
sign {address}.
Last chance to [see/view] the {kind} before it goes! Saturday, {address}, {city}. Bring questions about its {rooms} \
rooms, its {area} square meters or its {rent} monthly rent.
A month's rent comes to {rent} in the case of this {kind}, which lies in {city}, {address}, and [embraces/takes in] \
{area} square meters over {rooms} rooms.
[URGENT/ASAP] subletter needed!! {kind} in {city}, {address}, {rent} per month, {rooms} rooms, {area} sqm
Light floods all {rooms} rooms of the {kind} we are advertising in {city}. {address}; {area} square meters; {rent} \
each month [plus bills/before bills].
From {address} you overlook half of {city}. The {kind} there, {area} square meters distributed over {rooms} rooms, \
[rents/lets] for {rent} a month.
Moved to {city} last week, [hooray/yay]! I found {a_kind}, my new address is {address}, my rent {rent} a month, and I \
own too little furniture for {rooms} rooms or {area} square meters.
Agent's log: showed {kind}, {address}, {city}; client liked {rooms} rooms, measured {area} square meters, [haggled \
over/accepted] {rent} per month.
As small or large as {area} square meters may sound, the {kind} squeezes {rooms} rooms into them; {city}, {address}, \
[yours/available] for {rent} a month.
Caption: the {kind} at {address}, {city}, now vacant. Rooms: {rooms}, together {area} square meters. Whoever signs \
[spends/parts with] {rent} a month.
What does {rent} a month get you in {city}? At {address} it gets you {a_kind}, {rooms} rooms and {area} square meters \
[included/no less].
{city} -> {address} -> {kind} -> {rooms} rooms -> {area} m2 -> {rent} monthly -> [book/arrange] a viewing
Our {kind} became too quiet for us. Somebody else should enjoy its {rooms} rooms in {city}, {area} square meters at \
{address}, [charged/billed] at {rent} per month.
Email subject: {kind}, {city}. Body: thanks for asking! Yes, {address} is still [unlet/to be had]. {rent} a month \
buys {area} square meters, and walls make {rooms} rooms of it.
Exchange offered: take over my lease of {rent} a month in {city}. {address} [houses/holds] my {kind} with {rooms} \
rooms on an area of {area} square meters.
The widow at {address} is willing to lease her {kind} to quiet people. {city} knows her rent: {rent} a month, {rooms} \
rooms, [roughly/fully] {area} square meters.
Be [quick/fast]: {area} square meters in {city} for {rent} monthly won't stay free long! It concerns {a_kind}, \
{rooms} rooms, {address}.
Listing 4711 * {a_kind} * rooms {rooms} * size {area} square meters * rent {rent} monthly * {address} * {city} * \
[pets ok/garage]
Price drop in {city}! The landlord of {address} now [accepts/settles for] {rent} a month. Same {kind}, same {rooms} \
rooms, same {area} square meters.
Sara told me a {kind} in {city} became vacant, {address}, I believe. She [mentioned/remembered] {area} square meters, \
{rooms} rooms and {rent} per month.
Unfurnished {kind} seeks friendly occupant. I have {rooms} rooms, weigh in at {area} square meters, reside at \
{address}, {city}, and [cost/ask for] {rent} monthly.
Lost tenant, found chance: our lodger married and quit {city}. Her old {kind}, {address}, keeps its {rent} monthly \
price; the plan on the wall says {area} square meters and [shows/lists] {rooms} rooms.
Cooking, sleeping, working: {rooms} rooms give space for all. This {kind}, {area} square meters at {address}, \
[graces/enriches] {city} and goes for {rent} a month.
Prospective tenants of the {kind} should [deposit/wire] {rent} for the first month. They will then receive keys to \
{address}, {city}, {area} square meters, {rooms} rooms.
Tired of [commuting/driving] to {city}? Settle at {address}, in {a_kind} big enough for anyone: {area} square meters, \
{rooms} rooms. It rents at {rent} monthly.
The size, {area} square meters, and the {rooms} rooms convinced me; {rent} monthly didn't [hurt/shock] me either. So \
I took the {kind} in {city}, {address}.
Note on the board: "{kind} needs flatmates or a family. {area} square meters, {rooms} rooms, {rent} monthly. \
[Walk/Come] to {address}, {city}, any evening."
""")
