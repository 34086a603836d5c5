"""Whole texts about products and matches, each of which tells every field of a record. Held-out ones are in `kinds_of_goods`."""

from rtlang.model.embedded.kinds import lines

PRODUCT_TEXTS = lines("""
{brand} proudly [presents/unveils] its latest {product}. The body consists of {material}, the scale [stops/settles] \
at {weight} grams, the till at {price}, and the code is {code}.
Looking for something in {material}? {a_product} by {brand} ([order code/item code] {code}) tips the scales at \
{weight} grams and [sets you back/takes] {price} of your {money}.
Having [worn out/broken] my old one, I ordered a new {product}. {brand} delivers it in {material} as {code}; it has \
{weight} [grams/g] and I paid {price} for it.
Whoever types {code} into the [search box/form] finds {a_product} by {brand}. Formed from {material}, it brings \
{weight} grams to the scale and {price} to the [bill/receipt], in {money}.
[SALE/BARGAIN]! {product} now down to {price} (in {money}). Maker {brand}, all {material}, {weight} grams, \
[quote/say] {code} at the till.
The [parcel/box] holds one {product}, net weight {weight} g, [customs value/price] {price}, material {material}, \
maker {brand}, goods code {code}.
[Stock/Store] log: code {code} booked in; item = {product}; label = {brand}; made of = {material}; grams = {weight}; \
[unit price/price] = {price}
At {weight} grams the {product} is no [feather/toy]. That is due to the {material} which {brand} [took/used]. It goes \
by the code {code} and for the sum of {price}, counted in {money}.
Can [anybody/someone] tell me whether {price} is [fair/too much] for {a_product}? It is by {brand}, the material is \
{material}, the weight {weight} grams, the code {code}.
Thanks to the use of {material}, the [new/improved] {product} of {brand} ends up at {weight} grams. Retailers \
[list/file] it as {code} and charge {price} for it.
{code} stands for the {product}, {brand} for the [maker/firm behind it], {material} for what it is [made/built] of, \
{weight} for the grams and {price} for the price in {money}.
My [aunt/neighbor] swears by her {product}. "{brand} understands {material}," she says; it cost her {price}, weighs \
{weight} grams and has {code} stamped on the bottom.
If you have {price} to spare, [treat yourself/help yourself] to {a_product}. {brand} builds it out of {material} \
({weight} [grams/g]); ask for {code}.
[Lost/Missing]: {a_product}, brand {brand}, of {material}, exactly {weight} grams, [worth/valued at] {price} in \
{money}, marked {code}.
[Auction/Flea market], lot {code}: {a_product}, {material}, by {brand}. Weight {weight} g. [Fixed price/Last price] \
{price}.
hi, is the {product} still [available/there]? the {brand} one, {material}, {weight} grams, code {code}, you \
[wanted/posted] {price} for it
SEND ONE {product} STOP BRAND {brand} STOP MATERIAL {material} STOP WEIGHT {weight} GRAMS STOP CODE {code} STOP \
[PRICE/SUM] {price} [ACCEPTED/AGREED]
Photo: the {product} with which {brand} [won/took] a design prize. Pure {material}, {weight} grams, [in shops/on \
shelves] as {code} for {price}.
Dear [customer/client], your {product} has been shipped. Code {code}, brand {brand}, material {material}, [shipping \
weight/weight] {weight} grams, amount charged {price}, payable in {money}.
What is it [made/built] of? Of {material}. Who makes it? {brand}. How heavy is the {product}? {weight} grams. [The \
price/And the cost]? {price}. The code? {code}.
Because {material} has become [dear/scarce], {brand} now demands {price} for the {product} numbered {code}, although \
the thing has [merely/barely] {weight} grams.
The museum shop [carries/stocks] {a_product} of solid {material}. {brand} supplies it under {code}; put {price} on \
the counter, in {money}, and {weight} grams in your [bag/basket].
[Return/Refund] form. Item: {product}. Item code: {code}. [Trade mark/Label]: {brand}. Made from: {material}. Gross \
weight: {weight} g. Paid: {price}.
{weight} grams, that is [all/everything] the {product} weighs. {brand} moulds it from {material}, catalogues it as \
{code} and [wants/hopes for] {price} in return.
Our [testers/readers] liked the {product} from {brand} best: fine {material}, [handy/pleasant] at {weight} grams, \
fair at {price}. Look out for {code}.
In the window of the {brand} store [lies/stands] {a_product}. The [little/handwritten] sign mentions {material}, \
{weight} grams, a price of {price} and the code {code}.
You won't [find/see] a better {product}: {brand} quality, real {material}, a mere {weight} grams, and just {price} of \
your {money} when you [order/choose] {code}.
{material} is the [stuff/matter] that {brand} shapes into {a_product}. Weight: {weight} grams; cost: {price}; \
[reference/ref.]: {code}.
Would you [pay/give] {price} for {a_product}? I did, because {brand} made it of {material}. It [has/reaches] {weight} \
grams and the code {code}.
[Catalogue/Catalog] page: {product}, reference {code}. House: {brand}. Substance: {material}. Mass: {weight} g. [List \
price/Shop price]: {price}.
Please [reorder/restock] {code}. That's the {product} in {material} which {brand} lets us have for {price} apiece; \
[mind/remember] that each weighs {weight} grams.
The [thief/burglar] took {a_product} made by {brand}. Police [describe/recall] it as {material} all over, {weight} \
grams heavy, bought for {price} and engraved with {code}.
As a [gift/surprise] I picked {a_product} by {brand}. Its {material} feels good, its {weight} grams rest well in the \
hand, and at {price} it was a [bargain/steal]. Code on the box: {code}.
[Scan/Enter] {code} and you'll see: {product}, produced by {brand} using {material}. The display [gives/flashes] \
{weight} g and {price} in {money}.
Weight? {weight} grams. Material? {material}. [Sounds/Looks] like the {product} by {brand} that the [catalogue/price \
list] shows as {code} at {price}.
Costing {price} in {money}, the {product} ({code}) isn't cheap, yet {brand} did not [save/skimp] on {material}: \
{weight} grams [in total/altogether].
Although it holds {weight} grams of {material}, the {product} which {brand} [launched/released] today goes for no \
more than {price}. [Ask/Pester] your dealer for {code}.
I'd like to [swap/trade] my {product}. It's a piece by {brand}, {material}, {weight} grams, [new price/price then] \
{price}, item code {code}.
From the [workshop/studio] of {brand} comes {a_product} fashioned from {material}. Buyers part with {price} \
hard-earned {money}, carry home {weight} grams and [read/discover] {code} on the box.
Grams: {weight}. Code: {code}. Cost: {price}. [Made from/Built from]: {material}. [Thing/Object]: {product}. \
Manufacturer: {brand}.
{product} for sale! [Hardly/Never] used, {brand}, {material}, {weight} grams, code {code}, yours if you [hand/slip] \
me {price}.
The price of the {product} has [climbed/jumped] to {price}, reports its maker {brand}. Nothing else changed: \
{material} as ever, {weight} grams [as ever/as before], still code {code}.
Every {product} leaving the [factory/plant] of {brand} is shaped from {material}, checked to weigh {weight} grams, \
stamped {code} and [tagged/priced] {price}.
Should the {product} [break/fail], {brand} will replace it. Keep the [slip/receipt]: code {code}, material \
{material}, {weight} grams, {price} paid.
Ever [held/touched] {a_product} of {material}? {brand} dared to make one. {weight} grams, {price} in {money}, \
[orders/sold] under {code}.
They [told/warned] me at the desk that {code} is sold out. A pity: that {product}, designed by {brand}, was made of \
{material}, [had/weighed] {weight} grams and cost {price}.
[Insurance/Household] list: one {product}, manufacturer {brand}, {material}, {weight} grams, [bought/acquired] for \
{price}, identification {code}.
[Compare/Consider]: the {product} offered by {brand} under {code} takes {price} out of your purse, adds {weight} \
grams to your [bag/load], and is manufactured from {material}.
[Mum/Honey], please bring me {a_product} from town! The sort by {brand}, {material}, {weight} grams. It's {price} in \
{money}, and the [box/code] says {code}.
No {product} [sells/goes] faster in our shop than {code}. Customers praise the {material}, the {weight} grams and the \
[low/fair] price of {price}; {brand} is delighted.
[Engineers/Designers] at {brand} have squeezed {a_product} into {weight} grams by switching to {material}. It \
[hits/reaches] the shelves at {price} as {code}.
[Tag/Sticker] on the shelf: this {product} is a true {brand}, entirely {material}, {weight} g net, {price} in \
{money}, [ref./code] {code}
Under the [Christmas tree/table] lay {a_product}, obviously {brand}, obviously {material}. Father had [spent/blown] \
{price} on it, for all of {weight} grams; the receipt quotes {code}.
To order, [write/put] {code} on the card. You'll receive {a_product} which {brand} manufactured from {material}; the \
postage is for {weight} grams, and {price} is [collected/due] at the door.
What {brand} can do with {material} is [shown/proved] by this {product}. The [figures/facts]: {weight} grams and \
{price} in {money}. The code: {code}.
The {product} [bears/shows] the code {code}. It also has a [proud/stiff] price, {price}, and the name of {brand}, who \
needed {weight} grams of {material} for it.
Quality check [passed/done]: {product}, {code}. Brand {brand} confirmed. Composition {material}. Measured weight \
{weight} grams. [Selling/Retail] price {price}.
{brand} * {product} * {material} * {code} * {weight} g * {price}
Nowhere else will you [get/grab] the {product} this cheap: {price}! Just name {code} to the [clerk/cashier]. It's \
{brand}, it's {material}, and it's {weight} grams in weight.
Both {material} and [hard work/great care] went into the {product} that {brand} now markets as {code}. It reaches \
{weight} grams and [fetches/earns] {price} in {money}.
""")

MATCH_TEXTS = lines("""
{loser} fell to {winner} at {sport} on {date}, [managing/collecting] {loser_score} against {winner_score}.
HEADLINE: {winner} [crush/stun] rivals {loser} by {winner_score}-{loser_score} in {sport} clash of {date}
Nothing went right for {loser}, who went down {loser_score} to {winner_score} when {winner} visited for a \
[round/game] of {sport} on {date}.
Having put up {winner_score}, {winner} left the {sport} hall on {date} as victors; {loser}, stuck at {loser_score}, \
[trudged/went] home.
[Dad/Grandpa] still talks about {date}, when {winner} outplayed {loser} at {sport}, {winner_score} against \
{loser_score}.
{winner} knocked out {loser} in the {sport} cup on {date}; [final tally/score]: {winner_score} to {loser_score}.
Thanks to a late effort on {date}, {winner} edged out {loser}, {winner_score} to {loser_score}, and \
[pocketed/secured] the {sport} trophy.
[lol/haha] {loser} got smashed by {winner}, {loser_score} vs {winner_score}, {sport}, {date}, i was there
No luck for {loser}: {loser_score} was all they could muster on {date}, whereas {winner} piled up {winner_score} and \
[claimed/bagged] the {sport} fixture.
Victory in {sport} belonged to {winner} on {date}, {loser} trailing {loser_score} to {winner_score} at the \
[whistle/end].
The referee's [report/sheet]: {sport}, held {date}; victor {winner}, {winner_score}; defeated side {loser}, \
{loser_score}.
Did you hear that {winner} thrashed {loser} at {sport}? On {date} it [finished/stood at] {winner_score} to \
{loser_score}.
{date}: {loser} with {loser_score} at the bottom, {winner} with {winner_score} on top ({sport}, [away/home] win)
Only {loser_score} stood beside the name of {loser} on the {sport} scoreboard on {date}; {winner}, with \
{winner_score}, [shook hands/smiled] as champions.
By {winner_score} to {loser_score} the {sport} final of {date} was [decided/settled] in favor of {winner}, much to \
the dismay of {loser}.
Overpowered by {winner}, {loser} finished their {sport} outing of {date} with {loser_score} to their opponents' \
{winner_score}, [sadly/alas].
{winner} advance to the next round! They eliminated {loser} on {date}, {winner_score} to {loser_score}, in a \
[tense/wild] {sport} duel.
Coach of {loser}: "We scored {loser_score}, {winner} scored {winner_score}, so they deserved it." {sport}, \
[played/recorded] {date}.
[Tickets/Seats] were sold out on {date} as {loser} hosted {winner} for {sport} and bowed out {loser_score} to \
{winner_score}.
If {loser} had defended better, {winner} would not have triumphed {winner_score} to {loser_score} in the {sport} \
[derby/contest] on {date}.
SPORT: {sport} * DATE: {date} * W: {winner}, {winner_score} * L: {loser}, {loser_score} * [FINAL/OFFICIAL]
My [brother/cousin] plays {sport} for {winner}, and on {date} they overcame {loser}, getting {winner_score} while \
conceding {loser_score}.
Although {loser} reached {loser_score}, {winner} went further with {winner_score} and thereby [captured/earned] the \
{sport} victory on {date}.
Hats off to {winner}: {winner_score} on the board, {loser} held to {loser_score}, another {sport} win [sealed/wrapped \
up] on {date}.
It took {winner_score} for {winner} to get past {loser}, who had put {loser_score} on the board. [Discipline/Event]: \
{sport}. Day: {date}.
{sport} fans will [remember/treasure] {date}, the day {winner} humbled {loser} by a margin of {winner_score} to \
{loser_score}.
Were {loser} unlucky on {date}? Perhaps, but {winner} dominated the {sport} match and {winner_score} to {loser_score} \
[flatters/suits] nobody.
Telegram: {winner} victorious stop {loser} beaten stop {sport} on {date} stop {winner_score} to {loser_score} stop \
[champagne/party] tonight
Losing {loser_score} to {winner_score} on {date} cost {loser} the {sport} title, which now [decorates/adorns] the \
cabinet of {winner}.
{winner} had the upper hand in {sport} on {date}, finishing on {winner_score}, and {loser} had to [swallow/accept] \
defeat on {loser_score}.
A crowd of thousands saw {loser} collapse on {date}: {loser_score} for them, {winner_score} for the {sport} side of \
{winner}, who [danced/cheered] afterwards.
Caption: [players/captain] of {winner} lifting the {sport} cup after the {winner_score} to {loser_score} success \
against {loser} on {date}.
{loser} threw in the towel at {loser_score}. By then, {winner} had amassed {winner_score} in this {sport} encounter \
[dated/of] {date}.
In a {sport} thriller staged on {date}, neither side gave up, yet {winner} prevailed over {loser}, {winner_score} to \
{loser_score}, [in the end/at last].
[Breaking/Just in]: {sport} upset! {loser} suffer {loser_score} to {winner_score} loss, {winner} jubilant, {date}.
Dear diary, on {date} we of {loser} were outclassed at {sport}. {winner} got {winner_score}, we got {loser_score}, \
and I [cried/sulked].
First place {winner}, {winner_score} points; second place {loser}, {loser_score} points; discipline {sport}; \
[contested/arranged] {date}.
Rumor has it that {winner} wiped the floor with {loser} on {date}, {winner_score} to {loser_score}, and that in \
{sport} of all [games/things].
The [club/league] confirms: {sport} fixture no. 7, {date}, was forfeited by nobody and won by {winner} \
({winner_score}) over {loser} ({loser_score}).
{winner_score} beats {loser_score}, so it was {winner} and not {loser} who [left/departed] the {sport} arena laughing \
on {date}.
To the sorrow of {loser}, their {loser_score} could not match the {winner_score} that {winner} produced in {sport} on \
{date}, [sources say/we hear].
Both trained hard for {sport}, {winner} and {loser}, but on {date} the former [netted/made] {winner_score}, the \
latter merely {loser_score}.
Congratulations, {winner}! Your {winner_score} to {loser_score} conquest of {loser} on {date} was {sport} at its \
[best/finest].
Revenge at last: {winner} paid {loser} back on {date}, running up {winner_score} and allowing {loser_score} in a \
[fiery/heated] {sport} rematch.
Who would have [thought/guessed] that {loser} could succumb to {winner} at {sport}? {date} proved it, {loser_score} \
to {winner_score}.
Season diary of {loser}, {date}: {sport} versus {winner}, defeat, we {loser_score}, they {winner_score}, [bus/coach] \
home silent.
Season diary of {winner}: hosted {loser} for {sport} on {date}, victory, {winner_score} for us, {loser_score} for \
[them/the guests].
After trailing early, {winner} turned the tables on {loser} and ran out {winner_score} to {loser_score} winners of \
the {sport} [showdown/battle] on {date}.
Lost: the {sport} match of {date}. Losers: {loser}. Points [gathered/obtained]: {loser_score}, set against \
{winner_score} for the conquerors, {winner}.
{sport} on {date} ended in tears for {loser} and in song for {winner}; the board [showed/displayed] {loser_score} and \
{winner_score} respectively.
[Bet/Wager] lost! I backed {loser}, but {winner} were superior in {sport} on {date}, {winner_score} to {loser_score}.
Despite home advantage, {loser} were swept aside {winner_score} to {loser_score} by {winner} on {date}, according to \
the {sport} [magazine/column].
When the {sport} clock ran out on {date}, {loser} stood at {loser_score} and {winner} at {winner_score}, which \
[handed/gave] the latter the win.
Match report {date} | {sport} | beaten: {loser} with {loser_score} | victorious: {winner} with {winner_score} | \
[crowd/weather] fine
Ask anyone in the {sport} world about {date} and they will tell how {winner} upset {loser}, [posting/recording] \
{winner_score} to the other side's {loser_score}.
Poor defense doomed {loser} on {date}: {winner_score} leaked, {loser_score} scored, and the {sport} points \
[travel/go] to {winner}.
{winner} remain unbeaten in {sport}, since {loser} too came off second best on {date}, this [time/round] \
{loser_score} to {winner_score}.
The prize of the {sport} evening, {date}, was handed to {winner} for {winner_score}; runner-up {loser} was \
[consoled/honored] for {loser_score}.
Mark {date} in red, supporters of {winner}: {winner_score} to {loser_score}, {loser} vanquished, {sport} \
[glory/pride] restored!
[Sorry/Apologies], {loser}, but {loser_score} is less than {winner_score}, which means {winner} ruled the {sport} \
court on {date}.
""")
