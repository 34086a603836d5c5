"""Kinds of records about things: products, results of matches, books, and houses for rent."""

from rtlang.model.embedded import clauses_more_of_life
from rtlang.model.embedded import lexicon as lex
from rtlang.model.embedded.clauses_of_goods import BOOK, HOUSE, MATCH, PRODUCT
from rtlang.model.embedded.extras import COLOR, EMAIL, FURNISHED, IN_STOCK, PETS, PHONE, PUBLISHER, WEBSITE
from rtlang.model.embedded.kinds import Drawn, Kind, lines, money
from rtlang.model.embedded.lexicon import words
from rtlang.model.embedded.text_files import lines_of
from rtlang.model.embedded.words import Draw, article


def draw_product(draw: Draw) -> Drawn:
    (price, spelled), item = money(draw), draw.item(0)
    return {
        "product": item, "brand": draw.capital(), "material": draw.slot(lex.MATERIALS), "price": price,
        "weight": draw.number(1, 9000),
        "code": draw.any_code(),
    }, {"price": spelled, "a_product": article(item), "money": draw.pick(lex.CURRENCIES)}  # fmt: skip


product = Kind(
    "product", words("product|article|product description", "|"), draw_product,
    lines("""
The {product} by {brand} is [made of/crafted from/made from] {material}, weighs {weight} grams and costs {price} {money}. Code: {code}.
{brand} [sells/offers/makes] {a_product} made of {material} for {price} {money}. Weight: {weight} grams. Article code {code}.
New from {brand}: {product}, {material}, {weight} [g/grams], {price} {money}, code {code}
For {price} {money} you get {a_product} by {brand}. It is made of {material} and weighs {weight} grams. The [code/number] is {code}.
Product: {product}. [Brand/Maker]: {brand}. Material: {material}. Weight: {weight} g. Price: {price} {money}. Code: {code}.
Code {code} is {a_product} from {brand}. Material: {material}. It [weighs/comes to] {weight} grams. It costs {price} {money}.
Do you [need/want] {a_product}? The one by {brand} weighs {weight} grams, is made of {material} and costs {price} {money} ({code}).
{brand} [uses/works with/chose] {material} for its {product}. It weighs {weight} grams. Price: {price} {money}, code {code}.
Made of {material}, the {product} from {brand} weighs [only/just] {weight} grams. It is yours for {price} {money}. Order {code}.
Our shop has {a_product} [of/by/from] {brand} in {material}. Price {price} {money}, weight {weight} grams, code {code}.
[Item/Article] {code}: {product} ({brand}), {material}, {weight} grams, {price} {money}
I bought {a_product} made by {brand}. It cost {price} {money}, weighs {weight} grams, and the material is {material}. Code: {code}.
The brand {brand} [offers/sells] {a_product} ({code}) for {price} {money}. It is of {material} and weighs {weight} grams.
[Only/Just] {price} {money}: the {product} by {brand}, {weight} grams of {material}. Article {code}.
[Discover/Have a look at] the {product} with the number {code}. {brand} crafts it [from/out of] {material}. On the scales it shows \
{weight} grams, and the tag says {price} {money}.
Price: {price} {money}. Weight: {weight} g. Brand: {brand}. Code: {code}. Product: {product}. Material: {material}.
[How much is/What is the price of] the {product} from {brand}? It [sells/is on sale] for {price} {money}. Its code is {code}, its \
weight {weight} grams, its material {material}.
The label [reads/says] {code}. Inside you find {a_product} of {material}, {weight} grams in weight, [made/crafted] by {brand} and \
[priced at/sold for] {price} {money}.
[Hello/Hi], I am looking for code {code}. It should be {a_product} by {brand}, made of {material}, {weight} grams, for {price} {money}.
We [ask/take] {price} {money} for the {product} of {brand}. It is {material} and has a weight of {weight} grams. [Order number/Article \
number]: {code}.
{material}, {weight} grams, {price} {money}: {product} by {brand}, number {code}
A {brand} {product} costs {price} {money}. [People like it/It sells well], because the material is {material} and it weighs {weight} \
grams. The code [is/reads] {code}.
With its {weight} grams, the {product} from {brand} is easy to [carry/send]. [Material/Made of]: {material}. We sell it as {code} for \
{price} {money}.
{code} | {product} | {brand} | {material} | {weight} g | {price} {money}""") + lines_of("product"),
    lines("""
Discover {code}, {a_product} that {brand} crafts from {material}; at {weight} grams it goes for {price} {money}.
On the scales the {product} of {brand} shows {weight} grams; {material} inside, {price} {money} on the tag, {code} on the label.
{price} {money} is what {brand} asks for {a_product} ({material}, {weight} grams, number {code}).
Weighing {weight} grams and crafted from {material}, {a_product} by {brand} is sold as {code} at {price} {money}.
Look for {code} on the label: {brand} offers {a_product}, {price} {money}, all {material}, weight {weight} grams."""),
    (WEBSITE, COLOR, IN_STOCK),
    lines("""
[The product is/This article is/It is/We sell/Here comes] {a_product}.
[Product/Article/Item/What it is/Name of the product]: {product}.
[I bought/I am looking for/Do you need/You get/Our shop has] {a_product}[./ and I like it./, as the label says.]
[The brand is/The maker is/It is made by/It comes from the brand/The label names the brand/The brand that made it is] {brand}.
[Brand/Maker/Made by/From the house of]: {brand}.
{brand} [made it/is the brand/is the maker/stands on the label as the maker].
[It is made of/The material is/It is crafted from/You see and feel/All of it is] {material}.
[Material/Made of/Crafted from]: {material}.
[The maker uses/They work with/They chose] {material} [as material/as the material/for it].
[It weighs/The weight is/It has a weight of/On the scales it shows/It weighs only] {weight} grams.
[Weight/Weight in grams]: {weight}[./ grams./ g]
Weighing {weight} grams, it [fits in a bag/is easy to send/can be carried].
[With/At] {weight} grams it is [easy/not hard] to [send/carry/lift].
[It costs/The price is/It is yours for/The tag says] {price} {money}.
[Price/Cost/Price tag/To pay]: {price} {money}.
[I paid/They ask/We take/You pay/It is sold for/It is priced at] {price} {money}.
[The code is/The article code is/The number is/Order it as/The label reads] {code}.
[Code/Article code/Article number/Number/Order number]: {code}[./]
[Look for the code/Please give the code/It is listed as/We sell it as/Discover number] {code}.
[The {product} is/This {product} is/The {product} was] made by {brand}.
{brand} [sells/offers/makes/crafts] {a_product}.
The {product} is [made of/made from/crafted from] {material}.
The {product} [weighs/has a weight of/comes to/shows a weight of] {weight} grams.
The {product} [costs/goes for/is sold for/is priced at] {price} {money}.
The {product} [has the code/is number/is listed as/carries the code] {code}.
{brand} [uses/works with/chose] {material} for it.
{brand} [asks/takes/wants] {price} {money} for it.
[It weighs {weight} grams and costs {price} {money}/It costs {price} {money} and weighs {weight} grams].
[Article/Code/Number] {code} costs {price} {money}.
[Article/Code/Number] {code} [is/stands for] {a_product}."""),
    aliases={"a_product": "product", "money": ""},
    clauses=PRODUCT + clauses_more_of_life.PRODUCT,
)  # fmt: skip


def draw_match(draw: Draw) -> Drawn:
    goals = draw.number(0, 99 if draw.chance(0.4) else 7)
    return {
        "winner": draw.team(), "loser": draw.team(), "winner_score": goals + draw.number(1, 5), "loser_score": goals,
        "sport": draw.slot(lex.SPORTS), "date": draw.any_date(),
    }, {}  # fmt: skip


match = Kind(
    "match", words("match|result|game", "|"), draw_match,
    lines("""
{winner} [beat/defeated/won against] {loser} {winner_score} to {loser_score} in {sport} on {date}.
{sport}, {date}: {winner} [won against/beat/defeated] {loser}, {winner_score}:{loser_score}.
On {date} {winner} won the {sport} [match/game] against {loser} with {winner_score} to {loser_score}.
{loser} [lost to/was beaten by] {winner} by {loser_score} to {winner_score} in {sport} on {date}.
The {sport} [game/match] of {date} ended {winner_score}-{loser_score} for {winner} against {loser}.
Result ({sport}, {date}): winner {winner} {winner_score}, loser {loser} {loser_score}
{winner} scored {winner_score} and {loser} scored {loser_score}, so {winner} won at {sport} on {date}.
With {winner_score} to {loser_score}, {winner} [defeated/beat] {loser} on {date} ({sport}).
In {sport}, {loser} had only {loser_score} against {winner} with {winner_score}. [Date/Day]: {date}.
Fans of {winner} [are happy/celebrate]: a {winner_score} to {loser_score} win over {loser} in {sport} on {date}.
{date}. {sport}. {winner} {winner_score}, {loser} {loser_score}.
A [bad/sad] day for {loser}: on {date} they lost the {sport} [match/game] {loser_score} to {winner_score} to {winner}.
The match on {date} went to {winner}. {loser} lost {loser_score} to {winner_score}. Sport: {sport}.
In the {sport} league, {winner} [beat/defeated] {loser} on {date}. The score was {winner_score}:{loser_score}.
They played {sport} on {date}. {winner} had {winner_score} points and {loser} had {loser_score}, [so/and so] {winner} [won/was the \
winner].
[Winner/Won by]: {winner} ({winner_score}). [Loser/Lost by]: {loser} ({loser_score}). Sport: {sport}. Date: {date}.
We [watched/saw] {sport} on {date}. {loser} was not strong enough and lost with {loser_score} to {winner_score} points against {winner}.
What a [triumph/day]! {winner} scored {winner_score} on {date}, {loser} only {loser_score}. The sport was {sport}.
{loser} scored {loser_score}, [which was not enough/too few], for {winner} scored {winner_score} and won. [Sport/Game]: {sport}. Played \
on {date}.
[Who won/Who was stronger] in {sport} on {date}? It was {winner} with {winner_score}, and {loser} lost with {loser_score}.
{winner} proved stronger than {loser}: {winner_score} to {loser_score}. They met on {date} [to play/for] {sport}.
The final score of {date} is {winner_score} for {winner} and {loser_score} for {loser}, who [lost/had to admit defeat]. It was {sport}.
Defeat for {loser}! {winner} took the {sport} game on {date}. [Points/Score] of the winner: {winner_score}. [Points/Score] of the \
loser: {loser_score}.
[Dear fans/Hello], on {date} our {winner} celebrated a win in {sport}. We got {winner_score}, and poor {loser} got {loser_score}.
Loser: {loser}, {loser_score}. Winner: {winner}, {winner_score}. Played: {sport}, {date}.
{sport} | {date} | winner {winner} | loser {loser} | {winner_score} to {loser_score}""") + lines_of("match"),
    lines("""
{winner} celebrated a {winner_score} to {loser_score} {sport} triumph at the expense of {loser} on {date}.
{loser} had to admit defeat in {sport} on {date}: {loser_score} points against the {winner_score} of {winner}.
When {sport} was played on {date}, {winner} ({winner_score}) proved stronger than {loser} ({loser_score}).
Only {loser_score} for {loser} on {date}; in this game of {sport}, {winner} got {winner_score} and won.
{date} saw {winner} score {winner_score} points; the defeat in {sport} went to {loser} with {loser_score}."""),
    (),
    lines("""
[The winner is/The winner was/The game was won by/The match went to/The fans celebrate] {winner}.
[Winner/Won by/Winning team/First]: {winner}.
[{winner} won/{winner} was stronger/{winner} took the game/{winner} celebrated a triumph/{winner} won the match].
[The loser is/The loser was/The game was lost by/Defeat for/It was a sad day for] {loser}.
[Loser/Lost by/Losing team/Second]: {loser}.
[{loser} lost/{loser} was not strong enough/{loser} lost the game/The team that had to admit defeat is {loser}/{loser} lost the match].
[The winner scored/The winner had/The winning team got/The winners scored] {winner_score}[./ points.]
[Score of the winner/Points of the winner/Winner score/Winning score]: {winner_score}[./]
[The better team scored/The stronger team had/The score of the winner was] {winner_score}[./ points.]
[The loser scored/The loser had/The losing team got only/The losers scored] {loser_score}[./ points.]
[Score of the loser/Points of the loser/Loser score/Losing score]: {loser_score}[./]
[The other team, which lost, scored/The weaker team had only/The score of the loser was] {loser_score}[./ points.]
[The sport is/The sport was/They played/It was a game of/We watched] {sport}.
[Sport/Game/Played/Kind of sport]: {sport}.
[The fans love/The teams met to play/This is news about] {sport}.
[The date was/The game was on/The match took place on/They met on/It was played on] {date}.
[Date/Day/Played on/Day of the match]: {date}.
[We watched it on/The teams played on/It happened on/When did they play? It was on] {date}.
{winner} [beat/defeated/won against/proved stronger than/triumphed over] {loser}.
{loser} [lost to/lost against/was beaten by/was defeated by] {winner}.
{winner} won, at the cost and expense of {loser}.
{winner} won with {winner_score}[./ points.]
{winner} [won and had/was the winner and scored/won, scoring] {winner_score}[./ points.]
{loser} lost with {loser_score}[./ points.]
{loser} [lost and had/was the loser and scored/lost, scoring] [only /just /]{loser_score}[./ points.]
[The score was/It ended/The final score is/The result was] {winner_score} to {loser_score} [for the winner/for the winning team].
[On {date} they played {sport}/They played {sport} on {date}/The {sport} match was on {date}].
{winner} [won/celebrated a win/was the winner] on {date}.
{winner} [won/is the winner/was stronger] in {sport}.
{loser} [lost/was defeated/was the loser] on {date}.
{loser} [lost/is the loser/was weaker] in {sport}."""),
    clauses=MATCH + clauses_more_of_life.MATCH,
    verbs_tell_roles=True,
)  # fmt: skip


def draw_book(draw: Draw) -> Drawn:
    genre = draw.slot(lex.GENRES, (), 0.15)
    return {
        "title": draw.title(), "author": draw.full_name(), "year": draw.number(1890, 2030), "genre": genre,
        "pages": draw.number(40, 1200),
    }, {"a_genre": article(genre)}  # fmt: skip


book = Kind(
    "book", words("book|title|book review", "|"), draw_book,
    lines("""
"{title}" is {a_genre} by {author}, [published/printed/released] in {year}. It has {pages} pages.
{author} [wrote/published/released] "{title}" in {year}. The {genre} has {pages} pages.
In {year}, {author} [published/released/wrote] the {genre} "{title}" with {pages} pages.
[Book/Title]: {title}. [Author/Written by]: {author}. Year: {year}. Genre: {genre}. Pages: {pages}.
I just [read/finished/bought] {title} by {author}, {a_genre} from {year}. It has {pages} pages.
{title} ({year}), {genre}, {pages} pages, [written by/by] {author}
The {genre} "{title}" [came out/appeared/was released] in {year}. {author} needed {pages} pages to tell it.
With {pages} pages, "{title}" is the longest {genre} of {author}. It was [published/printed] in {year}.
{author}: {title}. {year}. {pages} pages. Genre: {genre}.
Have you read "{title}"? It is {a_genre} of {pages} pages that {author} [wrote/published/released] in {year}.
The library has "{title}" by {author} ({year}). Genre: {genre}. It is {pages} pages long.
A [new/second] copy of {title} arrived. Author {author}, year {year}, {pages} pages, {genre}.
From {year} comes "{title}", {a_genre} by {author} with {pages} pages.
{pages} pages, {genre}, {year}: this is "{title}" by {author}.
Genre: {genre}. Pages: {pages}. Year: {year}. Author: {author}. Title: {title}.
Readers [like/love/know] "{title}". {author} [filled/needed] {pages} pages with this {genre}, [printed/published] in {year}.
The book of the [week/month] is "{title}", because {author} knows how to write {a_genre}. It has {pages} pages and [came out/was \
printed] in {year}.
{author} became famous in {year}. [That was when/In that year] "{title}" came out, {a_genre} of {pages} pages.
[Who wrote/Who is behind] "{title}"? It was {author}. The {genre} [has/fills] {pages} pages and is from {year}.
On my [desk/shelf] lies "{title}". It is {pages} pages long, from the year {year}, and the author is {author}. [Genre/It is listed as]: \
{genre}.
[Looking for/Do you like] a {genre} book? Try "{title}" by {author}. It appeared in {year} and has {pages} pages.
This {genre} has {pages} pages. It [bears/has] the title "{title}", [is the work of/was written by] {author}, and was released in {year}.
The year was {year}. {author} had just [finished/written] "{title}", {pages} pages in all. [The genre is {genre}/It is {a_genre}].
{title} | {author} | {genre} | {year} | {pages} pages
In {year}, {author} [publishes/releases] {title} ({genre}, {pages} pages)""") + lines_of("book"),
    lines("""
Readers know {author} for "{title}", {pages} pages of {genre} printed in {year}.
"{title}" filled {pages} pages when {author} released this {genre} in {year}.
It was {year} when the {genre} "{title}" ({pages} pages) made {author} famous.
Printed in {year}: {pages} pages by {author}, called "{title}", a work of the genre {genre}.
Among the {genre} books of {year}, "{title}" is famous; its {pages} pages are the work of {author}."""),
    (WEBSITE, PUBLISHER),
    lines("""
[The title is/The book is called/I read/Have a look at/The title of the book is] "{title}".
[Title/Book/Name of the book]: {title}.
[The library has/On my desk lies/Readers love/We got a copy of/A new copy arrived of] "{title}".
[Have you read/Do you know/Did you like] "{title}"?
[The author is/It was written by/The book is by/It is the work of/The writer is called] {author}.
[Author/Written by/By/Writer]: {author}.
This book made {author} [famous/happy/known to everybody].
{author} [wrote it/is the author/wrote the book/is the writer/became famous with it].
[It was published in/It came out in/It was printed in/It is from the year/It appeared in/It was released in] {year}.
[Year/Published in/Printed in/Released in/Year of release]: {year}[./]
[The year was/The first print is from/The book was finished in/People have known it since] {year}.
[It is {a_genre}/The book is {a_genre}/The genre is {genre}/It is listed as {genre}/The library lists it under {genre}].
[Genre/Kind of book/Type]: {genre}.
[It is among the {genre} books/You find it among the {genre} books/Its genre is {genre}].
[Do you like {genre} books?/If you like {genre} books, read it./This {genre} is worth reading.]
[It has/It fills/The book has/It took me a week to read/The story needs] {pages} pages.
[Pages/Number of pages/Length in pages]: {pages}[./]
[It is {pages} pages long/There are {pages} pages in it/I counted {pages} pages/You get {pages} pages].
{author} [wrote/is the author of/published/is famous for/released] "{title}".
"{title}" [came out/appeared/was printed/was published/was released] in {year}.
"{title}" is [{a_genre}/a {genre} book].
"{title}" [has/fills/is a book of] {pages} pages.
"{title}" is [by/the work of/a book by] {author}.
{author} [wrote/finished/published/released] it in {year}.
{author} [needed/filled/wrote] {pages} pages.
The {genre} has {pages} pages.
[The {genre} is by/The author of this {genre} is/This {genre} is the work of] {author}."""),
    aliases={"a_genre": "genre"},
    clauses=BOOK + clauses_more_of_life.BOOK,
)  # fmt: skip


def draw_house(draw: Draw) -> Drawn:
    kind = draw.pick(("house", "flat", "apartment", "studio", "cottage", "villa"))
    return {
        "kind": kind, "address": draw.street(),
        "city": draw.place_name(),
        "rooms": draw.number(1, 9), "area": draw.number(18, 400), "rent": draw.number(20, 500) * 10,
    }, {"a_kind": article(kind)}  # fmt: skip


house = Kind(
    "listing", words("listing|house ad|offer", "|"), draw_house,
    lines("""
For rent: {kind} with {rooms} rooms and {area} square meters at {address}, {city}. Rent: {rent} [a/per] month.
This {kind} at {address} in {city} [has/offers] {rooms} rooms on {area} square meters and costs {rent} [per/each/a] month.
{address}, {city}: {kind}, {area} [m2/square meters], {rooms} rooms, {rent} per month
In {city} you can [rent/move into/get] {a_kind} of {area} square meters. It has {rooms} rooms and costs {rent}. Address: {address}.
The {kind} costs {rent} a month, has {rooms} rooms on {area} square meters and [is/lies/is located] at {address} in {city}.
[Kind/Type]: {kind}. Address: {address}. City: {city}. Rooms: {rooms}. [Area/Size]: {area}. Rent: {rent}.
We rent out our {kind} in {city}. Rooms: {rooms}. [Size/Area]: {area} square meters. Rent: {rent}. It is at {address}.
[Nice/Quiet/Sunny/Bright] {kind} in {city}, {address}. {rooms} rooms on {area} square meters. The rent is {rent}.
For {rent} a month you [get/rent] {rooms} rooms and {area} square meters in this {kind} at {address}, {city}.
{rooms} rooms with {area} square meters for {rent} [a month/monthly/per month]: {kind} at {address} in {city}.
[There is {a_kind}/We have {a_kind}] with {rooms} rooms free in {city}. You find it at {address}. It has {area} square meters and the \
rent is {rent}.
My {kind} at {address} has {area} square meters and {rooms} rooms. It is in {city} and I [ask/want] {rent} per month.
{city}: the {kind} at {address} is [for rent/free]. {area} square meters, {rooms} rooms, monthly rent {rent}.
At {address} in {city} there is {a_kind} with an area of {area} square meters, {rooms} rooms, and a rent of {rent}.
[Tenants/New tenants] wanted! We offer {a_kind} in {city}, located at {address}. {rooms} rooms on {area} square meters for {rent} monthly.
Rent: {rent}. Area: {area} square meters. Rooms: {rooms}. Kind: {kind}. {address}, {city}.
Do you [look for/need] {a_kind} in {city}? This one has {area} square meters, {rooms} rooms, costs {rent} monthly, and you [see/visit] \
it at {address}.
I [would like/want] to rent out {a_kind}. The address is {address}, the city is {city}. With {rooms} rooms and {area} square meters it \
is yours for {rent} a month.
[Hello/Hi], we [move out of/leave] our {kind} at {address}. {city} is [lovely/nice], the {area} square meters are split into {rooms} \
rooms, and the monthly rent is {rent}.
The landlord asks {rent} per month. [In return/For that], tenants get {a_kind} in {city} with {rooms} rooms. Size: {area} square \
meters. Address: {address}.
How much is the {kind} in {city}? The rent of {address} is {rent} a month, [and/but] you get {area} square meters and {rooms} rooms.
{rooms} rooms are [waiting/free] in {city}: {a_kind} at {address} with {area} square meters. It [costs/is] {rent} monthly.
Move in [today/soon/next month]: {a_kind}, {area} square meters in size. {rooms} rooms, {rent} per month, {address}, {city}.
[Visit/See] {address} in {city}. The {kind} there measures {area} square meters. Number of rooms: {rooms}. [Rent/Price] per month: {rent}.
{kind} | {city} | {address} | {area} square meters | {rooms} rooms | {rent} per month""") + lines_of("house"),
    lines("""
Move into {a_kind} in {city}: {address} offers {area} square meters split into {rooms} rooms for {rent} monthly.
{rent} per month buys you this {kind} ({rooms} rooms, {area} square meters) located at {address}, {city}.
Tenants wanted for {address}, {city}, {a_kind}; {rooms} rooms, {area} square meters, {rent} monthly.
Split into {rooms} rooms, the {kind} located in {city} at {address} measures {area} square meters; tenants pay {rent}.
{city} has {a_kind} free at {address}: {rooms} is the number of rooms, {area} square meters the size, monthly {rent}."""),
    (
        PHONE, EMAIL,
        FURNISHED,
        PETS,
    ),
    lines("""
[For rent is/We rent out/We offer/It is/This offer is about/You can rent] {a_kind}.
[Kind/Type/For rent/What we offer]: {kind}.
[Do you look for/Do you need/Would you like to live in] {a_kind}?
[My/Our/This] {kind} is [free/for rent/looking for tenants].
[The address is/It is at/It is located at/You find it at/You can see it at] {address}.
[Address/Street/Located at/Where]: {address}.
[Come and see it at/The door you look for is/Please visit/We live at] {address}.
[The city is/It is in the city of/It is located in/You will live in/The place is in] {city}.
[City/Town/Place]: {city}.
[Move to/Come and live in/We leave the lovely town of] {city}.
[It has/There are/You get/It offers/It is split into] {rooms} rooms.
[Rooms/Number of rooms]: {rooms}[./]
[The number of rooms is/We counted the rooms and found/If you count the rooms, you get] {rooms}.
[It has/It measures/The area is/The size is/You get/It offers] {area} square meters.
[Area/Size/Size in square meters/Living area]: {area}[./ square meters./ m2]
[It is {area} square meters in size/There are {area} square meters to live on/With {area} square meters it is just right].
[The rent is/It costs/We ask/The landlord asks/Tenants pay] {rent} [a month/per month/monthly].
[Rent/Monthly rent/Rent per month/Price per month]: {rent}[./]
{rent} [buys you one month/is the rent/is what a month costs].
[It is yours for/You pay/You can have it for] {rent} [a month/per month/monthly].
[The {kind} is/This {kind} is/We have {a_kind}] in {city}.
[The {kind} is/The {kind} is located/The {kind} stands] at {address}.
The {kind} [has/offers/is split into] {rooms} rooms.
The {kind} [has/measures/offers] {area} square meters.
The {kind} [costs/is/goes for] {rent} [a month/per month/monthly].
[It is at/You find it at/It is located at] {address} in {city}.
[{rooms} rooms on/{rooms} rooms and] {area} square meters.
[Rent {a_kind}/Have a look at {a_kind}] in {city}.
[{area} square meters/All {area} square meters] for {rent} [a month/per month/monthly]."""),
    aliases={"a_kind": "kind"},
    clauses=HOUSE + clauses_more_of_life.HOUSE,
)  # fmt: skip
