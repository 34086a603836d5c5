"""Clauses of texts about things: products, results of matches, books, and houses for rent."""

from rtlang.model.embedded.clauses import Clauses
from rtlang.model.embedded.kinds import lines

PRODUCT = Clauses(
    cores=lines("""
the {product} [is here/has come in/stands in the window/sells well/is ready to be sent/is new/is worth the money/will please you]
[meet/see/order/try/get/buy/take home/do not miss] [the/our/this] {product}
[here is/this is/what you see is/what you hold is/today we show] {a_product}
[we/they/most shops] [stock/carry/sell/have/ship/keep] {a_product}
my [sister/uncle/neighbor/friend/boss] [wants/bought/needs/ordered/was given/keeps] {a_product}
[need/want/looking for] {a_product}? [This one is for sale/This one is in stock/This one will do/Wait no longer]
{brand} [presents/launches/builds/makes/turns out/brings out/ships/designs] [{a_product}/the {product}]
{brand} is [the maker of/the brand behind/the name on/proud of] the {product}
{brand} [stands for quality/has something new/is the maker/is the brand on the box/made it/builds things that last]
{brand} [charges/demands/bills/wants/gets] {price} {money}[/ for the {product}/ for it]
{brand} [trusts/relies on/loves/swears by/shapes/turns to] {material}
[nobody but/only] {brand} makes such {a_product}
the {product} [bears the name of/is the pride of/carries the mark of/goes back to/was designed by] {brand}
{material} [gives/lends] [the {product}/it] its [shape/beauty/look/strength]
{material} is [what it is made of/what the {product} is made of/the material/what {brand} uses/what you feel]
{price} {money} [is the price/will do/buys it/buys the {product}/is all it takes/is the price of the {product}/goes to {brand}]
{weight} grams [is the weight/is all it weighs/is what the {product} weighs/is not much/of {material} make the {product}/lie in your hand]
{code} [is the article/is in stock/is the code on the box/means the {product}/is what you type/is made by {brand}/costs {price} {money}]
[article/number/code/item] {code} [is in/is new/has arrived/is {a_product}/weighs {weight} grams/is on sale]
[order/ask for/search for/type/quote/enter/write down] [{code}/number {code}/article {code}/the code {code}]
the {product} [tips the scales at/comes in at/does not weigh more than/adds up to] {weight} grams
the {product} [sets you back/sells at/is marked down to/can be had for/will cost you] {price} {money}
[pay/expect to pay/put down/spend/send us] {price} {money}[/ and it is yours/ for the {product}]
[customers/buyers/people/our readers] [like/love/praise/recommend/ask about] [the {product}/{brand}/it]
[this/the] [article/item/piece/parcel/thing] [is new/sells well/has arrived/can be sent today/is for sale/was returned]"""),
    adjuncts=lines("""
, {a_product}
, [namely/in short/in a word/to be exact] {a_product}
[, product/, what it is/, name of the thing/, the thing itself]: {product}
, [the thing in question being/which is/that is to say] {a_product}
[listed as/filed under/described as/known as] {a_product}
[if you want/when you need/for those who need/as soon as you need] {a_product},
[as for the/speaking of the/looking at the/about this] {product},
by {brand}
[from/of] the [house/maker/brand/workshop] {brand}
[made/built/designed/produced/signed/put together] by {brand}
, [which/something that] {brand} [makes/builds/designed/turns out]
, [the brand being/brand name/maker:/brand:/the maker is] {brand}
[carrying/bearing/showing] the [name/mark/sign] of {brand}
[whose maker is/whose brand is/with the brand name] {brand}
[coming/straight/fresh/bought] from {brand}
[thanks to/as made at/in the workshop of] {brand}
of {material}
[in/out of][/ fine/ pure/ the best/ strong/ dark] {material}
[made of/built of/cut from/formed out of/shaped from/consisting of/produced from/all in] {material}
, [the material being/material:/the stuff it is made of is] {material}
[whose material is/with a body of/with a surface of/for friends of] {material}
, [which is/which they make] [of/out of/from] {material}
, {material} [through and through/from top to bottom/and nothing else]
for {price} {money}
[at/at a price of/at the price of/at a cost of/for a mere/for only/for no more than] {price} {money}
[costing/priced/selling at/worth/marked] {price} {money}
, [price:/the price being/cost:/to be paid:/now] {price} {money}
, [which costs/which sells for/which sets you back/whose price is] {price} {money}
[against/in return for/on payment of/once you pay] {price} {money}
[if you have/for anyone with/with only] {price} {money} [to spend/in your pocket/to give]
[with/with a weight of/with its/at/of] {weight} grams
[at/of] {weight} g
[light at/heavy with/as light as/weighing/weighing in at/bringing in] {weight} grams
, [weight:/the weight being/weight in grams:/in grams] {weight}
, {weight} grams [in all/net/in weight/on the kitchen scales/heavy]
, [which weighs/whose weight is/and it weighs] {weight} grams
[under/under the code/under the number/under article number/as number/as article] {code}
[coded/numbered/marked/labelled/registered as] {code}
, [code:/number/article code:/article/the code being/order number/item no.] {code}
[with/with the code/with the number/bearing the code/carrying the number] {code}
, [whose code is/which has the code/which we list as/which you order as] {code}
[if you order/when you type/on entering] {code},
{price} {money} [for/buying you] {weight} grams of {material}
[for/at] {price} {money} and [with/only] {weight} grams
in {material} by {brand}
, [{a_product} by {brand}/{a_product} in {material}/a {brand} product of {material}/{a_product} with the code {code}]
, {weight} grams for {price} {money}
, {code} by {brand}"""),
)

MATCH = Clauses(
    cores=lines("""
{winner} [won/wins/takes it all/comes out on top/goes home happy/is the winner/has won/triumphs/carries the day/finishes first]
{loser} [lost/loses/goes down/goes home sad/is the loser/came up short/had nothing to cheer/was beaten/is left with nothing/finishes second]
{winner} [beats/defeats/overpowers/outplays/overcomes/is too good for/gets the better of/sees off/knocks out/sinks] {loser}
{winner} [beat/outclassed/crushed/stopped/was a class above/had the better players than/made short work of] {loser}
{loser} [loses to/falls to/bows to/is no match for/finds no answer to/goes down to/has to give way to/suffers at the hands of] {winner}
{loser} [was crushed by/was sunk by/was beaten by/was outplayed by/could not stop/could not keep up with] {winner}
[victory/the win/the cup/glory/the prize] [goes to/belongs to/is in the hands of] {winner}
[the loss/the beating] [hurts/is hard on/hits] {loser}
[congratulate/cheer for/applaud/well done for/bow to/three cheers for] {winner}
[comfort/feel sorry for/do not ask about/spare a thought for] [the beaten/poor/unlucky/the losers of] {loser}
nobody [could stop/can beat/was better than] {winner}
there was no [hope/luck/prize/way to win] for {loser}
[players/supporters/the coach/friends] of {winner} [sang/danced/enjoyed the win/could not stop smiling/thanked the crowd for the victory]
[players/supporters/the coach/friends] of {loser} [left early/wept/want to forget the loss/had hoped for a win in vain]
the [match/game/contest/meeting/final] [took place/was played/is over/came to an end/had a winner/was worth the ticket]
the [match/game/contest/final] [ended/finished/closed] {winner_score} [to/against] {loser_score} [for/in favor of] {winner}
the [match/game/contest] [ended/closed] {loser_score} to {winner_score} to the disadvantage of {loser}
{winner} [scores/collects/puts up/makes/ends on/reaches] {winner_score}[/ points] [to win/and wins/and takes the win]
{loser} [manages/collects/reaches/ends on/stops at] [only/just/no more than/a mere] {loser_score}[/ points]
{winner_score}[ points/] [won it for/were enough for/made the winner of/carried to victory/brought the win to] {winner}
{loser_score}[ points/] [could not save/were too few for/were all there was for the losers of/did not help] {loser}
{winner_score} to {loser_score} [was the score/it ended/is how {winner} won/says it all about the win of {winner}]
{loser_score} to {winner_score} is how {loser} lost
{date} [was the day of the match/brought victory to {winner}/was a black day for {loser}/is when {winner} won/is when {loser} lost]
{sport} [was on/is what they played/is the game in which {winner} won/is where {loser} lost/fans cheered for the win of {winner}]
[lovers/friends/followers/reporters] of {sport} [saw a fine game/had a treat/filled the seats/talk about the win of {winner}]"""),
    adjuncts=lines("""
[won by/with a win for/with victory for/with a triumph of/as a win for/to the honor of] {winner}
, [the winner being/the winners were/winner:/won by:/the better team being] {winner}
[where/in which/as/because/so that] {winner} [won/came out on top/took the win/was the better team/carried the day]
[after losing to/beaten by/after a defeat by/at the hands of/crushed by/stopped by/second only to] {winner}
[against/facing] the [stronger/better/victorious/winning] [team/side/players] of {winner}
[with/thanks to] {winner} [as the winner/on the winning side/in top form and winning]
[beating/defeating/outplaying/winning against/having beaten/stopping/humbling/after beating] {loser}
[in/with/after] a [win/victory/triumph] over {loser}
[lost by/with a defeat for/as a defeat for/with a loss for/to the shame of] {loser}
, [the loser being/the losers were/loser:/lost by:/the beaten side being/the weaker team being] {loser}
[while/as/because/and so] {loser} [lost/went down/was beaten/had to lose/was too weak/played badly and lost]
[leaving/sending home] the [beaten/defeated/losing] {loser}
[at the cost of/too much for/too strong for/to the sorrow of] {loser}
with {loser} [as the loser/losing/left behind/on the losing side/second]
[with/thanks to/on] {winner_score}[ points/] for the [winner/winners/winning side/victors/better team]
, [the winner scoring/the winning score being/points of the winner:/the higher score being/winning total] {winner_score}
, {winner_score} [being the score of the winner/on the side of the winner/going to the winners/for the team that won]
, with the winner [on/at/reaching/making] {winner_score}
[with/against/to/to only] {loser_score}[ points/] for the [loser/losers/losing side/beaten team/weaker side]
, [the loser scoring/the losing score being/points of the loser:/the lower score being/losing total] {loser_score}
, {loser_score} [being the score of the loser/on the side of the loser/going to the losers/for the team that lost]
, with the loser [on/at/stuck at/stopping at] {loser_score}
, [the score being/final score/result:/score:/at the end] {winner_score} [to/against/:/-] {loser_score}
[by/with/with a score of/in a game that ended] {winner_score} to {loser_score}
, {loser_score} [to/against] {winner_score} from the point of view of the [loser/losing side]
, the losers having {loser_score} and the winners {winner_score}
, {winner_score} for the winner, {loser_score} for the loser
in {sport}
[at/in a match of/in a game of/in the sport of/while playing/when it comes to] {sport}
[in the/at the/on the last day of the] {sport} [cup/final/league/games/tournament/season]
, [sport:/the sport being/kind of sport:/it was/a day of] {sport}
, [a match/a contest/a meeting/an evening] of {sport}
[for/before] all [friends/lovers/fans] of {sport}
[speaking of/in news of/in matters of] {sport},
on {date}
[played on/held on/set for/back on/as they met on/when the teams met on/after the game of] {date}
, [date:/the date being/the day was/it was/dated] {date}
[in/during/at] the [match/game/meeting/contest] of {date}
, which [was on/took place on/happened on/was played on] {date}
in the {sport} [match/game/final] of {date}
at {sport} on {date}
, {sport} on {date}"""),
)

BOOK = Clauses(
    cores=lines("""
"{title}" [is on the shelf/is out/sells well/is worth reading/waits to be read/was lent to me/won a prize/is back in the shop]
{title} [is a book/is on my list/is the book we talk about/has arrived/keeps me awake]
[read/borrow/try/open/buy/get/take home/do not miss] ["{title}"/the book "{title}"/{title}/the {genre} called "{title}"]
[looking for something to read/bored/too much time/a rainy day]? [Take/Try/Open/Begin] "{title}"
{author} [writes/wrote/tells/signs/presents/brings out/dreamed up/is proud of/gave the world/reads from] "{title}"
{author} [is the author/is a writer/wrote it/has a book out/gives a reading/likes to write/is the name on the cover/never wrote better]
{author} [writes/turns out/tells/tries] {a_genre}
{author} [takes/uses/spends/asks the reader for/writes] {pages} pages
"{title}" [comes from the pen of/was written by/bears the name of/was dreamed up by/is the best book of/was dictated by] {author}
"{title}" [runs to/spreads over/fills/counts/takes/ends after/is told in] {pages} pages
"{title}" [belongs to the genre of/is filed under/counts as/is shelved under/passes for] {genre}
"{title}" [dates from/goes back to/was first sold in/has been around since/saw the light in] {year}
{pages} pages [lie ahead of the reader/are bound in this book/make up "{title}"/are too many for me/came from the pen of {author}]
{year} [was the year of "{title}"/is the year on the cover/is when it came out/was a good year for {author}/gave us "{title}"]
{genre} is [what {author} writes/the genre/what you get/what "{title}" is/what the cover promises]
[friends/lovers/readers] of {genre} [like "{title}"/read {author}/will be happy/know where to look]
[the/this/that] [book/work/copy/volume/story] [is on the table/can be borrowed/sells well/was a gift/is a pleasure/made me cry]
[the/this] [book/work/volume/story] [is called/has the name/goes by the name of/bears the words] [{title}/"{title}"]
[the/this/our] {genre} [sells well/is called "{title}"/was written by {author}/of {year} is "{title}"/keeps you awake/takes {pages} pages]
I [borrowed/am reading/gave away/lost/found/cannot forget/dreamed of] ["{title}"/{title}/a book by {author}]
our [reading group/teacher/book club/bookshop/school] [chose/talks about/recommends/ordered] ["{title}"/{author}/{a_genre}]
[critics/students/children/people] [praise/love/remember/quote/wait for] [{author}/"{title}"/books by {author}]
[ask for/look for/search the shelves for] [the book by {author}/"{title}"/{a_genre} by {author}]
[page/turn page] {pages} is the last one
[who would not like/who has not heard of/who remembers] {title}? [It is in the shop/It is on my table/We have a copy]"""),
    adjuncts=lines("""
[under the title/titled/entitled/named/known as/by the name of/with the title] "{title}"
, ["{title}" by name/the title being "{title}"/title: {title}/in short: {title}/the book is {title}]
, [which/a book that] [is called/bears the title/goes by the name of] "{title}"
[with/in/because of/thanks to/about] ["{title}"/the book "{title}"]
[as for/speaking of/in praise of] "{title}",
by {author}
[written/penned/told/signed/dictated/thought up] by {author}
[from the pen of/from the desk of/out of the hand of/in the words of/under the name of] {author}
, [author:/the author being/the author is/writer:/the one who wrote it is] {author}
, [which/a book that/something] {author} [wrote/dreamed up/had to write/put on paper]
[whose author is/whose writer is/with the author] {author}
in {author}'s [words/hand/voice/style]
[after/as/when/because] {author} [put down the pen/had time to write/began to write]
in {year}
[of/from/from the year/as of] {year}
[printed/published/released/written/on sale/finished/first sold] in {year}
[back/already/as early as/for the first time] in {year}
, [year:/the year being/the year is/year of print:/dated] {year}
, [which/a book that] [came out in/is from/has been on sale since/was new in] {year}
[whose first print is from/with a first print in/known since/on the shelves since/in shops from] {year}
, {a_genre}
, [genre:/the genre being/listed as/filed under/a piece of/the genre is] {genre}
[as/in the form of/in the shape of/with] {a_genre}
[in the genre of/in the field of/on the shelf for/under the heading/for friends of/for lovers of] {genre}
[from/on/off] the {genre} shelf
, [which is/a book that is/really] {a_genre}
[if you like/for those who like/when you want] {genre},
[with/of/on/in] {pages} pages
[running to/counting/filling/spread over/stretched over/bound in/told on] {pages} pages
, [pages:/number of pages:/the number of pages being/length in pages:] {pages}
, {pages} pages [long/thick/from cover to cover/in all/in small print]
, [which/a book that] [has/fills/runs to/ends after] {pages} pages
[for/after/on all of/through] its {pages} pages
[whose length is/at/at a length of] {pages} pages
, {a_genre} [of {pages} pages/from {year}/in {pages} pages/from the pen of {author}]
by {author} [in {year}/and from {year}/on {pages} pages]
, [the book by {author}/a story by {author}/a book of {year}/a book of {pages} pages]
, {year}, with {pages} pages
["{title}" of {year},/"{title}" by {author},/with the {genre} "{title}",]"""),
)

HOUSE = Clauses(
    cores=lines("""
[the/this/our/my] {kind} [is free/is to let/waits for you/is empty/can be seen today/looks for tenants/is in good order/has a garden]
{a_kind} [is to let/has come free/waits for the next tenant/can be had/is on offer/is what we offer]
[rent/see/take/view/choose/do not miss/live in/step into] [the/this/our] {kind}
[we/my parents/the owners/friends of ours/the heirs] [let/rent out/offer/are leaving/look after/own] {a_kind}
[looking for/in need of/tired of looking for/dreaming of] {a_kind}? [This one is free/Call us/Wait no longer/We have one]
{city} [is home to/boasts/gets/is the right town for] {a_kind}
{city} is where [the {kind} stands/you will live/it is/the keys are handed over/the {kind} is to let]
in {city} [stands/lies/waits/we let/we own] {a_kind}
[welcome to/say hello to/come home to/settle in/enjoy life in/discover] {city}
{address} is [the address/the home of the {kind}/where it stands/where you ring the bell/the door to knock on/where to send your letter]
{address} [is to let/stands empty/spans {area} square meters/costs {rent} a month/counts {rooms} rooms/is a short walk from the market]
[ring the bell at/come to/go to/knock at/write to/walk up to/take the bus to] {address}
the {kind} [has the address/belongs to the address/is to be found at/is the one at/can be viewed at] {address}
{rent} [a month/each month/every month] [is the rent/will do/buys {a_kind}/is what the owner wants/pays for the {kind}]
{rent} a month [buys {a_kind} of {area} square meters with {rooms} rooms/gets you {rooms} rooms/gets you {area} square meters]
{rooms} rooms [make up the {kind}/are for you/stand empty/share {area} square meters/are what the {kind} has/come at {rent} a month]
{area} square meters [are yours/is the size/hold {rooms} rooms/cost {rent} a month/make up the {kind}/is what the {kind} measures]
the [owner/agent/landlady/bank/farmer next door] [charges/demands/wants/bills/asks for/collects] {rent} [a/each/every] month
[you/tenants/both of you/we] [owe/are charged/hand over/have to find/spend] {rent} [a month/each month/every month]
the {kind} [brings in/sets you back/lets for/is billed at/asks for] {rent} [a month/each month/every month]
the {kind} [covers/spans/takes up/stretches over/comes to] {area} square meters
the {kind} [counts/comes with/is divided into/boasts/is made up of] {rooms} rooms
[you/tenants/guests/the children] can [walk through/choose among/sleep in/clean] {rooms} rooms
[this/the] [offer/place/home/lease/contract/ad] [is new/is still open/starts soon/is for you/ends next week/was signed]
[students/a family/a couple/two workers/old people] [could live here/would be happy here/left last week/are welcome]"""),
    adjuncts=lines("""
, {a_kind}
, [kind:/type of home:/what is for rent:/the home being/in short:] {kind}
[as/in the form of/inside/with/thanks to] [this/our/such a fine] {kind}
, [which is/that is to say/to be exact/the home being/namely] {a_kind}
[if you want/as you need/for those who dream of/when you look for] {a_kind},
[as for the/speaking of the/looking at the/about this] {kind},
at {address}
[standing/situated/to be found/waiting/built/hidden/found] at {address}
, [address:/the address being/the address is/street and number:/to be visited at] {address}
[with the address/whose address is/where you read/behind the door of/under the address] {address}
, which [stands/lies/is to be found/you will find] at {address}
[on your way to/on the visit to/ringing at/knocking at] {address},
in {city}
[in the heart of/in the town of/in the middle of/on the edge of/near the station of/in the north of/within] {city}
, [city:/town:/the city being/the town is called/the city is] {city}
, [which lies/which stands/to be found/located/situated] in {city}
[for those who love/if you want to live in/for a new life in/for anyone who works in/when you move to] {city}
, {city} [being the town/being where it lies/as the town of your choice]
[living in/arriving in/settling in/choosing] {city},
[with/having/counting/offering/of/boasting] {rooms} rooms
[divided into/made up of/consisting of/laid out as/shared out among] {rooms} rooms
, [rooms:/number of rooms:/the number of rooms being/room count:] {rooms}
, {rooms} rooms [in all/large/bright/under one roof/to sleep and live in]
, [in which there are/where you have/which has/with no less than] {rooms} rooms
[with/of/on/over] {area} square meters
[measuring/covering/spanning/taking up/stretching over/filling] {area} square meters
[with/having/offering] [a size/an area/a floor/a living space] of {area} square meters
, [area:/size in square meters:/size:/the area being/living space:/floor area] {area}
, [which measures/which covers/whose size is/whose area is/big enough at] {area} [square meters/m2]
[on/with/having/counting] all of its {area} square meters
[for/at/against/worth] {rent} [a month/per month/each month/every month]
[at/with/for/against] a [monthly rent/rent/monthly price/monthly bill] of {rent}
[costing/bringing in/billed at/let at/priced at/on payment of] {rent} [a month/per month/each month]
, [rent:/monthly rent:/the rent being/to be paid every month:/monthly cost] {rent}
, [whose rent is/which costs/which lets for/if you can spend/as long as you pay] {rent} [a month/per month/each month]
[in return for/once you pay/in exchange for/for only/for no more than] {rent} [a month/per month/each month]
at {address}[ in/, a street in/, a corner of/, close to the center of/ and in] {city}
, {address} in {city}
, {a_kind} [in {city}/with {rooms} rooms/of {area} square meters/for {rent} a month/at {address}]
with [{rooms} rooms at {rent} a month/{area} square meters for {rent} a month/{area} square meters and {rooms} rooms]
, {rooms} rooms at {rent} [a month/per month]
[of/with] {area} square meters [in/shared by/holding] {rooms} rooms"""),
)
